//! The pair of the container, and what the result says of it.

use std::net::IpAddr;

use nix::errno::Errno;

use super::Adding;
use crate::Error;
use crate::ipam::key::Key;
use crate::netlink::{Link, Mac};
use crate::network::mac::{Machine, of_addresses};
use crate::network::port::{self, NewPort};
use crate::network::setup::Setup;
use crate::network::{self, Wanted, alias};
use crate::protocol::{CniResult, Interface, SpecVersion};

/// How often the bridge may vanish before a port is in it.
const TRIES: u32 = 8;

impl Adding<'_> {
    pub(super) fn container_mac(&self, result: &CniResult) -> Mac {
        let own = || of_addresses(result.ips.iter().map(|ip| ip.address.addr()));
        self.mac.or_else(own).unwrap_or_else(|| Machine::read().container(self.attachment))
    }

    pub(super) fn make_port(
        &mut self,
        result: &CniResult,
        key: Option<&Key>,
        mac: Mac,
        wanted: &Wanted,
    ) -> Result<Link, Error> {
        let addresses: Vec<IpAddr> = result.ips.iter().map(|ip| ip.address.addr()).collect();
        let key = key.map(|key| (key.source.name(), key.text.as_str()));
        let alias = alias::alias(self.attachment, &addresses, key);
        let host_mac = Machine::read().host_end(self.attachment);
        self.check_sources(&addresses, mac)?;
        let config = &self.network.config;
        for tries in (0..TRIES).rev() {
            if self.setup.is_none() {
                self.establish(wanted)?;
            }
            let Some(Setup { bridge, record, .. }) = &self.setup else { break };
            let new = NewPort {
                attachment: self.attachment,
                netns: self.netns,
                bridge,
                mtu: record.mtu,
                mac,
                host_mac,
                hairpin: config.hairpin,
                isolated: config.port_isolation,
                vlans: &config.vlans,
                alias: &alias,
            };
            match port::create(self.site.socket, &new) {
                // Another ADD, which had made the bridge, has failed and taken it back.
                Err(network::Error::Netlink(error))
                    if tries > 0
                        && error.is(Errno::EINVAL)
                        && self.site.socket.link_by_index(bridge.index)?.is_none() =>
                {
                    self.setup = None;
                }
                made => {
                    let port = self.made.port.insert(made?).clone();
                    // … or is about to, and did not see the port.
                    if !self.site.is_recorded(wanted)? {
                        self.setup = None;
                        self.establish(wanted)?;
                    }
                    return Ok(port);
                }
            }
        }
        Err(network::Error::Vanished(wanted.bridge.name.clone()).into())
    }

    /// The interfaces of the result: bridge, host end, container's end, and the host's device in a VLAN if there is one.
    pub(super) fn describe(&self, result: &mut CniResult, host: &Link, mac: Mac) {
        let Some(Setup { bridge, vlan, record, .. }) = &self.setup else { return };
        let text = |mac: Option<[u8; 6]>| mac.map(|mac| Mac(mac).to_string());
        let mtu = |mtu: u32| (self.call.version >= SpecVersion::V110).then_some(mtu);
        let sandbox = Some(self.netns.path().to_string_lossy().into_owned());
        let of = |link: &Link| Interface {
            name: link.name.clone(),
            mac: text(link.mac),
            mtu: mtu(link.mtu),
            ..Interface::default()
        };
        result.interfaces = vec![
            of(bridge),
            Interface { name: host.name.clone(), mac: text(host.mac), mtu: mtu(record.mtu), ..Interface::default() },
            Interface {
                name: self.attachment.ifname.to_string(),
                mac: Some(mac.to_string()),
                mtu: mtu(record.mtu),
                sandbox,
                ..Interface::default()
            },
        ];
        result.interfaces.extend(vlan.iter().map(of));
    }
}
