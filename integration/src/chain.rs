//! Containers whose ports are published: a bridge plugin and behind it a portmap plugin, called as a runtime calls a
//! conflist.

use serde_json::{Value, json};

use crate::{Family, Netns, Plugin, Sandbox, addresses_of};

/// A network: the configurations of its two plugins.
#[derive(Clone)]
pub struct Network<'a> {
    sandbox: &'a Sandbox,
    name: String,
    bridge: Value,
    portmap: Value,
}

impl Sandbox {
    /// A network of ours with these subnets.
    pub fn network(&self, name: &str, subnets: &[&str]) -> Network<'_> {
        self.network_of(Family::Osvc, name, subnets)
    }

    /// A network with these subnets, of our plugins or of the reference's.
    pub fn network_of(&self, family: Family, name: &str, subnets: &[&str]) -> Network<'_> {
        let ranges: Vec<_> = subnets.iter().map(|subnet| json!([{"subnet": subnet}])).collect();
        let (bridge, portmap) = match family {
            Family::Osvc => (json!({"type": "osvc-bridge", "network": subnets}), json!({"type": "osvc-portmap"})),
            Family::Reference => (
                json!({"type": "bridge", "bridge": format!("obr_{name}"), "isDefaultGateway": true, "ipMasq": true,
                    "hairpinMode": true, "ipam": {"type": "host-local", "ranges": ranges}}),
                json!({"type": "portmap"}),
            ),
        };
        Network { sandbox: self, name: name.to_owned(), bridge, portmap }
            .with("capabilities", json!({"portMappings": true}))
    }
}

impl<'a> Network<'a> {
    /// The same with one key of the portmap plugin's configuration.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.portmap[key] = value;
        self
    }

    /// The same with one key of the bridge plugin's configuration.
    #[must_use]
    pub fn with_bridge(mut self, key: &str, value: Value) -> Self {
        self.bridge[key] = value;
        self
    }

    /// The conflist: what `osvc-net setup` reads.
    pub fn conflist(&self) -> Value {
        json!({"cniVersion": "1.0.0", "name": self.name, "plugins": [self.bridge, self.portmap]})
    }

    /// What a plugin gets on stdin, but for what a call adds: version and name.
    fn plugin(&self, config: &Value) -> Plugin<'a> {
        let mut config = config.clone();
        config["cniVersion"] = json!("1.0.0");
        config["name"] = json!(self.name);
        self.sandbox.plugin(config["type"].as_str().expect("a plugin has a type")).config(config)
    }

    /// A call of the portmap plugin for no container.
    pub fn portmap(&self) -> Plugin<'a> {
        self.plugin(&self.portmap)
    }

    /// A container of that id and name in a new network namespace, on the bridge, with no ports yet.
    #[track_caller]
    pub fn container(&self, id: &str) -> Container<'a> {
        let netns = self.sandbox.netns(id);
        self.attach(&netns, id, "eth0", id)
    }

    /// A container of an id and a workload's name, in a new network namespace called by the id.
    #[track_caller]
    pub fn named(&self, id: &str, name: &str) -> Container<'a> {
        let netns = self.sandbox.netns(id);
        self.attach(&netns, id, "eth0", name)
    }

    /// One interface of a container: ADD of the bridge plugin.
    #[track_caller]
    pub fn attach(&self, netns: &Netns, id: &str, ifname: &str, name: &str) -> Container<'a> {
        let prepare = |plugin: Plugin<'a>| plugin.container(id).ifname(ifname).netns(netns).named(name);
        let bridge = prepare(self.plugin(&self.bridge));
        let result = bridge.add();
        let portmap = prepare(self.portmap()).with("prevResult", result.clone());
        let addresses = addresses_of(&result);
        let bare = |family: &str| {
            let address = addresses.iter().find(|address| address.contains(family));
            address.and_then(|address| address.split('/').next()).unwrap_or_default().to_owned()
        };
        Container { netns: netns.clone(), v4: bare("."), v6: bare(":"), result, bridge, portmap }
    }
}

/// A container on a [`Network`].
#[derive(Clone)]
pub struct Container<'a> {
    /// Its namespace.
    pub netns: Netns,
    /// Its IPv4 address, or nothing.
    pub v4: String,
    /// Its IPv6 address, or nothing.
    pub v6: String,
    /// What the bridge plugin answered.
    pub result: Value,
    /// A call of the bridge plugin for it.
    pub bridge: Plugin<'a>,
    /// A call of the portmap plugin for it, without ports.
    pub portmap: Plugin<'a>,
}

impl<'a> Container<'a> {
    /// A call of the portmap plugin with these ports.
    pub fn ports(&self, mappings: Value) -> Plugin<'a> {
        self.portmap.clone().with("runtimeConfig", json!({"portMappings": mappings}))
    }

    /// ADD of the portmap plugin, which must succeed and pass the bridge plugin's result on.
    #[track_caller]
    pub fn publish(&self, mappings: Value) {
        assert_eq!(self.ports(mappings).add(), self.result, "the result of the plugin before is passed on");
    }

    /// DEL of the portmap plugin with what a runtime knows at least: the id.
    #[track_caller]
    pub fn withdraw(&self) {
        self.bare().del();
    }

    /// A call of the portmap plugin that tells no ports, no result, no namespace and no arguments.
    pub fn bare(&self) -> Plugin<'a> {
        self.portmap.clone().without("prevResult").no_netns().no_args()
    }

    /// DEL of both plugins in reverse order.
    #[track_caller]
    pub fn remove(&self) {
        self.withdraw();
        self.bridge.del();
    }
}

/// An entry of `portMappings`.
pub fn port(host: u16, container: u16, protocol: &str) -> Value {
    json!({"hostPort": host, "containerPort": container, "protocol": protocol})
}

/// An entry of `portMappings` with a host address.
pub fn port_on(address: &str, host: u16, container: u16, protocol: &str) -> Value {
    json!({"hostPort": host, "containerPort": container, "protocol": protocol, "hostIP": address})
}
