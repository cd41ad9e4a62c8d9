//! Ethernet addresses: fixed formulas, so that a workload keeps its own as it keeps its address.
//!
//! | network | bridge | container |
//! |---|---|---|
//! | layer 3, IPv4 | `0a:58` + the four bytes of the gateway | `0a:58` + the four bytes of its address |
//! | layer 3, IPv6 only | `0e` + 40 bits of SHA-256(gateway) | `0e` + 40 bits of SHA-256(address) |
//! | layer 2 | 46 bits of SHA-256(machine-id, network) | … of SHA-256(machine-id, network, container, interface) |
//!
//! Host ends: `fe` + 40 bits of that of a container of layer 2 with the word `host` behind: a bridge whose address nobody
//! has set takes the lowest of its ports, and that must not become one of ours. An IPv6 address is hashed as its
//! 16 bytes; texts are separated by NUL. The 46 bits are those of the first six bytes of the hash
//! without the two lowest of the first one, which say "unicast, locally administered".

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sha2::{Digest, Sha256};

use crate::netlink::Mac;
use crate::{Attachment, NetworkName};

/// Where systemd keeps the identity of a machine (machine-id(5)), and where D-Bus did.
const MACHINE_ID: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
/// What tells machines apart where there is neither.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// The address of a device that has an IP address.
pub fn of_address(address: IpAddr) -> Mac {
    match address {
        IpAddr::V4(address) => of_v4(address),
        IpAddr::V6(address) => of_v6(address),
    }
}

/// The address of a device that has several, of which the first IPv4 one decides.
pub fn of_addresses(addresses: impl IntoIterator<Item = IpAddr>) -> Option<Mac> {
    addresses.into_iter().min_by_key(IpAddr::is_ipv6).map(of_address)
}

fn of_v4(address: Ipv4Addr) -> Mac {
    let [a, b, c, d] = address.octets();
    Mac([0x0a, 0x58, a, b, c, d])
}

fn of_v6(address: Ipv6Addr) -> Mac {
    let hash = Sha256::digest(address.octets());
    Mac([0x0e, hash[0], hash[1], hash[2], hash[3], hash[4]])
}

/// What tells this machine from others: two of them may have the same layer 2 network on one wire.
#[derive(Debug, Clone)]
pub struct Machine(String);

impl Machine {
    /// Reads the identity of this machine.
    pub fn read() -> Self {
        let mut texts = MACHINE_ID.into_iter().chain([HOST_NAME]).filter_map(|path| std::fs::read_to_string(path).ok());
        Self(texts.find(|text| !text.trim().is_empty()).unwrap_or_default().trim().to_owned())
    }

    /// The address of a bridge without gateway address.
    pub fn bridge(&self, network: &NetworkName) -> Mac {
        self.hash(&[network.as_str()])
    }

    /// The address of a container's end without IP address.
    pub fn container(&self, attachment: &Attachment) -> Mac {
        self.hash(&[attachment.network.as_str(), attachment.container.as_str(), attachment.ifname.as_str()])
    }

    /// The address of a host end.
    pub fn host_end(&self, attachment: &Attachment) -> Mac {
        let names = [attachment.network.as_str(), attachment.container.as_str(), attachment.ifname.as_str(), "host"];
        let Mac([_, rest @ ..]) = self.hash(&names);
        let [b, c, d, e, f] = rest;
        Mac([0xfe, b, c, d, e, f])
    }

    /// The address of the port by which the host is in a VLAN.
    pub fn vlan_port(&self, port: &str) -> Mac {
        let Mac([_, b, c, d, e, f]) = self.hash(&[port, "vlan"]);
        Mac([0xfe, b, c, d, e, f])
    }

    fn hash(&self, texts: &[&str]) -> Mac {
        let mut hash = Sha256::new();
        hash.update(&self.0);
        for text in texts {
            hash.update([0]);
            hash.update(text);
        }
        let hash = hash.finalize();
        Mac([hash[0] & 0xfc | 0x02, hash[1], hash[2], hash[3], hash[4], hash[5]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str) -> String {
        of_address(address.parse().unwrap()).to_string()
    }

    #[test]
    fn layer_3_follows_the_address() {
        assert_eq!(of("10.22.0.1"), "0a:58:0a:16:00:01");
        assert_eq!(of("192.168.255.254"), "0a:58:c0:a8:ff:fe");
        assert_eq!(of("fd77::1"), "0e:28:25:92:64:8e");
        let both = ["fd77::1".parse().unwrap(), "10.22.0.1".parse().unwrap()];
        assert_eq!(of_addresses(both).unwrap().to_string(), "0a:58:0a:16:00:01");
        assert_eq!(of_addresses([]), None);
    }

    #[test]
    fn layer_2_follows_machine_network_container_and_interface() {
        let machine = Machine("0123456789abcdef0123456789abcdef".to_owned());
        let attachment = Attachment {
            network: "net".parse().unwrap(),
            container: "c1".parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
        };
        assert_eq!(machine.bridge(&attachment.network).to_string(), "d2:3c:82:7a:d9:1a");
        assert_eq!(machine.container(&attachment).to_string(), "b2:d1:ec:79:25:5e");
        assert_ne!(machine.host_end(&attachment), machine.container(&attachment));
        assert_eq!(machine.host_end(&attachment).0[0], 0xfe, "never the lowest address of a bridge's ports");
        for mac in [machine.bridge(&attachment.network), machine.container(&attachment), machine.host_end(&attachment)]
        {
            assert_eq!(mac.0[0] & 3, 2, "unicast, locally administered");
        }
        assert_ne!(Machine(String::new()).bridge(&attachment.network), machine.bridge(&attachment.network));
    }
}
