//! The table `bridge osvc-cni` as a document for `nft -f -`: a fixed number of rules and what they look up.

use super::record::Entry;
use crate::firewall;

/// Its name.
pub const TABLE: &str = "osvc-cni";
/// Port and MAC address.
pub const MACS: &str = "macs";
/// Port and IPv4 address.
pub const ADDRESSES4: &str = "addresses4";
/// Port and IPv6 address.
pub const ADDRESSES6: &str = "addresses6";
/// As [`ADDRESSES6`], for neighbour advertisements: nft has no name for their target, and reads it as a number.
pub const TARGETS: &str = "targets";
/// Ports whose frames are checked.
pub const MAC_CHECKED: &str = "mac_checked";
/// Ports whose packets are checked.
pub const ADDRESS_CHECKED: &str = "address_checked";

/// All sets with their types. A concatenation has no name of its own for a number: that needs `typeof`.
pub const SETS: [(&str, &str); 6] = [
    (MACS, "type ifname . ether_addr"),
    (ADDRESSES4, "type ifname . ipv4_addr"),
    (ADDRESSES6, "type ifname . ipv6_addr"),
    (TARGETS, "typeof iifname . @th,64,128"),
    (MAC_CHECKED, "type ifname"),
    (ADDRESS_CHECKED, "type ifname"),
];

/// The table with all that is in its sets: one transaction, so that no frame meets rules without the elements. `targets`:
/// with the rule for neighbour advertisements, which older versions of nft cannot read.
///
/// A port that is checked has its addresses in the sets; what other ports send costs a look-up or two. An ARP probe has no
/// source yet (RFC 5227), nor has an IPv6 interface that looks for duplicates of its address (RFC 4862). Frames with a
/// VLAN tag are of another type than those let through.
pub fn document(targets: bool, entries: &[Entry]) -> String {
    let mut text = removal();
    text.push_str("table bridge osvc-cni {\n");
    for (name, kind) in SETS.iter().filter(|(name, _)| targets || *name != TARGETS) {
        text += &format!("set {name} {{\n{kind}\n");
        let mut before = "elements = {\n";
        for entry in entries.iter().filter(|entry| entry.set == *name) {
            text += before;
            text += &entry.text();
            before = ",\n";
        }
        text += if before == ",\n" { " }\n}\n" } else { "}\n" };
    }
    let advertisements = match targets {
        true => "icmpv6 type nd-neighbor-advert iifname . @th,64,128 != @targets drop\n",
        false => "",
    };
    text + &format!(
        "chain addresses {{
ether type != {{ ip, arp, ip6 }} drop
iifname . ip saddr != @{ADDRESSES4} drop
arp saddr ip != 0.0.0.0 iifname . arp saddr ip != @{ADDRESSES4} drop
ip6 saddr != :: iifname . ip6 saddr != @{ADDRESSES6} drop
{advertisements}}}
chain prerouting {{
type filter hook prerouting priority -300; policy accept;
iifname @{MAC_CHECKED} iifname . ether saddr != @{MACS} drop
iifname @{MAC_CHECKED} iifname . arp saddr ether != @{MACS} drop
iifname @{ADDRESS_CHECKED} jump addresses
}}
}}
"
    )
}

/// The document that removes the table, whether it is there or not.
pub fn removal() -> String {
    format!("table bridge {TABLE} {{}}\ndelete table bridge {TABLE}\n")
}

/// True if nft could not read what a document says of neighbour advertisements. Whatever else it or the kernel refuses is
/// no reason to leave them unchecked.
///
/// nft begins with where the fault is: `/dev/stdin:12:1-6: Error: syntax error, unexpected typeof`.
pub fn cannot_read_targets(document: &str, error: &firewall::Error) -> bool {
    let firewall::Error::Refused { stderr, .. } = error else { return false };
    let Some((place, message)) = stderr.split_once(": Error: ") else { return false };
    let line = place.rsplit(':').nth(1).and_then(|line| line.parse::<usize>().ok());
    if message.starts_with("Could not process rule") {
        return false;
    }
    let mut in_set = false;
    let lines = document.lines().zip(1..).filter(|(text, _)| {
        let was_in_set = in_set;
        in_set = *text != "}" && (in_set || *text == format!("set {TARGETS} {{"));
        in_set || was_in_set || text.contains("@th,")
    });
    lines.map(|(_, number)| Some(number)).any(|number| number == line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_nft_that_cannot_read_the_targets_goes_without() {
        let text = document(true, &[Entry::new(TARGETS, b"ov1", &[0xfe; 16])]);
        let line = |part: &str| text.lines().position(|line| line.contains(part)).unwrap() + 1;
        let refused = |line: usize, message: &str| firewall::Error::Refused {
            what: String::new(),
            stderr: format!("/dev/stdin:{line}:1-6: Error: {message} typeof iifname . @th,64,128 ^^^^^^"),
        };
        let old = "syntax error, unexpected typeof";
        let variable = "can not use variable sized data types (integer) in concat expressions";
        for part in ["typeof", "\"ov1\" . 0xfefe", "nd-neighbor-advert"] {
            assert!(cannot_read_targets(&text, &refused(line(part), old)), "{part}");
            assert!(cannot_read_targets(&text, &refused(line(part), variable)), "{part}");
            let kernel = refused(line(part), "Could not process rule: Cannot allocate memory");
            assert!(!cannot_read_targets(&text, &kernel), "{part}");
        }
        for part in ["table bridge", "set macs", "set mac_checked", "arp saddr ip", "chain prerouting"] {
            assert!(!cannot_read_targets(&text, &refused(line(part), old)), "{part}");
        }
        let other = "netlink: Error: cache initialization failed: Operation not permitted".to_owned();
        assert!(!cannot_read_targets(&text, &firewall::Error::Refused { what: String::new(), stderr: other }));
        assert!(!cannot_read_targets(&text, &firewall::Error::NoNft));
    }
}
