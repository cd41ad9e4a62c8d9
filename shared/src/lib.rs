//! Container networks with stable addresses: the library behind the `osvc-*` CNI plugins and `osvc-net`.
//!
//! The core ([`ipam`], [`network`], [`netlink`], [`firewall`]) speaks of networks and attachments and
//! reads no environment variable. CNI ([`protocol`]) is one front end; [`plugin`] joins the two.
#![deny(unsafe_code)]

pub mod attachment;
mod base64;
pub mod error;
pub mod firewall;
pub mod host;
mod index;
pub mod ipam;
pub mod lock;
pub mod netlink;
pub mod network;
mod order;
pub mod plugin;
pub mod portmap;
pub mod protocol;
pub mod route;
pub mod routed;
pub mod spoof;
pub mod teardown;
pub mod torn;

pub use attachment::{Attachment, ContainerId, InterfaceName, NetworkName};
pub use error::{Code, Error};
pub use host::Host;
pub use route::{Dns, Route};
