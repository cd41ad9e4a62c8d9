//! The ifalias of a host end: who it belongs to, for people, and for recovering lost address records.
//!
//! `osvc:<network>:<address>,<address> <interface> <container> <key source> <key>`, cut to 254 bytes.
//! The addresses come first, so that they survive the cut, and are there whole or not at all.

use std::fmt::Write;
use std::net::IpAddr;

use crate::Attachment;

/// In bytes: IFALIASZ (256), less the closing NUL and one that the kernel counts although it has it cut.
const LONGEST: usize = 254;
/// What every alias of ours begins with.
const MARK: &str = "osvc:";

/// The alias of an attachment's host end; `key` is the source and the text of its key.
pub fn alias(attachment: &Attachment, addresses: &[IpAddr], key: Option<(&str, &str)>) -> String {
    let mut text = format!("{MARK}{}:", attachment.network);
    for (index, address) in addresses.iter().enumerate() {
        let more = format!("{}{address}", if index > 0 { "," } else { "" });
        if text.len() + more.len() <= LONGEST {
            text += &more;
        }
    }
    let _ = write!(text, " {} {}", attachment.ifname, attachment.container);
    if let Some((source, key)) = key {
        let _ = write!(text, " {source} {key}");
    }
    let end = (0..=LONGEST.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text.truncate(end.unwrap_or_default());
    text
}

/// The network that an alias names; none if it is not ours.
pub fn network(alias: &str) -> Option<&str> {
    Some(alias.strip_prefix(MARK)?.split_once(':')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(network: &str, container: &str) -> Attachment {
        Attachment {
            network: network.parse().unwrap(),
            container: container.parse().unwrap(),
            ifname: "eth0".parse().unwrap(),
        }
    }

    #[test]
    fn everything_that_fits() {
        let addresses = ["10.0.0.2".parse().unwrap(), "fd00::2".parse().unwrap()];
        let text = alias(&attachment("net", "c1"), &addresses, Some(("podman", "my web")));
        assert_eq!(text, "osvc:net:10.0.0.2,fd00::2 eth0 c1 podman my web");
        assert_eq!(network(&text), Some("net"));
        assert_eq!(alias(&attachment("net", "c1"), &[], None), "osvc:net: eth0 c1");
        assert_eq!(network("osvc:net"), None);
        assert_eq!(network("uplink"), None);
    }

    #[test]
    fn the_cut_is_between_characters_and_spares_the_addresses() {
        let addresses = ["10.0.0.2".parse().unwrap()];
        for length in 200..260 {
            let text = alias(&attachment("net", &"c".repeat(length)), &addresses, Some(("osvc", "ключ/ключ")));
            assert!(text.len() <= LONGEST && text.starts_with("osvc:net:10.0.0.2 eth0 ccc"), "{text}");
        }
        let long: IpAddr = "fd00:1111:2222:3333:4444:5555:6666:7777".parse().unwrap();
        let text = alias(&attachment(&"n".repeat(200), "c"), &[addresses[0], long, long], None);
        assert!(
            text.ends_with("n:10.0.0.2,fd00:1111:2222:3333:4444:5555:6666:7777"),
            "an address is there whole or not at all: {text}"
        );
    }
}
