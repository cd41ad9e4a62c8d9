//! What a network looks like in the kernel: its bridge, and the pair that joins a container to it.
//!
//! A network is set up once in a boot, under a lock, and recorded ([`setup`], [`record`]); after that
//! an attachment costs a pair, its addresses and routes ([`port`], [`container`]).

pub mod alias;
mod bridge;
pub mod check;
pub mod cluster;
pub mod config;
pub mod container;
pub mod error;
pub mod forwarding;
pub mod leaving;
pub mod mac;
pub mod mtu;
pub mod names;
pub mod overlap;
pub mod port;
mod promiscuous;
pub mod record;
mod refuse;
pub mod rejoin;
pub mod setup;
pub mod sysctl;
pub mod undo;
pub mod vlan;
pub mod wanted;

pub use config::{BridgeConfig, Vlans};
pub use error::Error;
pub use record::NetworkRecord;
pub use wanted::Wanted;
