//! The plugins: CNI calls, translated for the core.

pub mod bridge;
pub mod ipam;
pub mod portmap;
pub mod routed;

pub use bridge::Bridge;
pub use ipam::Ipam;
pub use portmap::Portmap;
pub use routed::Routed;
