//! The configuration as it arrives: what the reference portmap reads, and what is ours.

use serde::Deserialize;
use serde_json::Value;

/// What says how ports are published.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Options {
    /// Masquerade what comes from the container's own subnet and from 127.0.0.1.
    pub snat: Option<bool>,
    /// Masquerade everything that is translated.
    pub masq_all: Option<bool>,
    /// The reference's mark, which we have no use for.
    pub mark_masq_bit: Option<i64>,
    /// `nftables`.
    pub backend: Option<String>,
    /// Refused.
    pub external_set_mark_chain: Option<String>,
    /// Refused.
    pub conditions_v4: Option<Vec<Value>>,
    /// Refused.
    pub conditions_v6: Option<Vec<Value>>,
    /// Ours: who may connect.
    pub allow_from: Option<Vec<String>>,
}

/// What says which ports are published.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Ports {
    /// `runtimeConfig`: the capability `portMappings`.
    pub runtime_config: Option<RuntimeConfig>,
    /// `args`.
    pub args: Option<Args>,
}

/// `runtimeConfig`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RuntimeConfig {
    /// The capability `portMappings`.
    pub port_mappings: Option<Vec<PortMapping>>,
}

/// One of `runtimeConfig.portMappings`. go-cni writes the keys with capitals.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PortMapping {
    /// Whatever it is, a fault is told with the entry.
    pub host_port: Option<Value>,
    /// The same.
    pub container_port: Option<Value>,
    /// Absent: tcp.
    pub protocol: Option<String>,
    /// Absent: all addresses of the host.
    #[serde(rename = "hostIP")]
    pub host_ip: Option<String>,
}

/// `args`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Args {
    /// `args.cni`.
    pub cni: Option<CniArgs>,
}

/// `args.cni` (CNI conventions).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CniArgs {
    /// A string, or a list of them.
    #[serde(rename = "osvc.expose")]
    pub expose: Option<Value>,
}
