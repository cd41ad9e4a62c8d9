//! Tests that need another kernel than the running one: Debian's, in a VM. The same code is run there; and the VM itself
//! is tested here.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod foreign_tunnels;
mod harness;
mod main_plugins;
mod netlink;
mod nodes;
mod portmap;
mod routed;
mod tunnels;
mod vlan;

/// Servers and clients.
const TALK: &str = env!("CARGO_BIN_EXE_talk");
