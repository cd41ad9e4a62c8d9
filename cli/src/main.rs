//! `osvc-net`: what an operator asks of the container networks of this host.

mod adopt;
mod args;
mod claim;
mod conf;
mod conf_edit;
mod doctor;
mod document;
mod error;
mod fsck;
mod gc;
mod hosts;
mod interrupt;
mod ip;
mod lint;
mod locate;
mod ls;
mod manual;
mod metrics;
mod nearest;
mod networks;
mod nodes;
mod output;
mod patch;
mod peers;
mod port;
mod progress;
mod render;
mod routed_setup;
mod setup;
mod shape;
mod teardown;
mod torn;
mod waiting;
mod watch;
mod wireguard;

use std::collections::HashSet;
use std::process::ExitCode;

use clap::Parser;
use osvc_cni::plugin::routed;
use osvc_cni::routed::hooks;
use osvc_cni::teardown::How;

use args::{Arguments, ClaimCommand, Command, ConfCommand, IpCommand, Listing, PortCommand, WireguardCommand};
use error::Error;
use networks::Networks;

fn main() -> ExitCode {
    if let Some(code) = hooks::supervise() {
        return code;
    }
    let arguments = Arguments::parse();
    if arguments.command.changes_something() {
        interrupt::between_steps();
    } else {
        interrupt::at_once();
    }
    torn::respect(&arguments.command);
    let ended = run(&arguments);
    // Of the networks that it was about.
    let torn = torn::take();
    let code = match ended {
        Ok(()) if torn.is_empty() => ExitCode::SUCCESS,
        ended => {
            let mut errors = ended.err().unwrap_or_default();
            errors.extend(torn.into_iter().map(Error::from));
            let denied = errors.iter().any(Error::is_denied);
            // What is wrong with a record is met by everybody who reads it.
            let mut told = HashSet::new();
            for error in errors {
                if told.insert(error.to_string()) {
                    output::complain(&error);
                }
            }
            if denied && !nix::unistd::Uid::effective().is_root() {
                output::complain(&"not permitted: run it as root (sudo osvc-net …)");
            }
            ExitCode::FAILURE
        }
    };
    interrupt::no_more();
    // All is said by now, whatever they take.
    hooks::launch_and_wait();
    code
}

/// Runs the command. What goes wrong with one network does not keep it from the others.
fn run(arguments: &Arguments) -> Result<(), Vec<Error>> {
    let one = |result: Result<(), Error>| result.map_err(|error| vec![error]);
    match &arguments.command {
        Command::Completion(completion) => return one(manual::completion(completion.shell)),
        Command::Man(man) => return one(manual::pages(man.folder.as_deref(), man.dry_run)),
        _ => {}
    }
    let host = osvc_cni::protocol::operator("osvc-net").map_err(|error| vec![osvc_cni::Error::from(error).into()])?;
    if let Command::Conf { command: ConfCommand::Lint { files, output } } = &arguments.command {
        return lint::run(&host, &arguments.conf_dir, files, *output);
    }
    let networks = Networks::load(&host, &arguments.conf_dir).map_err(|error| vec![error])?;
    match &arguments.command {
        Command::Setup { networks: names, dry_run, prune, quiet } => {
            let how = routed::How { dry_run: *dry_run, prune: *prune };
            setup::run(&host, networks.quietly(*quiet), names, how, *quiet)
        }
        Command::Teardown(what) => {
            teardown::run(&host, networks, what, How { dry_run: what.dry_run, force: what.force })
        }
        Command::Ls(what) => ls::run(&host, networks, what),
        Command::Ip { command } => match command {
            IpCommand::Ls(Listing { network, output }) => ip::list(&host, networks, network, *output),
            IpCommand::Explain(what) => ip::explain::run(&host, networks, what),
            IpCommand::Reserve(what) => ip::reserve::reserve(&host, networks, what),
            IpCommand::Unreserve(what) => ip::reserve::unreserve(&host, networks, what),
            IpCommand::Release(what) => ip::reserve::release(&host, networks, what),
            IpCommand::History(what) => ip::history::run(&host, networks, what),
        },
        Command::Port { command: PortCommand::Ls(Listing { network, output }) } => {
            port::list(&host, networks, network, *output)
        }
        Command::Claim { command: ClaimCommand::Ls(Listing { network, output }) } => {
            claim::list(&host, networks, network, *output)
        }
        Command::Peers(what) => peers::list(&host, networks, &what.networks, what.output),
        Command::Gc { networks: names, dry_run, quiet } => {
            gc::run(&host, networks.quietly(*quiet), names, *dry_run, *quiet)
        }
        Command::Fsck(what) => fsck::run(&host, networks, what),
        Command::Doctor(what) => doctor::run(&host, networks, what),
        Command::Adopt(what) => adopt::run(&host, networks, what),
        Command::Hosts(what) => hosts::run(&host, networks, what),
        Command::Render(what) => render::run(&host, networks, what),
        Command::Watch(what) => watch::run(&host, networks, what),
        Command::Metrics(what) => metrics::run(&host, networks, what),
        Command::Wireguard { command: WireguardCommand::Pubkey { network, new, dry_run } } => {
            wireguard::print_public_key(&host, networks, network, *new, *dry_run)
        }
        Command::Conf { command } => conf_edit::run(&host, networks, command),
        // Answered above.
        Command::Completion(_) | Command::Man(_) => Ok(()),
    }
}
