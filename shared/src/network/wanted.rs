//! What a network should look like on this host, from its configuration and its subnets.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;

use super::config::Vlans;
use super::names::{BridgeName, VlanNames};
use super::record::ForwardAccept;
use super::{BridgeConfig, NetworkRecord};
use crate::NetworkName;

/// What a network should look like on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The network.
    pub name: NetworkName,
    /// Its bridge.
    pub bridge: BridgeName,
    /// The addresses that the bridge should have, with prefix length.
    pub gateways: Vec<IpNet>,
    /// The subnets, without host bits.
    pub subnets: Vec<IpNet>,
    /// Masquerade IPv4.
    pub masquerade_v4: bool,
    /// Masquerade IPv6.
    pub masquerade_v6: bool,
    /// What to do about foreign rule sets that drop.
    pub forward_accept: ForwardAccept,
    /// The VLAN in which the host has the gateway addresses; `None` has them on the bridge itself.
    pub vlan: Option<u16>,
    /// VLANs of the ports: with any, the bridge filters.
    pub vlans: Vlans,
    /// The ports are isolated from each other.
    pub port_isolation: bool,
    /// The bridge takes up all frames.
    pub promiscuous: bool,
    /// Nothing passes between this network and any other one of this host.
    pub isolate: bool,
    /// Its containers are not trusted.
    pub guarded: bool,
    /// MTU in bytes, if configured.
    pub mtu: Option<u32>,
    /// Replace a clashing address of the bridge.
    pub force_address: bool,
    /// The bridge's IPv6 addresses wait for duplicate address detection.
    pub detect_duplicates: bool,
    /// Hairpin mode of the ports.
    pub hairpin: bool,
    /// The folder of the address records, when osvc-ipam allocates.
    pub ipam: Option<PathBuf>,
    /// The program that was asked for to masquerade, whatever it is: ours is always the same.
    pub masquerade_backend: Option<String>,
    /// It is a segment of a routed network.
    pub routed: bool,
}

impl Wanted {
    /// What a configuration asks for. `subnets` come with the gateway that they have, if any.
    pub fn new(
        config: &BridgeConfig,
        subnets: impl IntoIterator<Item = (IpNet, Option<IpAddr>)>,
        ipam: Option<PathBuf>,
    ) -> Self {
        let mut wanted = Self {
            name: config.network.clone(),
            bridge: config.bridge.clone(),
            gateways: Vec::new(),
            subnets: Vec::new(),
            masquerade_v4: config.masquerade_v4,
            masquerade_v6: config.masquerade_v6,
            forward_accept: config.forward_accept,
            vlan: config.vlans.access.filter(|_| config.is_gateway),
            vlans: config.vlans.clone(),
            port_isolation: config.port_isolation,
            promiscuous: config.promiscuous,
            isolate: config.isolate,
            guarded: config.isolate || config.check_mac || config.check_addresses,
            mtu: config.mtu,
            force_address: config.force_address,
            detect_duplicates: config.detect_duplicates,
            hairpin: config.hairpin,
            ipam,
            masquerade_backend: config.masquerade_backend.clone(),
            routed: false,
        };
        for (subnet, gateway) in subnets {
            let gateway = gateway.filter(|_| config.is_gateway).and_then(|ip| IpNet::new(ip, subnet.prefix_len()).ok());
            add_new(&mut wanted.subnets, [subnet.trunc()]);
            add_new(&mut wanted.gateways, gateway);
        }
        wanted
    }

    /// The pair by which the host is in the VLAN; `None` if it is on the bridge itself, or has no address there.
    pub fn vlan_names(&self) -> Option<VlanNames> {
        let vlan = self.vlan.filter(|_| !self.gateways.is_empty())?;
        Some(VlanNames::of(&self.bridge.name, vlan))
    }

    /// True if the record is that of this network as it should be. The MTU is decided at setup.
    pub(super) fn is_met_by(&self, record: &NetworkRecord) -> bool {
        record.bridge == self.bridge.name
            && record.vlan_device == self.vlan_names().map(|names| names.device)
            && self.gateways.iter().all(|gateway| record.gateways.contains(gateway))
            && self.subnets.iter().all(|subnet| record.subnets.contains(subnet))
            && (record.masquerade_v4, record.masquerade_v6) == (self.masquerade_v4, self.masquerade_v6)
            && record.forward_accept == self.forward_accept
            && (record.promiscuous, record.isolate, record.guarded) == (self.promiscuous, self.isolate, self.guarded)
            && (&record.vlans, record.port_isolation) == (&self.vlans, self.port_isolation)
            && record.ipam == self.ipam
    }
}

/// The families (IPv6?) of some addresses.
pub(super) fn families(addresses: &[IpNet]) -> BTreeSet<bool> {
    addresses.iter().map(|address| address.addr().is_ipv6()).collect()
}

/// Adds what a list does not have yet.
pub(super) fn add_new(list: &mut Vec<IpNet>, more: impl IntoIterator<Item = IpNet>) {
    for net in more {
        if !list.contains(&net) {
            list.push(net);
        }
    }
}
