//! Routed networks between two nodes, set up by the library, in every mode.

mod end;
mod roam;

use std::time::{Duration, Instant};

use integration::{Vm, report};
use osvc_cni::routed::RoutedConfig;
use serde_json::{Value, json};

use crate::nodes::with_two_nodes;
use end::{End, configs};

const MODES: [&str; 4] = ["ipip", "gre", "vxlan", "wireguard"];

fn with_ends(act: impl FnOnce(&mut [End<'_>; 2]) + Send) {
    with_two_nodes(|a, b| act(&mut [End::new(a, 1), End::new(b, 2)]));
}

/// Sets the network up on both nodes, and finds it in place.
fn set_up(ends: &mut [End<'_>; 2], configs: &[RoutedConfig; 2]) {
    for (end, config) in ends.iter_mut().zip(configs) {
        let outcome = end.setup(config, false);
        assert_eq!(outcome.faults, [], "{config:?}");
        assert_eq!(outcome.warnings, [""; 0]);
        assert_in_place(end, config);
    }
}

fn assert_in_place(end: &mut End<'_>, config: &RoutedConfig) {
    assert_eq!(end.missing(config), [""; 0]);
    assert!(end.in_place(config), "{:?}", end.record(config));
    let again = end.setup(config, false);
    assert_eq!((again.changes, again.peers_changed), (Vec::new(), false));
}

/// Both reach each other by both families, with packets as long as the MTU.
fn talk(ends: &[End<'_>; 2], net: u8, mtu: u32) -> bool {
    [(0, 2), (1, 1)].iter().all(|&(from, to)| {
        End::gateways(net, to).iter().all(|address| ends[from].node.reaches(address.parse().unwrap(), mtu))
    })
}

#[test]
fn every_mode_over_every_underlay() {
    Vm::new().test(|| {
        for mode in MODES {
            for over in [&[0][..], &[1], &[0, 1]] {
                with_ends(|ends| {
                    let keys = json!({"tunnel": "always", "tunnelMode": mode});
                    let configs = configs(ends, 11, over, &keys);
                    ends.iter().for_each(|end| end.bridge(11));
                    set_up(ends, &configs);
                    let v6 = over.contains(&1) || mode == "wireguard";
                    let overhead = match mode {
                        "ipip" => [20, 40],
                        "gre" => [28, 48],
                        "vxlan" => [50, 70],
                        _ => [80, 80],
                    }[usize::from(v6)];
                    assert!(talk(ends, 11, 1500 - overhead), "{mode} over {over:?}");
                    heal(&mut ends[0], &configs[0]);
                    assert!(talk(ends, 11, 1500 - overhead), "{mode} over {over:?}");
                    for (end, config) in ends.iter_mut().zip(&configs) {
                        assert!(!end.remove(config).is_empty());
                        assert_eq!(end.tunnels(), []);
                        assert_eq!(end.ip("route show proto 79"), "");
                    }
                });
            }
        }
        report::ran(&report::kernel(), "routed networks by ipip, gre, vxlan and wireguard over IPv4, IPv6 and both");
    });
}

/// Each device is lost, and wrong, and is found and made right.
fn heal(end: &mut End<'_>, config: &RoutedConfig) {
    for tunnel in end.record(config).tunnels {
        let (name, kind) = (&tunnel.name, tunnel.kind.name());
        let mut acts =
            vec![format!("link del {name}"), format!("link set {name} down"), format!("link set {name} mtu 1280")];
        if let Some(ends) = tunnel.kind.ends() {
            let other = if ends.remote.is_ipv4() { "192.0.2.77" } else { "2001:db8::77" };
            let kind = if kind == "ip6gre" { "ip6gre" } else { kind };
            acts.push(format!("link set {name} type {kind} local {} remote {other}", ends.local));
        }
        for act in acts {
            end.ip(&act);
            assert!(!end.in_place(config), "{act}");
            let missing = end.missing(config);
            assert!(missing.iter().any(|text| text.contains(name.as_str())), "{act}: {missing:?}");
            let outcome = end.setup(config, false);
            assert_eq!(outcome.faults, [], "{act}");
            assert_in_place(end, config);
        }
        if kind == "wireguard" {
            let key = wg(end, &format!("show {name} peers"));
            wg(end, &format!("set {name} peer {} remove", key.trim()));
            let missing = end.missing(config);
            assert!(missing.iter().any(|text| text.contains("peer node2")), "{missing:?}");
            end.setup(config, false);
            wg(end, &format!("set {name} peer {} endpoint 192.0.2.77:7", key.trim()));
            assert!(!end.missing(config).is_empty());
            end.setup(config, false);
            assert_in_place(end, config);
        }
    }
}

fn wg(end: &End<'_>, arguments: &str) -> String {
    let mut wg = std::process::Command::new("wg");
    let output = end.node.netns.enter(|| Ok(wg.args(arguments.split(' ')).output().unwrap())).unwrap();
    assert!(output.status.success(), "wg {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn modes_change_on_a_live_network_one_node_after_the_other() {
    Vm::new().test(|| {
        with_ends(|ends| {
            ends.iter().for_each(|end| end.bridge(11));
            let keys = |mode: &str, tunnel: &str| json!({"tunnel": tunnel, "tunnelMode": mode});
            let chain: [(&str, &str); 6] = [
                ("ipip", "always"),
                ("gre", "always"),
                ("wireguard", "auto"),
                ("vxlan", "always"),
                ("ipip", "always"),
                ("ipip", "auto"),
            ];
            let mut before: Option<[RoutedConfig; 2]> = None;
            for (mode, tunnel) in chain {
                let configs = configs(ends, 11, &[0, 1], &keys(mode, tunnel));
                let start = Instant::now();
                for (end, config) in ends.iter_mut().zip(&configs) {
                    assert!(!end.in_place(config));
                    assert_eq!(end.setup(config, false).faults, []);
                }
                let gap = start.elapsed();
                assert!(talk(ends, 11, 1400), "{mode} {tunnel}");
                eprintln!("{mode} {tunnel}: set up on both nodes within {gap:?}");
                assert!(gap < Duration::from_secs(10));
                for (end, config) in ends.iter_mut().zip(&configs) {
                    assert_in_place(end, config);
                    let kept = end.record(config).tunnels.iter().filter(|tunnel| tunnel.kept.is_some()).count();
                    assert_eq!(kept > 0, before.as_ref().is_some_and(|before| before[0].mode != config.mode), "{mode}");
                    end.setup(config, true);
                    let record = end.record(config);
                    let mut recorded: Vec<_> =
                        record.tunnels.iter().map(|it| (it.name.clone(), it.kind.name())).collect();
                    let mut there = end.tunnels();
                    recorded.sort_unstable();
                    there.sort_unstable();
                    assert_eq!(there, recorded, "nothing stale after --prune");
                    assert!(record.tunnels.iter().all(|tunnel| tunnel.kept.is_none()));
                    assert_in_place(end, config);
                }
                assert!(talk(ends, 11, 1400), "{mode} {tunnel}");
                before = Some(configs);
            }
            assert!(ends[0].ip("route show proto 79").contains("10.11.8.0/22 via 192.0.2.2 dev eth0"));
        });
    });
}

#[test]
fn an_old_mode_goes_on_receiving_until_the_other_node_has_changed() {
    Vm::new().test(|| {
        with_ends(|ends| {
            ends.iter().for_each(|end| end.bridge(11));
            // While nodes disagree, what comes in clear does not come by the way that is taken back.
            ends.iter().for_each(|end| end.write("/proc/sys/net/ipv4/conf/eth0/rp_filter", "2"));
            let of = |ends: &[End<'_>; 2], mode: &str, tunnel: &str| -> [RoutedConfig; 2] {
                configs(ends, 11, &[0, 1], &json!({"tunnel": tunnel, "tunnelMode": mode}))
            };
            let old = of(ends, "gre", "always");
            set_up(ends, &old);
            // Only one node is changed, to plain routes: the other one's tunnel still ends here, and takes them.
            let direct = of(ends, "gre", "auto");
            ends[0].setup(&direct[0], false);
            assert!(talk(ends, 11, 1400), "nodes may disagree about tunnels");
            let tunnels = ends[0].tunnels();
            let new = of(ends, "ipip", "auto");
            ends[0].setup(&new[0], false);
            assert!(tunnels.iter().all(|tunnel| ends[0].tunnels().contains(tunnel)), "the old ones receive");
            assert!(talk(ends, 11, 1400), "nodes may disagree about modes, while one of them has plain routes");
        });
    });
}

#[test]
fn two_networks_and_foreign_tunnels_side_by_side() {
    Vm::new().test(|| {
        with_ends(|ends| {
            let keys: Value = json!({"tunnel": "always", "tunnelMode": "ipip"});
            let (first, second) = (configs(ends, 11, &[0], &keys), configs(ends, 12, &[0], &keys));
            let third = configs(ends, 13, &[0], &json!({"tunnel": "always", "tunnelMode": "gre"}));
            for net in [11, 12, 13] {
                ends.iter().for_each(|end| end.bridge(net));
            }
            // Somebody's tunnel with the same ends is used, and one without ends is nobody's business.
            ends[0].ip("link add theirs type ipip local 192.0.2.1 remote 192.0.2.2 ttl 64");
            ends[0].ip("link set theirs up");
            ends[0].ip("link add tun19202 type gre local 192.0.2.1 remote 192.0.2.2 key 5 ttl 64");
            let before = ends[0].ip("-d link show theirs");
            for configs in [&first, &second, &third] {
                set_up(ends, configs);
            }
            for net in [11, 12, 13] {
                assert!(talk(ends, net, 1472), "network {net}");
            }
            let shared = |ends: &mut [End<'_>; 2], n: usize, kind: &str| {
                ends[n].tunnels().iter().filter(|(_, found)| *found == kind).count()
            };
            assert_eq!((shared(ends, 0, "ipip"), shared(ends, 1, "ipip"), shared(ends, 1, "gre")), (0, 1, 1));
            for (end, config) in ends.iter_mut().zip(&first) {
                end.remove(config);
            }
            assert!(talk(ends, 12, 1480) && talk(ends, 13, 1472), "the shared tunnel stays for the other network");
            for configs in [&second, &third] {
                for (end, config) in ends.iter_mut().zip(configs) {
                    assert_in_place(end, config);
                    end.remove(config);
                }
            }
            assert_eq!((ends[0].tunnels(), ends[1].tunnels()), (Vec::new(), Vec::new()));
            assert_eq!(ends[0].ip("-d link show theirs"), before);
            assert!(ends[0].ip("link show").contains("tun19202"));
        });
    });
}
