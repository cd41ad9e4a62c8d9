//! Names of devices.

use sha2::{Digest, Sha256};

use crate::attachment::hex;
use crate::{NetworkName, netlink};

/// What the names of our bridges begin with.
const PREFIX: &str = "obr_";
/// IFNAMSIZ without the closing NUL.
const LONGEST: usize = 15;
/// ALTIFNAMSIZ without the closing NUL.
const LONGEST_ALTNAME: usize = 127;

/// The name of a network's bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeName {
    /// The device's name.
    pub name: String,
    /// The full name, when the device's is short for it.
    pub altname: Option<String>,
}

impl BridgeName {
    /// `obr_<network>` when it fits in 15 bytes; else `obr_`, the first 3 bytes of the network's name,
    /// and 8 hex digits of SHA-256(name). Then the full name is an alternative name of the device, cut
    /// to 127 bytes.
    pub fn of(network: &NetworkName) -> Self {
        let network = network.as_str();
        let full = format!("{PREFIX}{network}");
        if full.len() <= LONGEST {
            return Self { name: full, altname: None };
        }
        let hash = hex(&Sha256::digest(network.as_bytes())[..4]);
        // All characters of a network's name are ASCII.
        let name = format!("{PREFIX}{}{hash}", &network[..3]);
        Self { name, altname: Some(full.chars().take(LONGEST_ALTNAME).collect()) }
    }
}

/// The names of the pair by which the host is in a VLAN of a bridge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VlanNames {
    /// The end with the gateway addresses: `<bridge>.<vlan>`, as the reference plugin has it, when that fits in 15 bytes;
    /// else `ol`, 8 hex digits of SHA-256(bridge), `.<vlan>`.
    pub device: String,
    /// The end that is a port of the bridge: `op`, the same 8 digits, `.<vlan>`.
    pub port: String,
}

impl VlanNames {
    /// Those of a VLAN of a bridge.
    pub fn of(bridge: &str, vlan: u16) -> Self {
        let full = format!("{bridge}.{vlan}");
        let short = |kind: &str| format!("{kind}{}.{vlan}", digits(bridge));
        Self { device: if full.len() <= LONGEST { full } else { short("ol") }, port: short("op") }
    }
}

/// True for the port by which the host is in a VLAN of this bridge: no container's.
pub fn is_vlan_port(link: &netlink::Link, bridge: &str) -> bool {
    let start = || format!("op{}.", digits(bridge));
    is_ours(link) && link.name.starts_with("op") && link.name.starts_with(&start())
}

fn digits(bridge: &str) -> String {
    hex(&Sha256::digest(bridge.as_bytes())[..4])
}

/// True for a device that carries our mark: its group, which an alias cannot be taken for.
pub fn is_ours(link: &netlink::Link) -> bool {
    link.group == netlink::GROUP
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(network: &str) -> BridgeName {
        BridgeName::of(&network.parse().unwrap())
    }

    #[test]
    fn a_short_name_is_the_whole_name() {
        assert_eq!(name("prod"), BridgeName { name: "obr_prod".into(), altname: None });
        assert_eq!(name("elevenbytes").name, "obr_elevenbytes");
    }

    #[test]
    fn br13_the_device_of_a_vlan_has_the_reference_s_name_when_it_fits() {
        let names = VlanNames::of("cni0", 100);
        assert_eq!((names.device.as_str(), names.port.len()), ("cni0.100", 14));
        let (long, other) = (VlanNames::of("obr_elevenbytes", 4094), VlanNames::of("obr_elevenbytes", 94));
        assert!(long.device.starts_with("ol") && long.device.ends_with(".4094") && long.device.len() == 15, "{long:?}");
        assert_eq!(long.device[2..], long.port[2..]);
        assert_ne!(long, other);
        assert_ne!(long.device, VlanNames::of("obr_elevenbytez", 4094).device);
        let link = |name: &str| netlink::Link { name: name.to_owned(), group: netlink::GROUP, ..Default::default() };
        assert!(is_vlan_port(&link(&names.port), "cni0") && !is_vlan_port(&link(&names.port), "cni1"));
        assert!(!is_vlan_port(&link("ov0123456789abc"), "cni0"));
    }

    #[test]
    fn a_long_name_is_hashed_and_kept_as_altname() {
        let long = name("production-frontend");
        assert_eq!(long.name, "obr_proea75247d");
        assert_eq!(long.altname.as_deref(), Some("obr_production-frontend"));
        let other = name("production-backends");
        assert_eq!((other.name.len(), other.name == long.name), (15, false));
        assert_eq!(name(&"x".repeat(200)).altname.unwrap().len(), 127);
    }
}
