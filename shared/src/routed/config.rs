//! The configuration of a routed network: as it arrives ([`Low`]), and as everything else works with it
//! ([`RoutedConfig`]). Nothing but files is read for it, and those only where it leaves something open.

mod error;
mod here;
pub mod key;
mod low;
mod node;
mod sizes;
mod tables;

use std::path::PathBuf;

use ipnet::IpNet;
use serde_json::Value;

pub use error::{Contradiction, Reason};
pub use low::{Low, LowNode};
pub use node::{Address, Node};
pub use tables::MAIN;

use super::Error;
pub use super::mode::{Mode, Policy};
use crate::NetworkName;
use crate::network::BridgeConfig;
use crate::network::config::{Addresses, Low as LowBridge};
use crate::protocol::{Call, JsonError, json};

/// UDP ports of vxlan: IANA's, and the one of the kernel and of flannel.
const OTHERS_VXLAN: [u16; 2] = [4789, 8472];

/// A routed network, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoutedConfig {
    /// The network.
    pub name: NetworkName,
    /// The subnets of the whole cluster, without host bits: one of a family, two at most.
    pub networks: Vec<IpNet>,
    /// The prefix length of a node's segment of each of `networks`, in the same order.
    pub prefixes: Vec<u8>,
    /// When to tunnel. With [`Mode::Wireguard`] never [`Policy::Never`], and [`Policy::Always`] for `auto`.
    pub tunnel: Policy,
    /// How to tunnel.
    pub mode: Mode,
    /// UDP port of vxlan and wireguard. `None`: the default of the mode.
    pub port: Option<u16>,
    /// The routing tables that get the routes: [`MAIN`] first, each once.
    pub tables: Vec<u32>,
    /// All nodes of the cluster, in the order of the configuration: never empty, no name twice.
    pub nodes: Vec<Node>,
    /// Which of `nodes` this node is. It is not retired.
    pub here: usize,
    /// The bridge of this node, with the keys of osvc-bridge. Its addresses are `networks`: see [`Self::bridge_with`].
    pub bridge: BridgeConfig,
}

/// Where on this host the configuration is completed from.
#[derive(Debug, Clone)]
pub struct Places {
    /// The file with this node's name.
    pub node: PathBuf,
    /// The file in which the kernel tells the host name.
    pub host_name: PathBuf,
    /// The folders with `rt_tables` and `rt_tables.d`, in the order in which they are searched.
    pub tables: Vec<PathBuf>,
}

impl Default for Places {
    fn default() -> Self {
        Self {
            node: "/etc/osvc-cni/node".into(),
            // As uname(2), in the UTS namespace of the caller (proc(5)).
            host_name: "/proc/sys/kernel/hostname".into(),
            tables: ["/etc/iproute2", "/usr/share/iproute2", "/usr/lib/iproute2"].map(PathBuf::from).into(),
        }
    }
}

impl RoutedConfig {
    /// The configuration of a call.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn from_call(call: &Call) -> Result<Self, Error> {
        Self::new(&call.network, &call.config.low()?, &call.config.low()?, &Places::default())
    }

    /// Checks a configuration. Everything that cannot be honoured is refused here.
    ///
    /// # Errors
    /// [`Error`], with the key and its value: codes 2, 6, 7, and 5 for a file that cannot be read.
    pub fn new(name: &NetworkName, low: &Low, bridge: &LowBridge, places: &Places) -> Result<Self, Error> {
        if low.network.is_none() {
            return Err(Contradiction::NoNetwork.into());
        }
        let says_of_bridge = bridge;
        let bridge = BridgeConfig::new(name, says_of_bridge)?;
        // Tunnels and routes lead to the bridge itself, which has the gateway of each segment.
        if bridge.vlans.filter() {
            let (key, value): (_, Value) = match says_of_bridge.vlan {
                0 => ("vlanTrunk", format!("{:?}", bridge.vlans.trunk).into()),
                vlan => ("vlan", vlan.into()),
            };
            return Err(unsupported(
                key,
                value,
                Reason::Not("for a routed network: its segments are on the bridge itself"),
            ));
        }
        let networks = networks(&bridge)?;
        if !bridge.is_gateway {
            return Err(Contradiction::NoGateway.into());
        }
        let (tunnel, mode) = tunnel(low)?;
        let nodes = node::nodes(low.nodes.as_deref().unwrap_or_default(), &networks)?;
        Ok(Self {
            name: name.clone(),
            prefixes: sizes::prefixes(low, &networks)?,
            tunnel,
            mode,
            port: low.port.map(|port| udp_port(port, mode)).transpose()?,
            tables: tables::tables(low.tables.as_deref().unwrap_or_default(), &places.tables)?,
            here: here::here(low.node.as_deref(), &nodes, places)?,
            networks,
            nodes,
            bridge,
        })
    }

    /// This node.
    pub fn this_node(&self) -> &Node {
        &self.nodes[self.here]
    }

    /// The other nodes, without the retired ones.
    pub fn peers(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().enumerate().filter(|(index, node)| *index != self.here && !node.retired).map(|(_, node)| node)
    }

    /// True if every other node has its segments by `subnet`: then the order of the list, and what has been removed from
    /// it, decides nothing.
    pub fn fixes_all_others(&self) -> bool {
        let others = self.nodes.iter().enumerate().filter(|(index, _)| *index != self.here);
        others.into_iter().all(|(_, node)| node.subnets.len() >= self.networks.len())
    }

    /// The bridge of this node, which has these segments.
    pub fn bridge_with(&self, segments: Vec<IpNet>) -> BridgeConfig {
        BridgeConfig { addresses: Addresses::Subnets(segments), ..self.bridge.clone() }
    }
}

