//! The part of the command line that concerns routed networks.

use clap::{Args, Subcommand};

/// What to do with WireGuard keys.
#[derive(Debug, Subcommand)]
pub enum WireguardCommand {
    /// Print the public key of this node in a network, for `publicKey` of the node in the network's configuration
    ///
    /// The private one is made if there is none. It never leaves this node, and nothing prints it.
    Pubkey {
        /// The network
        #[arg(value_name = "NETWORK")]
        network: String,

        /// The network is not configured on this node yet
        #[arg(long)]
        new: bool,

        /// Make no private key; say that one would be made
        #[arg(long)]
        dry_run: bool,
    },
}

/// What to do with configurations.
#[derive(Debug, Subcommand)]
pub enum ConfCommand {
    /// Print a configuration, to be written to a file of /etc/cni/net.d
    New {
        /// What it is to be.
        #[command(subcommand)]
        command: NewCommand,
    },

    /// Say what is wrong with configurations: with file, line and column, and what may have been meant
    #[command(after_long_help = include_str!("examples/conf-lint.txt"))]
    Lint {
        /// The files [default: all of the folders of configurations]
        #[arg(value_name = "FILE")]
        files: Vec<std::path::PathBuf>,

        /// How to print it
        #[arg(short, long, value_enum, default_value_t)]
        output: super::Format,
    },

    /// Add a node to a routed network's configuration, and fix the segments of all
    ///
    /// The file is to be the same on all nodes: copy it, and run `osvc-net setup` on each. With segments fixed, no node
    /// can take one for free that another has, in whatever order they see the change.
    AddNode {
        /// The network
        #[arg(value_name = "NETWORK")]
        network: String,

        /// The node, as its host or /etc/osvc-cni/node calls it
        #[arg(value_name = "NODE")]
        node: String,

        /// Where the others reach it: an address or a name, or an address of each family [default: its name]
        #[arg(value_name = "ADDRESS")]
        addresses: Vec<String>,

        /// Its segment; may be repeated, one of each family [default: the lowest free one]
        #[arg(long, value_name = "SUBNET")]
        subnet: Vec<String>,

        /// Its WireGuard key, as `osvc-net wireguard pubkey` prints it there
        #[arg(long, value_name = "KEY")]
        public_key: Option<String>,

        /// Print the configuration, and leave the file alone
        #[arg(long)]
        dry_run: bool,
    },

    /// Take a node out of a routed network's configuration, and fix the segments of all others
    ///
    /// It is retired first: its segment stays empty. Once all nodes know that, the same command again removes it from
    /// the list, and its segment is free.
    RemoveNode {
        /// The network
        #[arg(value_name = "NETWORK")]
        network: String,

        /// The node
        #[arg(value_name = "NODE")]
        node: String,

        /// Print the configuration, and leave the file alone
        #[arg(long)]
        dry_run: bool,
    },
}

/// A configuration to be written.
#[derive(Debug, Subcommand)]
pub enum NewCommand {
    /// Networks of this host alone
    #[command(after_long_help = include_str!("examples/conf-new-bridge.txt"))]
    Bridge(NewBridge),
    /// One subnet for the cluster, of which each node has a segment
    Routed(NewRouted),
}

/// A bridge network to be.
#[derive(Debug, Args)]
pub struct NewBridge {
    /// Its name
    #[arg(value_name = "NAME")]
    pub name: String,

    /// Its subnet; may be repeated, one of each family
    #[arg(long, required = true, value_name = "SUBNET")]
    pub network: Vec<String>,

    /// No masquerading: its addresses are routable as they are
    #[arg(long)]
    pub public: bool,

    /// Nothing passes between this network and another one of this host
    #[arg(long)]
    pub isolate: bool,

    /// Its containers send only from their own addresses
    #[arg(long)]
    pub spoofcheck: bool,

    /// A VLAN of the bridge
    #[arg(long, value_name = "VLAN")]
    pub vlan: Option<u16>,

    /// The bridge device, also one that is there [default: obr_NAME]
    #[arg(long, value_name = "DEVICE")]
    pub bridge: Option<String>,

    /// Publish no host ports: without the plugin osvc-portmap
    #[arg(long)]
    pub no_ports: bool,
}

/// A routed network to be.
#[derive(Debug, Args)]
pub struct NewRouted {
    /// Its name
    #[arg(value_name = "NAME")]
    pub name: String,

    /// The subnet of the whole cluster; may be repeated, one of each family
    #[arg(long, required = true, value_name = "SUBNET")]
    pub network: Vec<String>,

    /// Prefix length of a node's segment; may be repeated, one for each network [default: 22 for IPv4]
    #[arg(long, value_name = "LENGTH")]
    pub mask_per_node: Vec<u8>,

    /// A node, in the order of the list: NAME, or NAME=ADDRESS, or NAME=ADDRESS,ADDRESS for both families
    #[arg(long, required = true, value_name = "NODE")]
    pub node: Vec<String>,

    /// When to tunnel: auto, always or never
    #[arg(long, value_name = "WHEN")]
    pub tunnel: Option<String>,

    /// How to tunnel: ipip, gre, vxlan or wireguard
    #[arg(long, value_name = "MODE")]
    pub mode: Option<String>,
}
