//! The part of the command line by which an operator watches over a host.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;

use super::{Format, Listing};

/// What to do with claims.
#[derive(Debug, Subcommand)]
pub enum ClaimCommand {
    /// List how many addresses each namespace may hold (`ipam.claims`), and holds
    #[command(visible_alias = "list", after_long_help = include_str!("examples/claim-ls.txt"))]
    Ls(Listing),
}

/// What to do with host ports.
#[derive(Debug, Subcommand)]
pub enum PortCommand {
    /// List which port of this host leads to which container
    #[command(visible_alias = "list", after_long_help = include_str!("examples/port-ls.txt"))]
    Ls(Listing),
}

/// Networks to take off a node.
#[derive(Debug, Args)]
pub struct Teardown {
    /// The networks
    #[arg(value_name = "NETWORK", required_unless_present = "all", conflicts_with = "all")]
    pub networks: Vec<String>,

    /// All networks of osvc plugins
    #[arg(long)]
    pub all: bool,

    /// Say what would be removed, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Also while containers have addresses or host ports in it
    ///
    /// A bridge with ports stays, without its gateway addresses.
    #[arg(long)]
    pub force: bool,
}

/// Networks to list, or to look at.
#[derive(Debug, Args)]
pub struct Chosen {
    /// The networks [default: all]
    #[arg(value_name = "NETWORK")]
    pub networks: Vec<String>,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// Stores to be compared with themselves and the kernel.
#[derive(Debug, Args)]
#[command(after_long_help = include_str!("examples/fsck.txt"))]
pub struct Fsck {
    /// The networks [default: all]
    #[arg(value_name = "NETWORK")]
    pub networks: Vec<String>,

    /// Put right what can be put right without losing anything
    #[arg(long)]
    pub repair: bool,

    /// Say what --repair would do, and do nothing
    #[arg(long, requires = "repair")]
    pub dry_run: bool,

    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Format,
}

/// A template to be filled in.
#[derive(Debug, Args)]
#[command(after_long_help = include_str!("examples/render.txt"))]
pub struct Render {
    /// The template (minijinja); - for standard input
    #[arg(value_name = "TEMPLATE")]
    pub template: PathBuf,

    /// Write this file, atomically and only if it changes [default: print it]
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,

    /// Print it, and leave the file alone
    #[arg(long)]
    pub dry_run: bool,
}

/// Events to be waited for.
#[derive(Debug, Args)]
#[command(after_long_help = include_str!("examples/watch.txt"))]
pub struct Watch {
    /// The networks [default: all]
    #[arg(value_name = "NETWORK")]
    pub networks: Vec<String>,

    /// Begin with what is there
    #[arg(long)]
    pub existing: bool,
}

/// Figures for Prometheus.
#[derive(Debug, Args)]
#[command(after_long_help = include_str!("examples/metrics.txt"))]
pub struct Metrics {
    /// Write this file, atomically, for the node exporter's textfile collector [default: print them]
    #[arg(long, value_name = "FILE")]
    pub textfile: Option<PathBuf>,

    /// Print them, and leave the file alone
    #[arg(long, requires = "textfile")]
    pub dry_run: bool,
}

/// A script for a shell.
#[derive(Debug, Args)]
pub struct Completion {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Manual pages.
#[derive(Debug, Args)]
pub struct Man {
    /// Where to write them, one for each command [default: print that of osvc-net]
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,

    /// Say which files would be written, and do nothing
    #[arg(long, requires = "folder")]
    pub dry_run: bool,
}
