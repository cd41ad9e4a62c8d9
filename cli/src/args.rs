//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

mod addresses;
mod changes;
mod operate;
mod routed;

pub use addresses::{Adopt, Explain, History, Hosts, IpCommand, Release, Reserve, Unreserve};
pub use operate::{Chosen, ClaimCommand, Completion, Fsck, Man, Metrics, PortCommand, Render, Teardown, Watch};
pub use routed::{ConfCommand, NewBridge, NewCommand, NewRouted, WireguardCommand};

/// The container networks of this host: set them up, see who has which address, sweep.
#[derive(Debug, Parser)]
#[command(name = "osvc-net", version, about, arg_required_else_help = true)]
pub struct Arguments {
    /// Where the network configurations are; may be repeated [default: /etc/cni/net.d and its folders, /opt/cni/config,
    /// /var/lib/opensvc/cni/net.d]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub conf_dir: Vec<PathBuf>,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make bridges, gateway addresses, firewall rules and host ports what the configurations ask for
    ///
    /// A container's start does the same for its network. Repairs what was flushed or removed; changes nothing that is
    /// in place.
    #[command(after_long_help = include_str!("args/examples/setup.txt"))]
    Setup {
        /// The networks [default: all that are configured for osvc plugins]
        #[arg(value_name = "NETWORK")]
        networks: Vec<String>,

        /// Say what would be done, and do nothing
        #[arg(long)]
        dry_run: bool,

        /// Remove the tunnels of a routed network's former mode now, instead of after a day
        ///
        /// They receive from nodes that have not been changed yet: prune when all have.
        #[arg(long)]
        prune: bool,

        /// Say nothing of what is in place
        #[arg(short, long)]
        quiet: bool,
    },

    /// Take networks off this node: bridges, tunnels, routes and rules
    ///
    /// Whether they are configured or not. Addresses, segments and keys are remembered: a network that is set up again is
    /// what it was.
    #[command(after_long_help = include_str!("args/examples/teardown.txt"))]
    Teardown(Teardown),

    /// List the networks, and how full they are
    #[command(visible_alias = "list", after_long_help = include_str!("args/examples/ls.txt"))]
    Ls(Chosen),

    /// See and keep the addresses
    Ip {
        /// What to do.
        #[command(subcommand)]
        command: IpCommand,
    },

    /// See the host ports
    Port {
        /// What to do.
        #[command(subcommand)]
        command: PortCommand,
    },

    /// See what namespaces may hold
    Claim {
        /// What to do.
        #[command(subcommand)]
        command: ClaimCommand,
    },

    /// List the other nodes of routed networks, and how their containers are reached
    #[command(after_long_help = include_str!("args/examples/peers.txt"))]
    Peers(Chosen),

    /// Give back the addresses and host ports of containers that are gone
    ///
    /// Only of those that provably are: of another boot, or whose network namespace is gone. Not needed for a range to
    /// keep working, since the dead lose their addresses when these are needed.
    #[command(after_long_help = include_str!("args/examples/gc.txt"))]
    Gc {
        /// The networks [default: all]
        #[arg(value_name = "NETWORK")]
        networks: Vec<String>,

        /// Say what would be given back, and do nothing
        #[arg(long)]
        dry_run: bool,

        /// Do not tell of networks that have nothing to give back
        #[arg(short, long)]
        quiet: bool,
    },

    /// Compare the stores with their indexes and with the kernel
    Fsck(Fsck),

    /// Find what keeps containers of this host from their networks, or will
    ///
    /// Each finding: what it is, why it matters, and the command that helps. Nothing is printed about what is in order.
    #[command(after_long_help = include_str!("args/examples/doctor.txt"))]
    Doctor(Chosen),

    /// Take the addresses of running containers over from host-local, or give them back
    ///
    /// Change the type in the conflist first. No container is stopped; each keeps its address at its next start. May be
    /// repeated, and stopped at any point.
    Adopt(Adopt),

    /// Print or write a hosts file with the names of all containers
    Hosts(Hosts),

    /// Fill in a template with what is known of networks and tunnels
    ///
    /// The functions of a template: network("NAME"), networks(), tunnels().
    Render(Render),

    /// Print changes of addresses, host ports and peers as they happen, a line of JSON each
    Watch(Watch),

    /// Print figures of all networks for Prometheus
    Metrics(Metrics),

    /// Write, check and edit network configurations
    Conf {
        /// What to do.
        #[command(subcommand)]
        command: ConfCommand,
    },

    /// WireGuard keys of routed networks
    Wireguard {
        /// What to do.
        #[command(subcommand)]
        command: WireguardCommand,
    },

    /// Print a script that completes this command's words
    Completion(Completion),

    /// Print or write the manual pages
    Man(Man),
}

/// What to list, and how.
#[derive(Debug, Args)]
pub struct Listing {
    /// Only of this network; may be repeated [default: all]
    #[arg(short, long, value_name = "NETWORK")]
    pub network: Vec<String>,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// How to print a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// For programs: all that is recorded
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn networks_and_options() {
        let arguments =
            Arguments::try_parse_from(["osvc-net", "ip", "ls", "--network", "a", "-n", "b", "-o", "json"]).unwrap();
        let Command::Ip { command: IpCommand::Ls(Listing { network, output }) } = arguments.command else {
            panic!("not ip ls")
        };
        assert_eq!((network, output), (vec!["a".to_owned(), "b".to_owned()], Format::Json));
        let arguments = Arguments::try_parse_from(["osvc-net", "gc", "a", "--dry-run", "--conf-dir", "/x"]).unwrap();
        assert_eq!(arguments.conf_dir, [PathBuf::from("/x")]);
        assert!(matches!(arguments.command, Command::Gc { networks, dry_run: true, .. } if networks == ["a"]));
        assert!(Arguments::try_parse_from(["osvc-net", "ip", "ls", "-o", "yaml"]).is_err());
        assert!(Arguments::try_parse_from(["osvc-net", "teardown"]).is_err(), "all networks are never meant by none");
        assert!(Arguments::try_parse_from(["osvc-net", "teardown", "a", "--all"]).is_err(), "one of the two");
        assert!(
            Arguments::try_parse_from(["osvc-net", "fsck", "--dry-run"]).is_err(),
            "nothing is done without --repair"
        );
    }
}
