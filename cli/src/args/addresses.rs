//! The part of the command line that concerns addresses and names.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Format, Listing};

/// What to do with addresses.
#[derive(Debug, Subcommand)]
pub enum IpCommand {
    /// List who has, or last had, which address
    #[command(visible_alias = "list", after_long_help = include_str!("examples/ip-ls.txt"))]
    Ls(Listing),
    /// Tell which address a key has or would get, and why not another
    #[command(after_long_help = include_str!("examples/ip-explain.txt"))]
    Explain(Explain),
    /// Reserve an address for a key, before its first start or for ever
    #[command(after_long_help = include_str!("examples/ip-reserve.txt"))]
    Reserve(Reserve),
    /// Take a reservation back; what runs keeps its address until it ends
    #[command(after_long_help = include_str!("examples/ip-unreserve.txt"))]
    Unreserve(Unreserve),
    /// Give back an address that is held in vain
    #[command(after_long_help = include_str!("examples/ip-release.txt"))]
    Release(Release),
    /// List who had which address before
    #[command(after_long_help = include_str!("examples/ip-history.txt"))]
    History(History),
}

/// Whose address: a key in a network.
#[derive(Debug, Args)]
pub struct Whose {
    /// The network
    #[arg(short, long, value_name = "NETWORK")]
    pub network: String,

    /// The key: a container's or a pod's name, as `osvc-net ip ls` shows it
    #[arg(value_name = "KEY")]
    pub key: String,

    /// Where the key comes from: osvc, k8s, podman, nomad, nerdctl, container or template [default: as recorded, else by
    /// the form of the key]
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
}

/// Which address, and why.
#[derive(Debug, Args)]
pub struct Explain {
    /// Whose.
    #[command(flatten)]
    pub whose: Whose,

    /// Which of several containers of this key that run at the same time, counted from 0 [default: the one that runs,
    /// and the next one]
    #[arg(long, value_name = "NUMBER")]
    pub instance: Option<u32>,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// An address for a key.
#[derive(Debug, Args)]
pub struct Reserve {
    /// Whose.
    #[command(flatten)]
    pub whose: Whose,

    /// The address [default: the one that the key has or would get]
    #[arg(value_name = "ADDRESS")]
    pub address: Option<std::net::IpAddr>,

    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// An address that is to be reserved no longer.
#[derive(Debug, Args)]
pub struct Unreserve {
    /// The network
    #[arg(short, long, value_name = "NETWORK")]
    pub network: String,

    /// The key, or the address
    #[arg(value_name = "KEY|ADDRESS")]
    pub what: String,

    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// An address that is to be given back.
#[derive(Debug, Args)]
pub struct Release {
    /// The network
    #[arg(short, long, value_name = "NETWORK")]
    pub network: String,

    /// The key, or the address
    #[arg(value_name = "KEY|ADDRESS")]
    pub what: String,

    /// Also if its holder is alive, or may be
    #[arg(long)]
    pub force: bool,

    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What happened to addresses.
#[derive(Debug, Args)]
pub struct History {
    /// Only of this network; may be repeated [default: all]
    #[arg(short, long, value_name = "NETWORK")]
    pub network: Vec<String>,

    /// Only of this key, or of this address
    #[arg(value_name = "KEY|ADDRESS")]
    pub what: Option<String>,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// Names of containers for resolvers.
#[derive(Debug, Args)]
#[command(after_long_help = include_str!("examples/hosts.txt"))]
pub struct Hosts {
    /// Only of this network; may be repeated [default: all]
    #[arg(short, long, value_name = "NETWORK")]
    pub network: Vec<String>,

    /// Each name with this domain too; may be repeated
    #[arg(long, value_name = "DOMAIN")]
    pub search: Vec<String>,

    /// Write this file, atomically and only if it changes [default: print it]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Print it, and leave the file alone
    #[arg(long)]
    pub dry_run: bool,
}

/// Taking over from host-local, or giving back to it.
#[derive(Debug, Args)]
#[command(after_long_help = include_str!("examples/adopt.txt"))]
pub struct Adopt {
    /// Only this network; may be repeated [default: all that an osvc plugin gives addresses of]
    #[arg(short, long, value_name = "NETWORK")]
    pub network: Vec<String>,

    /// The way back: write host-local's files for all that is held
    ///
    /// Before the types in the conflist are changed back, and once more afterwards, for what was started in between.
    /// Without --network only of networks whose addresses host-local could give.
    #[arg(long)]
    pub undo: bool,

    /// Where libcni keeps the results of the runtimes; may be repeated [default: /var/lib/cni/results, which they share,
    /// and that of multus, /var/lib/cni/multus/results]
    #[arg(long, value_name = "FOLDER")]
    pub results: Vec<PathBuf>,

    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}
