//! rtnetlink (rtnetlink(7)), and WireGuard's generic netlink: one request, one answer, no state kept here.
//!
//! Answers are read attribute by attribute, and only those that are used, so that what a later kernel
//! adds or lengthens cannot make an answer unreadable.

pub mod address;
mod attributes;
pub mod error;
mod generic;
pub mod link;
mod link_change;
mod link_request;
pub mod link_vlan;
pub mod mac;
pub mod neighbour;
pub mod netns;
mod request;
pub mod route;
pub mod socket;
pub mod tunnel;
pub mod wireguard;

pub use address::Address;
pub use error::Error;
pub use link::{BridgeVlans, Link};
pub use link_change::{NewBridge, NewLocalPair, NewPair};
pub use link_vlan::PortVlan;
pub use mac::Mac;
pub use neighbour::{ForwardingEntry, Neighbour};
pub use netns::{Netns, NetnsId};
pub use route::{HostRoute, NewRoute, RouteEntry, RouteFilter, RouteTarget};
pub use socket::RouteSocket;
pub use tunnel::{NewTunnel, Tunnel, TunnelDevice, TunnelKind};
pub use wireguard::WireguardSocket;

/// Link group of every device that we make (`ip link show group 79`).
pub const GROUP: u32 = 79;

/// Routing protocol of every route that we make (`ip route show proto 79`).
pub const PROTOCOL: u8 = 79;

#[cfg(test)]
pub(crate) mod testing;