fn networks(bridge: &BridgeConfig) -> Result<Vec<IpNet>, Error> {
    let Addresses::Subnets(networks) = &bridge.addresses else { return Err(Contradiction::NoNetwork.into()) };
    for (index, network) in networks.iter().enumerate() {
        if matches!(network.addr(), std::net::IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
            return Err(unsupported(
                "network",
                network.to_string(),
                Reason::Not("a network: write it as an IPv4 subnet"),
            ));
        }
        if network.max_prefix_len() - network.prefix_len() < sizes::LEAST_BITS {
            return Err(unsupported("network", network.to_string(), Reason::TooSmall));
        }
        if let Some(other) = networks[..index].iter().find(|other| is_v6(other) == is_v6(network)) {
            return Err(Contradiction::OnePerFamily(*other, *network).into());
        }
    }
    Ok(networks.clone())
}

fn tunnel(low: &Low) -> Result<(Policy, Mode), Error> {
    let mode = match low.tunnel_mode.as_deref() {
        None | Some("ipip" | "ip6ip6") => Mode::Ipip,
        Some("gre") => Mode::Gre,
        Some("vxlan") => Mode::Vxlan,
        Some("wireguard") => Mode::Wireguard,
        Some(other) => {
            let what = "\"ipip\", \"ip6ip6\", \"gre\", \"vxlan\" or \"wireguard\"";
            return Err(unsupported("tunnelMode", other, Reason::MustBe(what)));
        }
    };
    let policy = match low.tunnel.as_deref() {
        Some("always") => Policy::Always,
        Some("never") if mode == Mode::Wireguard => return Err(Contradiction::NeverEncrypted.into()),
        Some("never") => Policy::Never,
        None | Some("auto") if mode == Mode::Wireguard => Policy::Always,
        None | Some("auto") => Policy::Auto,
        Some(other) => {
            return Err(unsupported("tunnel", other, Reason::MustBe("\"auto\", \"always\" or \"never\"")));
        }
    };
    Ok((policy, mode))
}

/// Also where the mode has no use for it: modes change node by node, and the key stays.
fn udp_port(port: i64, mode: Mode) -> Result<u16, Error> {
    let refuse = |reason| unsupported("port", port, reason);
    match u16::try_from(port) {
        Ok(0) | Err(_) => Err(refuse(Reason::MustBe("between 1 and 65535"))),
        Ok(port) if mode == Mode::Vxlan && OTHERS_VXLAN.contains(&port) => Err(refuse(Reason::OthersPort)),
        Ok(port) => Ok(port),
    }
}

/// True for IPv6.
pub(in crate::routed) fn is_v6(network: &IpNet) -> bool {
    network.addr().is_ipv6()
}

/// The texts of a value that is one, or a list of them.
fn texts(value: &Value) -> Result<Vec<String>, JsonError> {
    match value {
        Value::String(one) => Ok(vec![one.clone()]),
        list => json::from_value(list),
    }
}

fn unsupported(key: impl Into<String>, value: impl Into<Value>, reason: Reason) -> Error {
    Error::Unsupported { key: key.into(), value: json::shown(&value.into()), reason }
}

#[cfg(test)]
pub(crate) mod tests;
