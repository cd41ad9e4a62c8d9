//! A main plugin of the reference with `osvc-ipam`, from attachment to the last trace.

use std::collections::BTreeMap;
use std::time::Duration;

use integration::{Family, Netns, Plugin, Sandbox, addresses_of, report};
use serde_json::{Value, json};

/// A kind of main plugin.
pub struct Kind {
    /// Name of the example.
    pub example: &'static str,
    /// Its text.
    text: &'static str,
    /// What a second container has otherwise: key and value of the main plugin.
    second: Option<(&'static str, &'static str)>,
    /// Makes, where it is missing, what the plugin needs on the host.
    host: &'static str,
    /// Where a container reaches others.
    reaches: &'static [&'static str],
    /// CHECK and `osvc-net` are left out, as other kinds show them.
    brief: bool,
    /// So are a restart after a DEL, and a small range after DELs that never came.
    briefer: bool,
}

macro_rules! kind {
    ($example:literal) => {
        Kind {
            example: $example,
            text: include_str!(concat!("../../../conf-examples/ipam/", $example, ".conflist")),
            second: None,
            host: "",
            reaches: &["192.168.7.1"],
            brief: false,
            briefer: false,
        }
    };
}

/// The network's own router and its other machines.
pub const MACVLAN: Kind = kind!("macvlan");
/// The same without MAC addresses of their own.
pub const IPVLAN_L2: Kind = Kind { brief: true, ..kind!("ipvlan-l2") };
/// The router knows the way to them.
pub const IPVLAN_L3: Kind = Kind { brief: true, briefer: true, ..kind!("ipvlan-l3") };
/// The same through the host's netfilter.
pub const IPVLAN_L3S: Kind = Kind { brief: true, briefer: true, ..kind!("ipvlan-l3s") };
/// The gateway is the host.
pub const PTP: Kind = Kind { reaches: &["10.24.0.1", "192.168.7.1"], ..kind!("ptp") };
/// A device for each container.
pub const HOST_DEVICE: Kind = Kind {
    second: Some(("device", "\"eth2\"")),
    host: "for n in 1 2; do
        ip link show eth$n >/dev/null 2>&1 || ip -n router link show port$n >/dev/null 2>&1 ||
            ip link add eth$n type veth peer name port$n netns router
        ip -n router link set port$n master lan up
    done",
    ..kind!("host-device")
};
/// All of them.
#[allow(dead_code)]
pub const ALL: [Kind; 6] = [MACVLAN, IPVLAN_L2, IPVLAN_L3, IPVLAN_L3S, PTP, HOST_DEVICE];

/// A host with 192.168.7.2 on eth0, and a router with a switch of its own, which routes to what is behind the host.
fn machine() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.netns("router");
    sandbox
        .sh("set -e
            ip -n router link add lan type bridge
            ip link add eth0 type veth peer name port0 netns router
            ip -n router link set port0 master lan up
            ip -n router addr add 192.168.7.1/24 dev lan
            ip -n router link set lan up
            ip addr add 192.168.7.2/24 dev eth0
            ip link set eth0 up
            ip -n router route add 10.23.0.0/24 via 192.168.7.2
            ip route add default via 192.168.7.1")
        .ok();
    sandbox
}

struct Site<'a> {
    kind: &'a Kind,
    sandbox: &'a Sandbox,
    conflist: Value,
}

impl Site<'_> {
    fn name(&self) -> &str {
        self.conflist["name"].as_str().unwrap()
    }

    fn call(&self, name: &str, container: &str, second: bool) -> Plugin<'_> {
        let mut config = self.conflist["plugins"][0].clone();
        config["name"] = self.conflist["name"].clone();
        config["cniVersion"] = self.conflist["cniVersion"].clone();
        if let (true, Some((key, value))) = (second, self.kind.second) {
            config[key] = serde_json::from_str(value).unwrap();
        }
        let plugin = config["type"].as_str().unwrap().to_owned();
        self.sandbox
            .plugin(&plugin)
            .config(config)
            .container(container)
            .named(name)
            .netns_path(&format!("/run/netns/{container}"))
    }

    /// A namespace and a container in it. What its predecessor left takes the kernel some time to clear away: the main
    /// plugin fails meanwhile. A refusal of osvc-ipam (11, 101) is none of that.
    fn start(&self, call: &Plugin<'_>, container: &str) -> (Netns, Value) {
        let netns = self.sandbox.netns(container);
        for _ in 0..40 {
            self.sandbox.sh(self.kind.host).ok();
            match call.call("ADD").success_or_error() {
                Ok(result) => {
                    let result = result.unwrap();
                    assert_eq!(
                        self.sandbox.addresses_in(&netns, "eth0"),
                        addresses_of(&result),
                        "{}",
                        self.kind.example
                    );
                    return (netns, result);
                }
                Err((code, message)) => assert!(!matches!(code, 11 | 101), "{}: {message}", self.kind.example),
            }
            // The reference's host-device fails to DEL what it has not.
            let _ = call.call("DEL");
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{}: {:?}", self.kind.example, call.call("ADD").error())
    }

    /// What `osvc-net ip ls` says of each key that holds or held something.
    fn states(&self) -> BTreeMap<String, String> {
        let argv = ["/opt/cni/bin/osvc-net", "ip", "ls", "-n", self.name(), "-o", "json"];
        let rows: Value = serde_json::from_str(&self.sandbox.run(&argv).ok()).unwrap();
        let text = |value: &Value| value.as_str().unwrap_or("released").to_owned();
        rows.as_array().unwrap().iter().map(|row| (text(&row["key"]["text"]), text(&row["liveness"]))).collect()
    }

    fn states_are(&self, expected: &[(&str, &str)]) {
        let expected = expected.iter().map(|(key, state)| ((*key).to_owned(), (*state).to_owned())).collect();
        assert_eq!(self.states(), expected, "{}", self.kind.example);
    }
}

