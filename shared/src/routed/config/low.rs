//! The configuration of a routed network, exactly as it arrives. What it shares with a bridge is in
//! [`network::config::Low`](crate::network::config::Low), read from the same document.

use serde::Deserialize;
use serde_json::Value;

/// The keys of a routed network that a bridge does not have.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Low {
    /// The subnet of the whole cluster, or one for each family. Also a key of bridges.
    pub network: Option<Value>,
    /// Prefix length of a node's segment; for two networks, a list of two.
    pub mask_per_node: Option<Value>,
    /// The former way: how many addresses a segment has. For two networks, one number or a list of two.
    pub ips_per_node: Option<Value>,
    /// `auto`, `always` or `never`.
    pub tunnel: Option<String>,
    /// `ipip` (`ip6ip6` is the same), `gre`, `vxlan` or `wireguard`.
    pub tunnel_mode: Option<String>,
    /// UDP port of vxlan and wireguard.
    pub port: Option<i64>,
    /// Names and numbers of routing tables that get the routes too.
    pub tables: Option<Vec<Value>>,
    /// All nodes of the cluster: each a [`LowNode`], and nothing besides.
    pub nodes: Option<Vec<Value>>,
    /// Which of them this one is.
    pub node: Option<String>,
}

/// One of `nodes`. These are our own words: no runtime adds keys here, and one that is misspelt would say nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LowNode {
    /// Its name.
    pub name: Option<String>,
    /// Where the others reach it: an address or a name, or a list of them. Absent: its name.
    pub addr: Option<Value>,
    /// Its segment, or one for each family. Absent: the lowest free one.
    pub subnet: Option<Value>,
    /// It is gone; its segment stays empty.
    pub retired: bool,
    /// Its WireGuard key, in base64.
    pub public_key: Option<String>,
}

impl LowNode {
    /// All its keys.
    pub const KEYS: [&str; 5] = ["name", "addr", "subnet", "retired", "publicKey"];
}
