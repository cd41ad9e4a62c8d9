//! `osvc-net`: what an operator asks of the container networks of this host.

mod args;
mod claim;
mod conf;
mod conf_edit;
mod document;
mod error;
mod gc;
mod ip;
mod locate;
mod nearest;
mod networks;
mod nodes;
mod output;
mod patch;
mod peers;
mod port;
mod routed_setup;
mod setup;
mod teardown;
mod wireguard;

use std::process::ExitCode;

use clap::Parser;
use osvc_cni::plugin::routed;
use osvc_cni::routed::hooks;
use osvc_cni::teardown::How;

use args::{Arguments, ClaimCommand, Command, IpCommand, Listing, PortCommand, WireguardCommand};
use error::Error;
use networks::Networks;

fn main() -> ExitCode {
    if let Some(code) = hooks::supervise() {
        return code;
    }
    let arguments = Arguments::parse();
    let code = match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(errors) => {
            for error in errors {
                output::complain(&error);
            }
            ExitCode::FAILURE
        }
    };
    // All is said by now, whatever they take.
    hooks::launch_and_wait();
    code
}

/// Runs the command. What goes wrong with one network does not keep it from the others.
fn run(arguments: &Arguments) -> Result<(), Vec<Error>> {
    let host = osvc_cni::protocol::operator("osvc-net").map_err(|error| vec![osvc_cni::Error::from(error).into()])?;
    let networks = Networks::load(&host, arguments.conf_dir.as_deref()).map_err(|error| vec![error])?;
    match &arguments.command {
        Command::Setup { networks: names, dry_run, prune } => {
            setup::run(&host, networks, names, routed::How { dry_run: *dry_run, prune: *prune })
        }
        Command::Teardown { networks: names, dry_run, force } => {
            teardown::run(&host, networks, names, How { dry_run: *dry_run, force: *force })
        }
        Command::Gc { networks: names, dry_run } => gc::run(&host, networks, names, *dry_run),
        Command::Port { command: PortCommand::Ls(Listing { network, output }) } => {
            port::list(&host, networks, network, *output)
        }
        Command::Ip { command: IpCommand::Ls(Listing { network, output }) } => {
            ip::list(&host, networks, network, *output)
        }
        Command::Claim { command: ClaimCommand::Ls(Listing { network, output }) } => {
            claim::list(&host, networks, network, *output)
        }
        Command::Peers { networks: names, output } => peers::list(&host, networks, names, *output),
        Command::Wireguard { command: WireguardCommand::Pubkey { network, new } } => {
            wireguard::print_public_key(&host, networks, network, *new)
        }
        Command::Conf { command } => conf_edit::run(&host, networks, command),
    }
}
