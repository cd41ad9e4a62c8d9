//! What this node has of the network itself: the bridge, and its addresses there.

use std::net::{IpAddr, Ipv4Addr};

use crate::netlink::{Link, RouteSocket};
use crate::routed::wanted::Wanted;
use crate::routed::{Error, RoutedConfig};

/// What this node has of the network itself.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// The network's bridge, if it is there.
    pub bridge: Option<Link>,
    /// This node's addresses in the network, as its bridge has them, which can be used by now.
    pub gateways: Vec<IpAddr>,
    /// All of them can be used.
    pub settled: bool,
}

impl Own {
    pub fn of(socket: &mut RouteSocket, config: &RoutedConfig, wanted: &Wanted<'_>) -> Result<Self, Error> {
        let Some(bridge) = socket.link_by_name(&config.bridge.bridge.name)? else { return Ok(Self::default()) };
        let mut addresses = socket.addresses(&bridge)?;
        addresses.retain(|found| wanted.here.iter().any(|segment| segment.contains(&found.address.addr())));
        let settled = addresses.iter().all(|found| !found.is_tentative());
        addresses.retain(|found| !found.is_tentative());
        let gateways = addresses.into_iter().map(|found| found.address.addr()).collect();
        Ok(Self { bridge: Some(bridge), gateways, settled })
    }

    /// The one that tunnels have which carry IPv4.
    pub fn v4(&self) -> Option<Ipv4Addr> {
        self.gateways.iter().find_map(|gateway| match gateway {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        })
    }
}
