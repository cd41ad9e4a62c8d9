//! The configuration of a bridge network, exactly as it arrives.

use serde::Deserialize;
use serde_json::Value;

use crate::Dns;

/// The keys of the reference `bridge` plugin and ours, as they arrive.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Low {
    /// Ours: the subnet, or a list of them. Everything else follows.
    pub network: Option<Value>,
    /// Ours: the addresses are known outside; nothing is masqueraded.
    pub public: bool,
    /// Ours: `auto` or `never`.
    pub forward_accept: Option<String>,
    /// Ours: containers of other networks of this host are out of reach, and these out of theirs.
    pub isolate: bool,
    /// Ours: a container sends from its own addresses only.
    pub spoofcheck: bool,
    /// Name of the bridge.
    pub bridge: Option<String>,
    /// The bridge has the gateway's address.
    pub is_gateway: Option<bool>,
    /// … and the containers a default route to it.
    pub is_default_gateway: Option<bool>,
    /// A clashing address of the bridge is replaced.
    pub force_address: bool,
    /// Masquerade: a boolean, or one for each of `v4` and `v6`.
    pub ip_masq: Option<Value>,
    /// Any: ours is nftables, always.
    pub ip_masq_backend: Option<String>,
    /// MTU in bytes.
    pub mtu: i64,
    /// Frames may leave by the port where they came in.
    pub hairpin_mode: Option<bool>,
    /// The bridge takes up all frames.
    pub promisc_mode: bool,
    /// The VLAN of the containers; 0 for none.
    pub vlan: i64,
    /// The VLANs that containers tag themselves: each a [`LowTrunk`].
    pub vlan_trunk: Vec<LowTrunk>,
    /// With `vlan` or `vlanTrunk`: the port stays in VLAN 1, too.
    pub preserve_default_vlan: bool,
    /// A container sends from its own MAC address only.
    pub macspoofchk: bool,
    /// IPv6 addresses wait for duplicate address detection.
    pub enabledad: bool,
    /// Containers with this key do not reach each other through the bridge.
    pub port_isolation: bool,
    /// The container's end stays down.
    pub disable_container_interface: bool,
    /// Who gives the addresses.
    pub ipam: Option<LowIpam>,
    /// Replaces what IPAM says.
    pub dns: Dns,
    /// `args.cni.mac`.
    pub args: LowArgs,
    /// `runtimeConfig.mac`.
    pub runtime_config: LowMac,
}

/// One of `vlanTrunk`: a VLAN, or all from one to another.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct LowTrunk {
    /// One VLAN.
    pub id: Option<i64>,
    /// The first of several.
    #[serde(rename = "minID")]
    pub min_id: Option<i64>,
    /// The last of several.
    #[serde(rename = "maxID")]
    pub max_id: Option<i64>,
}

/// What of `ipam` concerns the bridge.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LowIpam {
    /// The plugin.
    pub r#type: Option<String>,
    /// Beside `network`, a contradiction.
    pub subnet: Option<Value>,
    /// Beside `network`, a contradiction.
    pub ranges: Option<Value>,
}

/// `args`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LowArgs {
    /// `args.cni`.
    pub cni: LowMac,
}

/// A place where a MAC address can be asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LowMac {
    /// The address, as text.
    pub mac: Option<String>,
}

/// `ipMasq` for each family.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LowFamilies {
    /// IPv4.
    pub v4: Option<bool>,
    /// IPv6.
    pub v6: Option<bool>,
}
