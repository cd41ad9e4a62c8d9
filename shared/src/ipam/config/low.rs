//! The configuration of addresses as it arrives: what host-local reads, and what is ours.
//!
//! Addresses are text here, so that a bad one is reported with the key that holds it.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The parts of a network configuration that concern addresses.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Network {
    /// `ipam`.
    pub ipam: Option<Ipam>,
    /// `runtimeConfig`: the capabilities `ips` and `ipRanges`.
    pub runtime_config: Option<RuntimeConfig>,
    /// `args`.
    pub args: Option<Args>,
}

/// `ipam`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Ipam {
    /// Name of the plugin that allocates.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// One range, written without `ranges`.
    pub subnet: Option<String>,
    /// See [`Range::range_start`].
    pub range_start: Option<String>,
    /// See [`Range::range_end`].
    pub range_end: Option<String>,
    /// See [`Range::gateway`].
    pub gateway: Option<String>,
    /// One address out of each inner list.
    pub ranges: Option<Vec<Vec<Range>>>,
    /// Routes, given to the containers as they are.
    pub routes: Option<Vec<Route>>,
    /// A resolv.conf(5) file, for `dns` of the result.
    pub resolv_conf: Option<String>,
    /// Where the reference keeps its records; ours go to `osvc/` in it.
    pub data_dir: Option<String>,
    /// Ours: addresses, subnets and spans `first-last` that are given only when asked for.
    pub exclude: Option<Vec<String>>,
    /// Ours: a template for the allocation key.
    pub key: Option<String>,
    /// Ours: does STATUS fail when a range is full? Yes, unless this is false.
    pub status_when_full: Option<bool>,
    /// Ours: the folder of host-local's records of this network.
    pub host_local_dir: Option<String>,
    /// Ours: the folder of OpenSVC's records of this network.
    pub opensvc_ipam_dir: Option<String>,
    /// Ours: limits per namespace.
    pub claims: Option<Map<String, Value>>,
}

/// A pool.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Range {
    /// CIDR, without host bits.
    pub subnet: Option<String>,
    /// First address; absent: the second of the subnet.
    pub range_start: Option<String>,
    /// Last address; absent: the last usable one of the subnet.
    pub range_end: Option<String>,
    /// Next hop; absent: the second address of the subnet.
    pub gateway: Option<String>,
}

/// A route (CNI spec 1.1.0, `routes`).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Route {
    /// CIDR.
    pub dst: Option<String>,
    /// Next hop.
    pub gw: Option<String>,
    /// Bytes; 0: unset.
    pub mtu: Option<u32>,
    /// Bytes; 0: unset.
    pub advmss: Option<u32>,
    /// Lower wins; 0: unset.
    pub priority: Option<u32>,
    /// Routing table.
    pub table: Option<u32>,
    /// rtm_scope.
    pub scope: Option<u8>,
}

/// `runtimeConfig`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RuntimeConfig {
    /// Lists of lists of ranges; go-cni sends one flat list.
    pub ip_ranges: Option<Vec<Value>>,
    /// Requested addresses, with or without prefix length.
    pub ips: Option<Vec<String>>,
}

/// `args`: whatever tools keep there, and `cni`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Args {
    /// `args.cni` (CNI conventions): `ips`, and our `osvc.key`.
    pub cni: Option<Value>,
}

/// `args.cni`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CniArgs {
    /// Requested addresses, with or without prefix length.
    pub ips: Option<Vec<String>>,
}

/// The parts of a network configuration that say where records are: all that DEL may depend on.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Folders {
    /// See [`Ipam::data_dir`].
    pub data_dir: Option<Value>,
    /// See [`Ipam::host_local_dir`].
    pub host_local_dir: Option<Value>,
    /// See [`Ipam::opensvc_ipam_dir`].
    pub opensvc_ipam_dir: Option<Value>,
}
