//! PM1–PM18, F7, F8: published ports (portmap_test.go, portmap_integ_test.go). What a client meets, not the rules' layout:
//! the reference is run with its iptables backend, the only one of Debian's 1.1.1.

mod calls;
mod ours;
mod traffic;

use std::net::IpAddr;

use integration::{Family, Netns, Plugin, Sandbox, Server, addresses_of};
use serde_json::{Value, json};

const OUTSIDE: &str = "/run/netns/outside";

/// A machine with the world outside of it.
fn machine() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.outside();
    sandbox
}

/// A container on a dual-stack network of a bridge plugin.
struct Pod<'a> {
    sandbox: &'a Sandbox,
    family: Family,
    netns: Netns,
    network: String,
    bridge: Plugin<'a>,
    result: Value,
}

impl<'a> Pod<'a> {
    fn new(sandbox: &'a Sandbox, family: Family, name: &str) -> Self {
        let ranges = json!({"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd01::/64"}]]});
        Self::on(sandbox, family, name, family.bridge_config("1.0.0", "mynet", ranges))
    }

    fn on(sandbox: &'a Sandbox, family: Family, name: &str, mut config: Value) -> Self {
        let netns = sandbox.netns(name);
        let network = config["name"].as_str().unwrap().to_owned();
        for key in ["isGateway", "isDefaultGateway", "hairpinMode"] {
            config[key] = json!(true);
        }
        let bridge = sandbox.plugin(family.bridge()).container(name).netns(&netns).named(name).config(config);
        let result = bridge.add();
        // The reference's addresses are announced only when nobody else has had them for a second.
        let settled = format!(r#"[ -z "$(ip -6 addr show tentative; ip -n {name} -6 addr show tentative)" ]"#);
        sandbox.wait_for(&format!("IPv6 of {name} is settled"), &settled);
        Self { sandbox, family, netns, network, bridge, result }
    }

    /// The chained call that publishes these ports.
    fn ports(&self, ports: Value) -> Plugin<'a> {
        let config = json!({"cniVersion": "1.0.0", "name": self.network, "type": self.family.portmap(),
            "capabilities": {"portMappings": true}, "runtimeConfig": {"portMappings": ports}});
        let call = self.sandbox.plugin(self.family.portmap()).container(&self.netns.name).named(&self.netns.name);
        call.netns(&self.netns).config(config).with("prevResult", self.result.clone())
    }

    fn serve(&self, port: u16) -> Server {
        self.sandbox.answer(&self.netns.path, port, &self.netns.name)
    }

    fn address(&self, family: u8) -> IpAddr {
        let addresses = addresses_of(&self.result);
        let mut found = addresses.iter().map(|address| address.split('/').next().unwrap().parse::<IpAddr>().unwrap());
        found.find(|address| address.is_ipv4() == (family == 4)).unwrap()
    }
}

fn tcp(host: u16, container: u16) -> Value {
    json!({"hostPort": host, "containerPort": container, "protocol": "tcp"})
}

fn on(address: &str, host: u16, container: u16) -> Value {
    let mut mapping = tcp(host, container);
    mapping["hostIP"] = json!(address);
    mapping
}

/// Whom a client reaches at this address by TCP.
#[track_caller]
fn reached(sandbox: &Sandbox, from: Option<&str>, to: &str) -> Option<String> {
    Some(sandbox.connect_to(from, to)?.server)
}

/// All rules of the machine, of whichever kind.
fn rules(sandbox: &Sandbox) -> String {
    sandbox.sh("nft -s list ruleset; iptables-save; ip6tables-save").stdout
}

/// True if something is translated to this address and port.
fn is_target(family: Family, rules: &str, address: &str, port: u16) -> bool {
    let bracketed = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    let (ours, theirs) = (format!(": {address} . {port}"), format!("--to-destination {bracketed}:{port}"));
    rules.contains(if family.is_ours() { &ours } else { &theirs })
}
