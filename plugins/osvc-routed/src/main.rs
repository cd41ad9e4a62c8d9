//! `osvc-routed`: attaches containers to one subnet for a cluster, of which each node has a segment.

use std::process::ExitCode;

fn main() -> ExitCode {
    // In a process of its own, for the hooks.
    let hooks = osvc_cni::routed::hooks::supervise();
    hooks.unwrap_or_else(|| osvc_cni::protocol::run(&osvc_cni::plugin::Routed))
}
