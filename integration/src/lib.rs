//! Harness for the integration tests: machines of their own, the plugins as a runtime calls them, and the
//! runtimes themselves.
//!
//! A test never touches the host. [`Sandbox`] is a machine made of namespaces; it and all that runs in it is gone
//! when the value is dropped, when the test panics, and when the test process is killed.
// A harness speaks by panicking, with a sentence; its output is for people.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod capture;
mod chain;
pub mod cluster;
mod command;
pub mod containerd;
pub mod fault;
mod inspect;
mod plugin;
pub mod podman;
pub mod report;
mod sandbox;
mod talk;
pub mod trace;
mod transfer;
mod vm;
mod within;

pub use capture::{Capture, Packets};
pub use chain::{Container, Network, port, port_on};
pub use command::Output;
pub use inspect::{Leftovers, addresses_of, container_mac, gateway_of};
pub use plugin::{Family, Plugin, Reply, VERSIONS};
pub use sandbox::{Netns, Sandbox};
pub use talk::Flow;
pub use transfer::Transfer;
pub use vm::Vm;
pub use within::{Answer, Datagrams, Server};
