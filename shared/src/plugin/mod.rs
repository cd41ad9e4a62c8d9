//! The plugins: CNI calls, translated for the core.

pub mod bridge;
pub mod ipam;
pub mod portmap;

pub use bridge::Bridge;
pub use ipam::Ipam;
pub use portmap::Portmap;
