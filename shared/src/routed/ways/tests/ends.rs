//! Both ends of a tunnel decide for themselves.

use std::collections::BTreeMap;

use super::*;

/// Whatever addresses two nodes have: they choose the same underlay, and so tunnels that fit.
#[test]
fn both_ends_agree() {
    let sets: [&[&str]; 3] = [&["V4"], &["V6"], &["V4", "V6"]];
    for (a, b) in sets.iter().flat_map(|a| sets.iter().map(move |b| (a, b))) {
        for mode in [Mode::Ipip, Mode::Gre, Mode::Vxlan, Mode::Wireguard] {
            let end = |number: u8, set: &[&str]| {
                let texts = [("V4", format!("192.0.2.{number}")), ("V6", format!("fd22::{number}"))];
                let addresses: Vec<_> =
                    texts.into_iter().filter(|(f, _)| set.contains(f)).map(|(_, text)| text).collect();
                node(number, &addresses.iter().map(String::as_str).collect::<Vec<_>>())
            };
            let (a, b) = (end(1, a), end(2, b));
            let solve = |here: &Node, peer: &Node| {
                let mut kernel = Kernel::default();
                for family in Family::BOTH {
                    let mut set = |address, path| _ = kernel.0.insert(address, path);
                    here.addresses.get(family).into_iter().for_each(|it| set(it, Path { local: true, ..path(true) }));
                    peer.addresses.get(family).into_iter().for_each(|it| set(it, path(false)));
                }
                let case = Case { nodes: vec![here.clone(), peer.clone()], kernel, ..case(Policy::Auto, mode) };
                case.solve()
            };
            let (there, back) = (solve(&a, &b), solve(&b, &a));
            let kinds = |peers: &Peers| peers.tunnels.iter().map(|it| mirrored(&it.kind)).collect::<BTreeMap<_, _>>();
            let (ours, theirs) = (kinds(&there), kinds(&back));
            assert_eq!(ours.len(), theirs.len(), "{a:?} {b:?}");
            for (kind, ends) in ours {
                let swapped = ends.map(|Ends { local, remote }| Ends { local: remote, remote: local });
                assert_eq!(theirs.get(&kind), Some(&swapped), "{mode:?} {a:?} {b:?}");
            }
        }
    }
}

/// What of a device must be equal at both ends, and what must be the other's.
fn mirrored(kind: &Kind) -> (String, Option<Ends>) {
    match kind {
        Kind::Vxlan { local, vni, port, .. } => (format!("{vni} {port} {}", local.is_ipv4()), None),
        Kind::Gre { key, .. } | Kind::Ip6gre { key, .. } => (format!("{} {key}", kind.name()), kind.ends()),
        Kind::Wireguard { port } => (format!("{port}"), None),
        Kind::Ipip(_) | Kind::Sit(_) | Kind::Ip6tnl(_) => (kind.name().to_owned(), kind.ends()),
    }
}
