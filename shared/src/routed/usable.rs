//! Which addresses a node can be reached by from another one.

use std::net::IpAddr;

/// True for an address that can be another node's: no loopback, link-local, multicast, unspecified or mapped one. A
/// link-local one means something else on every link.
pub fn is_usable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let octets = address.octets();
            !(address.is_loopback() || address.is_link_local() || octets[0] == 0 || octets[0] >= 224)
        }
        IpAddr::V6(address) => {
            let link_local = address.segments()[0] & 0xffc0 == 0xfe80;
            let mapped = address.to_ipv4_mapped().is_some();
            !(address.is_loopback() || address.is_unspecified() || address.is_multicast() || link_local || mapped)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_nodes_and_others() {
        for good in ["10.0.0.1", "192.168.1.1", "203.0.113.9", "fd00::1", "2001:db8::1"] {
            assert!(is_usable(good.parse().unwrap()), "{good}");
        }
        for bad in [
            "127.0.0.1",
            "127.0.1.1",
            "169.254.1.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "febf::1",
            "ff02::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(!is_usable(bad.parse().unwrap()), "{bad}");
        }
    }
}
