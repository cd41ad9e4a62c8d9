//! Tunnels that other programs made, as the library reads them: what is like ours in them, and what is not.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::process::Command;

use integration::Vm;
use osvc_cni::netlink::Tunnel;
use osvc_cni::netlink::tunnel::Inside;

use crate::nodes::with_two_nodes;

#[test]
fn tunnels_of_iproute2_are_read() {
    Vm::new().test(|| {
        with_two_nodes(|a, _| {
            let make = |command: &str| {
                let words = format!("link add {command}");
                let done = Command::new("ip").args(words.split(' ')).status().unwrap();
                assert!(done.success(), "{command}");
            };
            a.netns
                .enter(|| {
                    make("f1 type ipip local 192.0.2.1 remote 192.0.2.2 ttl 64");
                    make("f2 type ipip local 192.0.2.1 remote 192.0.2.3");
                    make("f3 type ip6tnl mode any local 2001:db8::1 remote 2001:db8::2 encaplimit none hoplimit 64");
                    make("f4 type ip6tnl local 2001:db8::1 remote 2001:db8::3");
                    make("f5 type gre local 192.0.2.1 remote 192.0.2.2 key 5 csum ttl 64");
                    make("f6 type sit local 192.0.2.1 remote 192.0.2.2 ttl 64 mode any dev eth0");
                    make("f7 type gre local 192.0.2.1 remote 192.0.2.3 key 5 ttl 64");
                    Ok(())
                })
                .unwrap();
            let mut named = |name: &str| a.socket.tunnel_by_name(name).unwrap().unwrap();
            let [one, two, three] = [1, 2, 3].map(|n| Ipv4Addr::new(192, 0, 2, n));
            let six = |n| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n);
            assert_eq!(named("f1").tunnel, Tunnel::ipip(one, two));
            assert!(!named("f1").is_ours());
            assert_eq!(named("f2").tunnel, Tunnel { ttl: 0, ..Tunnel::ipip(one, three) });
            assert_eq!(named("f3").tunnel, Tunnel::ip6tnl(six(1), six(2), Inside::Both));
            assert_eq!(named("f4").tunnel.encap_limit, Some(4));
            assert!(named("f5").tunnel.unusual && named("f6").tunnel.unusual);
            assert_eq!(named("f7").tunnel, Tunnel::gre(one, three, 5));
            for fallback in ["tunl0", "sit0", "ip6tnl0", "gre0"] {
                let tunnel = named(fallback).tunnel;
                assert_eq!((tunnel.local, tunnel.remote), (None, None), "{fallback}");
            }
        });
    });
}
