//! `osvc-portmap`: publishes ports of containers on the host, chained after the plugin that gave them their addresses.

use std::process::ExitCode;

fn main() -> ExitCode {
    osvc_cni::protocol::run(&osvc_cni::plugin::Portmap)
}
