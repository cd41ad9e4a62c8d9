//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

mod routed;

pub use routed::{ConfCommand, NewCommand, NewRouted, WireguardCommand};

/// The container networks of this host: set them up, see who has which address, sweep.
#[derive(Debug, Parser)]
#[command(name = "osvc-net", version, about, arg_required_else_help = true)]
pub struct Arguments {
    /// Where the network configurations are [default: /etc/cni/net.d]
    #[arg(long, global = true, value_name = "FOLDER")]
    pub conf_dir: Option<PathBuf>,

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
    },

    /// Take networks off this node: bridges, tunnels, routes and rules
    ///
    /// Whether they are configured or not. Addresses, segments and keys are remembered: a network that is set up again is
    /// what it was.
    Teardown {
        /// The networks
        #[arg(value_name = "NETWORK", required = true)]
        networks: Vec<String>,

        /// Say what would be removed, and do nothing
        #[arg(long)]
        dry_run: bool,

        /// Also while containers have addresses or host ports in it
        ///
        /// A bridge with ports stays, without its gateway addresses.
        #[arg(long)]
        force: bool,
    },

    /// Give back the addresses and host ports of containers that are gone
    ///
    /// Only of those that provably are: of another boot, or whose network namespace is gone. Not needed for a range to
    /// keep working, since the dead lose their addresses when these are needed.
    Gc {
        /// The networks [default: all]
        #[arg(value_name = "NETWORK")]
        networks: Vec<String>,

        /// Say what would be given back, and do nothing
        #[arg(long)]
        dry_run: bool,
    },

    /// See the host ports
    Port {
        /// What to do.
        #[command(subcommand)]
        command: PortCommand,
    },

    /// List the other nodes of routed networks, and how their containers are reached
    Peers {
        /// The networks [default: all that are routed]
        #[arg(value_name = "NETWORK")]
        networks: Vec<String>,

        /// How to print it
        #[arg(short, long, value_enum, default_value_t)]
        output: Format,
    },

    /// WireGuard keys of routed networks
    Wireguard {
        /// What to do.
        #[command(subcommand)]
        command: WireguardCommand,
    },

    /// Write and edit network configurations
    Conf {
        /// What to do.
        #[command(subcommand)]
        command: ConfCommand,
    },

    /// See what namespaces may hold
    Claim {
        /// What to do.
        #[command(subcommand)]
        command: ClaimCommand,
    },

    /// See the addresses
    Ip {
        /// What to do.
        #[command(subcommand)]
        command: IpCommand,
    },
}

/// What to do with claims.
#[derive(Debug, Subcommand)]
pub enum ClaimCommand {
    /// List how many addresses each namespace may hold (`ipam.claims`), and holds
    #[command(visible_alias = "list")]
    Ls(Listing),
}

/// What to do with addresses.
#[derive(Debug, Subcommand)]
pub enum IpCommand {
    /// List who has, or last had, which address
    #[command(visible_alias = "list")]
    Ls(Listing),
}

/// What to do with host ports.
#[derive(Debug, Subcommand)]
pub enum PortCommand {
    /// List which port of this host leads to which container
    #[command(visible_alias = "list")]
    Ls(Listing),
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
        assert_eq!(arguments.conf_dir, Some("/x".into()));
        assert!(matches!(arguments.command, Command::Gc { networks, dry_run: true } if networks == ["a"]));
        assert!(Arguments::try_parse_from(["osvc-net", "ip", "ls", "-o", "yaml"]).is_err());
        assert!(Arguments::try_parse_from(["osvc-net", "teardown"]).is_err(), "all networks are never meant by none");
    }
}
