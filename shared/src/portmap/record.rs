//! The record of an attachment's host ports: one line of JSON in a file named by the attachment's tag.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::config::Options;
use super::mapping::{Mapping, Protocol};
use crate::NetworkName;
use crate::attachment::tag;
use crate::ipam::key::Key;
use crate::ipam::liveness::Traces;
use crate::ipam::record::{HostEnd, NetnsRef};
use crate::netlink::netns::NetnsId;

/// Format of the records that this version writes.
pub const FORMAT: u32 = 1;

/// The host ports of one attachment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub v: u32,
    /// Name of the network.
    pub network: NetworkName,
    /// CNI_CONTAINERID.
    pub container: String,
    /// CNI_IFNAME.
    pub ifname: String,
    /// The workload, for people.
    pub key: Key,
    /// The container's network namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<NetnsRef>,
    /// The host end of the container's pair, when osvc-bridge made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostEnd>,
    /// Kernel boot id at ADD.
    pub boot: String,
    /// The host's network namespace: whose ports they are.
    pub home: NetnsId,
    /// Time of the ADD (RFC 3339, microseconds).
    pub since: String,
    /// The container's addresses with the prefix length of their subnets: one of a family at most.
    pub targets: Vec<IpNet>,
    /// Masquerade connections from the container's own subnet and from 127.0.0.1.
    pub snat: bool,
    /// Masquerade all translated connections; only with `snat`.
    pub masq_all: bool,
    /// Clients that may connect from elsewhere; empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_from: Vec<IpNet>,
    /// The published ports.
    pub mappings: Vec<Mapping>,
}

/// What the kernel looks up: one key of the maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    /// The host's address; `0.0.0.0` or `::` for all of the family.
    pub address: IpAddr,
    /// The protocol.
    pub protocol: Protocol,
    /// The host's port.
    pub port: u16,
}

impl Slot {
    /// True for the slot of all addresses of its family.
    pub fn is_any(&self) -> bool {
        self.address.is_unspecified()
    }

    /// True if a packet could be meant for both.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.protocol == other.protocol
            && self.port == other.port
            && self.address.is_ipv4() == other.address.is_ipv4()
            && (self.address == other.address || self.is_any() || other.is_any())
    }
}

impl Record {
    /// The attachment's tag: the name of the record's file.
    pub fn tag(&self) -> String {
        tag(self.network.as_str(), &self.container, &self.ifname)
    }

    /// The same published as these options say.
    #[must_use]
    pub fn with(&self, options: &Options) -> Self {
        let Options { snat, masq_all, allow_from } = options.clone();
        Self { snat, masq_all, allow_from, ..self.clone() }
    }

    /// How it is published.
    pub fn options(&self) -> Options {
        Options { snat: self.snat, masq_all: self.masq_all, allow_from: self.allow_from.clone() }
    }

    /// What tells whether its holder lives.
    pub fn traces(&self) -> Traces<'_> {
        let Self { boot, netns, host, since, .. } = self;
        Traces { boot, netns: netns.as_ref(), host: host.as_ref(), since }
    }

    /// What the maps should hold for it: each slot once, with where it leads.
    pub fn slots(&self) -> Vec<(Slot, SocketAddr)> {
        let mut slots = Vec::with_capacity(self.mappings.len() * self.targets.len());
        for mapping in &self.mappings {
            for target in self.targets.iter().map(IpNet::addr).filter(|target| mapping.is_for(*target)) {
                let any = if target.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
                let address = mapping.host_ip.unwrap_or(any);
                let slot = Slot { address, protocol: mapping.protocol, port: mapping.host_port };
                slots.push((slot, SocketAddr::new(target, mapping.container_port)));
            }
        }
        crate::order::sort(&mut slots);
        slots.dedup();
        slots
    }

    /// The holder for people: key, container, network and since when.
    pub fn holder(&self) -> String {
        format!("{:?} (container {}, network {}) since {}", self.key.text, self.container, self.network, self.since)
    }
}