/// Two containers: they talk, come back where they were, are told dead from alive, and leave nothing.
pub fn run(kind: &Kind) {
    let sandbox = machine();
    sandbox.sh(kind.host).ok();
    let conflist: Value = serde_json::from_str(kind.text).unwrap();
    let site = Site { kind, sandbox: &sandbox, conflist };
    sandbox.write(&format!("/etc/cni/net.d/{}.conflist", kind.example), kind.text);
    let devices = sandbox.links();
    let (one, two) = (site.call("one", "c1", false), site.call("two", "c2", true));
    let ((pod1, result1), (pod2, result2)) = (site.start(&one, "c1"), site.start(&two, "c2"));
    let [first, second] = [&result1, &result2].map(|result| addresses_of(result).concat());
    assert_ne!(first, second);
    let plain = |address: &str| address.split('/').next().unwrap().to_owned();
    for to in kind.reaches {
        assert!(sandbox.ping(&pod1, to), "{}: {to} is reached", kind.example);
    }
    assert!(sandbox.ping(&pod1, &plain(&second)) && sandbox.ping(&pod2, &plain(&first)), "{}", kind.example);
    if !kind.brief {
        one.check(&result1);
        site.states_are(&[("one", "running"), ("two", "running")]);
    }
    let (mut one, mut pod1) = (one, pod1);
    if !kind.briefer {
        // Restarted: another container, another namespace, the same name.
        one.del();
        sandbox.delete_netns(&pod1);
        one = site.call("one", "c3", false);
        let (pod, result) = site.start(&one, "c3");
        pod1 = pod;
        assert_eq!(addresses_of(&result).concat(), first, "{}: after a restart", kind.example);
        assert!(sandbox.ping(&pod1, kind.reaches[0]), "{}: after a restart", kind.example);
    }
    // A DEL that never came.
    sandbox.delete_netns(&pod2);
    if !kind.brief {
        site.states_are(&[("one", "running"), ("two", "dead")]);
    }
    let two = site.call("two", "c4", true);
    let (pod2, result) = site.start(&two, "c4");
    assert_eq!(addresses_of(&result).concat(), second, "{}: after a lost DEL", kind.example);
    for (call, pod) in [(&one, &pod1), (&two, &pod2)] {
        call.del();
        assert!(!sandbox.links_in(pod).contains("eth0"), "{}", kind.example);
        sandbox.delete_netns(pod);
    }
    assert!(sandbox.held(Family::Osvc, site.name()).is_empty(), "{}", kind.example);
    if !kind.briefer {
        no_leak(&site, &plain(&first));
    }
    for _ in 0..500 {
        sandbox.sh(kind.host).ok();
        if sandbox.links() == devices {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(sandbox.links(), devices, "{}: no device is left", kind.example);
    let what = format!("conf-examples/ipam/{}.conflist: traffic, restart, lost DEL, cleanup", kind.example);
    report::ran(&format!("{}, {}", site.conflist["plugins"][0]["type"], report::kernel()), &what);
}

/// Two addresses are enough for three that never said goodbye.
fn no_leak(site: &Site<'_>, first: &str) {
    let (net, last) = first.rsplit_once('.').unwrap();
    let last: u8 = last.parse().unwrap();
    let start = if last == 254 { 253 } else { last };
    let mut keys = site.conflist["plugins"][0]["ipam"].clone();
    keys["rangeStart"] = json!(format!("{net}.{start}"));
    keys["rangeEnd"] = json!(format!("{net}.{}", start + 1));
    for name in ["x", "y", "z"] {
        let call = site.call(name, name, false).with("ipam", keys.clone());
        let (netns, _) = site.start(&call, name);
        site.sandbox.delete_netns(&netns);
    }
    // A DEL does the same, but for host-device: the reference's fails where there is no namespace any more.
    site.sandbox.run(&["/opt/cni/bin/osvc-net", "gc", site.name()]).ok();
    assert!(site.sandbox.held(Family::Osvc, site.name()).is_empty(), "{}", site.kind.example);
}
