//! Routed networks: one subnet for the cluster, a segment of it for each node, routes or tunnels between them.
//!
//! The same configuration is on every node ([`config`]). Each of them works out from it which segment is whose, and
//! remembers that, so that no later edit moves anybody ([`segments`]), and a wrong name makes no second one of a node
//! ([`identity`]). On its own segment a node has a bridge like any other: [`crate::network`]. From the names and addresses
//! of its peers ([`resolve`], [`resolution`], [`own_address`]) and the kernel's routes ([`path`]) follows how each is
//! reached ([`ways`]), and by which devices ([`devices`]). [`node`] makes the kernel
//! so, and [`record`]s it. Whoever wants to know is told of it ([`peer_file`], [`hooks`]).

pub mod config;
pub mod devices;
pub mod error;
pub mod fault;
pub(crate) mod file;
pub mod hooks;
pub mod identity;
pub mod mode;
pub mod mtu;
pub mod node;
pub mod own_address;
pub mod parameters;
pub mod path;
pub mod peer_file;
pub mod peers;
pub mod private_key;
mod reconcile;
pub mod record;
pub mod resolution;
pub mod resolve;
pub mod segments;
pub mod usable;
mod wanted;
pub mod ways;

pub use config::RoutedConfig;
pub use error::Error;
pub use node::Outcome;
pub use record::RoutedRecord;
pub use segments::{Plan, SegmentRecord};
