//! `osvc-net`: what an operator asks of the container networks of this host.

mod args;
mod conf;
mod error;
mod gc;
mod ip;
mod locate;
mod nearest;
mod networks;
mod output;
mod port;
mod setup;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command, IpCommand, Listing, PortCommand};
use error::Error;
use networks::Networks;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(errors) => {
            for error in errors {
                output::complain(&error);
            }
            ExitCode::FAILURE
        }
    }
}

/// Runs the command. What goes wrong with one network does not keep it from the others.
fn run(arguments: &Arguments) -> Result<(), Vec<Error>> {
    let host = osvc_cni::protocol::operator("osvc-net").map_err(|error| vec![osvc_cni::Error::from(error).into()])?;
    let networks = Networks::load(&host, arguments.conf_dir.as_deref()).map_err(|error| vec![error])?;
    match &arguments.command {
        Command::Setup { networks: names, dry_run } => setup::run(&host, networks, names, *dry_run),
        Command::Gc { networks: names, dry_run } => gc::run(&host, networks, names, *dry_run),
        Command::Port { command: PortCommand::Ls(Listing { network, output }) } => {
            port::list(&host, networks, network, *output)
        }
        Command::Ip { command: IpCommand::Ls(Listing { network, output }) } => {
            ip::list(&host, networks, network, *output)
        }
    }
}
