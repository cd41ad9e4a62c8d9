//! `osvc-ipam`: gives a workload the same address across restart, recreate and reboot.

use std::process::ExitCode;

fn main() -> ExitCode {
    osvc_cni::protocol::run(&osvc_cni::plugin::Ipam)
}
