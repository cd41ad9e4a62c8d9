//! `osvc-bridge`: attaches containers to a bridge, with one line of configuration.

use std::process::ExitCode;

fn main() -> ExitCode {
    osvc_cni::protocol::run(&osvc_cni::plugin::Bridge)
}
