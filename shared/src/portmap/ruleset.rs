//! Our tables as one document for `nft -f -`: one transaction.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;

use super::area::{Area, Pair, pairs};
use super::keys::{ALLOWED, ANY, HAIRPIN, HOST, RESTRICTED, SENTINEL, SETS, TABLE, comment, family, unspecified};
use super::record::Slot;
use crate::firewall::family::Family;

/// The bit of the packet mark that tells the first packet of a connection that we translate from one that somebody else
/// does: Kubernetes' and docker's lead to the same containers. Not bit 13, with which the reference plugin and netavark tell
/// what they masquerade, nor Kubernetes' 14 and 15, nor the upper half, which Calico has.
const MARK: u32 = 0x1000;

/// Where a slot leads, and the tag of the attachment that has it.
pub type Holders = BTreeMap<Slot, (SocketAddr, String)>;

/// Declares, deletes and defines the tables of some families.
///
/// The declaration makes the deletion unconditional; the kernel applies all of it in one step, so that no packet
/// meets half a ruleset.
pub fn document(families: &[Family], holders: &Holders, areas: &[Area]) -> String {
    let mut text = String::new();
    for family in families {
        let _ = writeln!(text, "table {family} {TABLE} {{}}\ndelete table {family} {TABLE}");
    }
    for family in families {
        table(&mut text, *family, holders, areas);
    }
    text
}

fn table(text: &mut String, family: Family, holders: &Holders, areas: &[Area]) {
    let address = family.address_type();
    let none = unspecified(family);
    let mut any = vec![format!("0 . 0 comment \"{SENTINEL}\" : {none} . 0")];
    let mut host = vec![format!("{none} . 0 . 0 comment \"{SENTINEL}\" : {none} . 0")];
    for (slot, (target, tag)) in holders.iter().filter(|(slot, _)| self::family(slot.address) == family) {
        let Slot { address, protocol, port } = slot;
        let rest = format!("{protocol} . {port} comment \"{}\" : {} . {}", comment(tag), target.ip(), target.port());
        if slot.is_any() { any.push(rest) } else { host.push(format!("{address} . {rest}")) }
    }
    let _ = writeln!(text, "table {family} {TABLE} {{");
    block(text, &format!("map {ANY}"), &format!("type inet_proto . inet_service : {address} . inet_service"), &any);
    let kind = format!("type {address} . inet_proto . inet_service : {address} . inet_service");
    block(text, &format!("map {HOST}"), &kind, &host);
    let pairs = pairs(areas, family);
    for set in SETS {
        let mut elements = vec![format!("{none} . {none} comment \"{SENTINEL}\"")];
        elements.extend(
            pairs
                .iter()
                .filter(|pair| pair.set == set)
                .map(|Pair { source, target, mark, .. }| format!("{source} . {target} comment \"{mark}\"")),
        );
        block(text, &format!("set {set}"), &format!("type {address} . {address}; flags interval"), &elements);
    }
    let ip = family.name();
    // There is no route_localnet for IPv6: what is sent to ::1 would never arrive.
    let own = if family == Family::Ip6 { "ip6 daddr != ::1 " } else { "" };
    let _ = write!(
        text,
        "chain mapped {{
meta mark set meta mark | {MARK:#x}
dnat {ip} to {ip} daddr . meta l4proto . th dport map @{HOST}
dnat {ip} to meta l4proto . th dport map @{ANY}
meta mark set meta mark & {:#x}
}}
chain prerouting {{
type nat hook prerouting priority -100; policy accept;
fib daddr type local jump mapped
}}
chain output {{
type nat hook output priority -100; policy accept;
{own}fib daddr type local jump mapped
}}
chain postrouting {{
type nat hook postrouting priority 100; policy accept;
meta mark & {MARK:#x} == {MARK:#x} ct status dnat {ip} saddr . {ip} daddr @{HAIRPIN} masquerade
}}
chain forward {{
type filter hook forward priority 0; policy accept;
meta mark & {MARK:#x} == {MARK:#x} ct status dnat {ip} saddr . {ip} daddr @{RESTRICTED} {ip} saddr . {ip} daddr != @{ALLOWED} drop
}}
",
        !MARK
    );
    if family == Family::Ip {
        // With route_localnet on a bridge, its containers could reach what listens on 127.0.0.1 only (CVE-2020-8558).
        text.push_str(
            "chain localhost {
type filter hook prerouting priority -300; policy accept;
iifname != \"lo\" ip saddr 127.0.0.0/8 drop
iifname != \"lo\" ip daddr 127.0.0.0/8 drop
}
",
        );
    }
    text.push_str("}\n");
}

/// A map or a set with its elements. nft takes no empty list of them.
fn block(text: &mut String, what: &str, kind: &str, elements: &[String]) {
    let _ = write!(text, "{what} {{\n{kind};\n");
    if !elements.is_empty() {
        let _ = writeln!(text, "elements = {{ {} }}", elements.join(",\n"));
    }
    text.push_str("}\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::firewall::nft;
    use crate::netlink::testing::in_new_netns;
    use crate::portmap::Protocol;
    use crate::portmap::area::Masquerade;

    #[test]
    fn nft_takes_it_and_a_packet_meets_two_look_ups_however_many_ports_there_are() {
        let mut holders = Holders::new();
        for port in 1..=3000 {
            for (address, target) in [("0.0.0.0", "10.9.0.2:80"), ("192.0.2.1", "10.9.0.3:80"), ("::", "[fd09::2]:80")]
            {
                let slot = Slot { address: address.parse().unwrap(), protocol: Protocol::Sctp, port };
                holders.insert(slot, (target.parse().unwrap(), "0123456789abc".into()));
            }
        }
        let area = |subnet: &str| Area {
            subnet: subnet.parse().unwrap(),
            masquerade: Masquerade::Own,
            allow: Some(vec!["192.0.2.0/24".parse().unwrap(), "2001:db8::/32".parse().unwrap()]),
            mark: "osvc:net1".into(),
        };
        let text = document(&Family::ALL, &holders, &[area("10.9.0.0/24"), area("fd09::/64")]);
        in_new_netns(|| {
            nft::commit(&text, "make the tables").unwrap();
            nft::commit(&text, "make the tables again").unwrap();
            let listed = nft::run(&["list", "table", "ip", TABLE], "", "list").unwrap().stdout;
            assert_eq!(listed.matches("dnat ip to").count(), 2);
            assert_eq!(listed.matches("osvc:0123456789abc").count(), 6000);
            assert!(listed.contains("0.0.0.0/0 . 10.9.0.0/24 comment \"osvc:net1\""), "{listed}");
            let listed = nft::run(&["list", "table", "ip6", TABLE], "", "list").unwrap().stdout;
            assert_eq!(listed.matches("osvc:0123456789abc").count(), 3000);
            assert!(!listed.contains("localhost"));
        });
    }
}
