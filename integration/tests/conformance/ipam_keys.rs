//! B1: each key of the IPAM plugin, and each way to get it wrong. What is refused is refused before anything is made, names
//! key and value, and has the reference's words where it has some.

use integration::{Family, Plugin, Sandbox, addresses_of};
use serde_json::{Value, json};

both! {
    b1_1_to_b1_11_what_cannot_be_is_refused_by_key_and_value
    b1_3_b1_4_flat_and_runtime_ranges_come_before_ranges
    b1_5_routes_are_copied_as_they_are
    b1_9_a_gateway_may_be_outside_of_the_subnet
    b1_10_no_range_leads_out_of_its_subnet
    b1_12_a_requested_address_that_is_taken
    b1_13_unknown_arguments
    b1_14_the_rest_of_the_configuration_is_not_read
    c3_static_gives_addresses_to_a_bridge
}

fn call<'a>(sandbox: &'a Sandbox, family: Family, version: &str, ipam: Value) -> Plugin<'a> {
    let netns = if sandbox.exists("/run/netns/pod") { "/run/netns/pod".to_owned() } else { sandbox.netns("pod").path };
    let mut config = family.ipam_config(version, "mynet", json!({}));
    config["ipam"] = ipam;
    if config["ipam"].is_object() {
        config["ipam"]["type"] = json!(family.ipam());
    }
    sandbox.plugin(family.ipam()).netns_path(&netns).config(config)
}

/// `ipam`, the reference's words ("": it accepts or ignores that), our code, and what else ours names.
type Case = (Value, &'static str, u64, &'static [&'static str]);

fn cases() -> Vec<Case> {
    let two = |range: Value| json!({"ranges": [[{"subnet": "172.16.0.0/24"}], [range]]});
    vec![
        (json!(null), "IPAM config missing 'ipam' key", 7, &[]),
        (json!({}), "no IP ranges specified", 7, &["ipam.subnet", "ipam.ranges"]),
        (json!({"ranges": []}), "no IP ranges specified", 7, &[]),
        (json!({"ranges": [[]]}), "invalid range set 0: empty range set", 7, &["ipam.ranges[0]"]),
        (json!({"ranges": [{"subnet": "10.0.0.0/24"}]}), "cannot unmarshal", 6, &["ipam.ranges[0]"]),
        (json!({"subnet": 5}), "", 6, &["ipam.subnet", "5"]),
        (two(json!({})), "invalid range set 1: ", 7, &["no subnet", "ipam.ranges[1][0]"]),
        (two(json!({"subnet": "banana"})), "invalid CIDR address: banana", 7, &["ipam.ranges[1][0].subnet"]),
        (two(json!({"subnet": "10.0.0.0"})), "invalid CIDR address: 10.0.0.0", 7, &["ipam.ranges[1][0].subnet"]),
        (
            two(json!({"subnet": "10.0.0.0/31"})),
            "invalid range set 1: Network 10.0.0.0/31 too small to allocate from",
            7,
            &["ipam.ranges[1][0]"],
        ),
        (json!({"subnet": "fd00::/127"}), "Network fd00::/127 too small to allocate from", 7, &["(ipam)"]),
        (
            two(json!({"subnet": "192.0.2.12/24"})),
            "Network has host bits set. For a subnet mask of length 24 the network address is 192.0.2.0",
            7,
            &["ipam.ranges[1][0]"],
        ),
        (
            json!({"subnet": "fd00::12/64"}),
            "Network has host bits set. For a subnet mask of length 64 the network address is fd00::",
            7,
            &["(ipam)"],
        ),
        (
            json!({"subnet": "10.0.0.0/24", "rangeStart": "10.0.1.1"}),
            "RangeStart 10.0.1.1 not in network 10.0.0.0/24",
            7,
            &["(ipam)"],
        ),
        (
            json!({"subnet": "10.0.0.0/24", "rangeEnd": "10.0.1.1"}),
            "RangeEnd 10.0.1.1 not in network 10.0.0.0/24",
            7,
            &["(ipam)"],
        ),
        (
            json!({"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.9", "rangeEnd": "10.0.0.3"}),
            "RangeStart 10.0.0.9 not in network 10.0.0.0/24",
            7,
            &["10.0.0.3"],
        ),
        (json!({"subnet": "10.0.0.0/24", "rangeStart": "banana"}), "banana", 7, &["ipam.rangeStart"]),
        (json!({"subnet": "10.0.0.0/24", "rangeEnd": "banana"}), "banana", 7, &["ipam.rangeEnd"]),
        (json!({"subnet": "10.0.0.0/24", "gateway": "banana"}), "banana", 7, &["ipam.gateway"]),
        (json!({"subnet": "10.0.0.0/24", "gateway": "fd00::1"}), "", 7, &["fd00::1", "10.0.0.0/24"]),
        (
            two(json!({"subnet": "::ffff:10.0.0.0/120"})),
            "IPNet IP and Mask version mismatch",
            7,
            &["ipam.ranges[1][0]"],
        ),
        (
            json!({"ranges": [[{"subnet": "10.1.0.0/22"}, {"subnet": "fd00::/64"}]]}),
            "invalid range set 0: mixed address families",
            7,
            &["ipam.ranges[0]"],
        ),
        (
            json!({"ranges": [[{"subnet": "10.1.0.0/22"}, {"subnet": "10.1.2.0/24"}]]}),
            "invalid range set 0: subnets 10.1.0.1-10.1.3.254 and 10.1.2.1-10.1.2.254 overlap",
            7,
            &["ipam.ranges[0]"],
        ),
        (
            json!({"ranges": [[{"subnet": "10.1.0.0/22"}], [{"subnet": "10.1.2.0/24"}]]}),
            "range set 0 overlaps with 1",
            7,
            &["10.1.0.1-10.1.3.254", "10.1.2.1-10.1.2.254"],
        ),
        (
            json!({"subnet": "10.0.0.0/24", "routes": [{"dst": "banana"}]}),
            "invalid CIDR address: banana",
            7,
            &["ipam.routes[0].dst"],
        ),
        (json!({"subnet": "10.0.0.0/24", "routes": [{"dst": "::/0", "gw": "x"}]}), "x", 7, &["ipam.routes[0].gw"]),
        (
            json!({"subnet": "10.0.0.0/24", "resolvConf": "/nonexistent/resolv.conf"}),
            "/nonexistent/resolv.conf",
            5,
            &["ipam.resolvConf", "mynet"],
        ),
        (json!({"subnet": "10.0.0.0/24", "resolvConf": "/run"}), "/run", 5, &["ipam.resolvConf", "not a regular file"]),
        (json!({"subnet": "10.0.0.0/24", "dataDir": "here"}), "", 7, &["ipam.dataDir", "here"]),
        (json!({"subnet": "10.0.0.0/24", "hostLocalDir": "here"}), "", 7, &["ipam.hostLocalDir", "here"]),
        (json!({"subnet": "10.0.0.0/24", "opensvcIpamDir": "here"}), "", 7, &["ipam.opensvcIpamDir", "here"]),
        (json!({"subnet": "10.0.0.0/24", "exclude": ["10.0.0.5/24"]}), "", 7, &["ipam.exclude[0]", "10.0.0.5/24"]),
        (json!({"subnet": "10.0.0.0/24", "exclude": ["10.0.0.9-10.0.0.1"]}), "", 7, &["ipam.exclude[0]", "behind"]),
        (json!({"subnet": "10.0.0.0/24", "exclude": "10.0.0.9"}), "", 6, &["ipam.exclude"]),
        (json!({"subnet": "10.0.0.0/24", "key": "${K8S POD}"}), "", 7, &["ipam.key", "K8S POD"]),
        (json!({"subnet": "10.0.0.0/24", "claims": {"prod": "20"}}), "", 7, &["ipam.claims.\"prod\"", "\"20\""]),
        (json!({"subnet": "10.0.0.0/24", "statusWhenFull": "no"}), "", 6, &["ipam.statusWhenFull"]),
    ]
}

#[track_caller]
fn refused(sandbox: &Sandbox, family: Family, plugin: &Plugin<'_>, (reference, code, names): (&str, u64, &[&str])) {
    let (given, message) = plugin.add_fails();
    // Of a wrong type the reference says what Go's decoder says.
    let words = if family.is_ours() && code == 6 { "error unmarshall network config: " } else { reference };
    assert!(message.contains(words), "expected `{words}`: {message}");
    if family.is_ours() {
        assert_eq!(given, code, "{message}");
        assert!(names.iter().all(|name| message.contains(name)), "expected {names:?}: {message}");
        assert_eq!(sandbox.list("/var/lib/cni"), [""; 0], "nothing is made for `{message}`");
    }
}

fn b1_1_to_b1_11_what_cannot_be_is_refused_by_key_and_value(family: Family) {
    let sandbox = Sandbox::new();
    for (ipam, reference, code, names) in cases() {
        if family.is_ours() || !reference.is_empty() {
            refused(&sandbox, family, &call(&sandbox, family, "0.4.0", ipam), (reference, code, names));
        }
    }
    let two = json!({"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.1.3.0/24"}]]});
    for version in ["0.1.0", "0.2.0"] {
        let text = format!("CNI version {version} does not support more than 1 address per family");
        refused(&sandbox, family, &call(&sandbox, family, version, two.clone()), (&text, 7, &[]));
    }
    let plugin = call(&sandbox, family, "0.4.0", json!({"subnet": "10.0.0.0/24"}));
    let runtime = |ips: Value| plugin.clone().with("runtimeConfig", json!({"ips": ips}));
    let args = |ips: Value| plugin.clone().with("args", json!({"cni": {"ips": ips}}));
    let all = "failed to allocate all requested IPs: 10.";
    for (plugin, reference, code, names) in [
        (plugin.clone().args("IgnoreUnknown=1;IP=banana"), "invalid IP address banana", 4, &["CNI_ARGS IP"][..]),
        (args(json!(["banana"])), "invalid IP address banana", 7, &["args.cni.ips"]),
        (runtime(json!(["banana"])), "invalid IP address banana", 7, &["runtimeConfig.ips"]),
        (runtime(json!(["10.0.0.5/33"])), "10.0.0.5/33", 7, &["runtimeConfig.ips"]),
        (runtime(json!(["10.0.0.1"])), "requested ip 10.0.0.1 is subnet's gateway", 7, &[]),
        (runtime(json!(["10.9.0.1"])), all, 7, &["10.9.0.1", "10.0.0.1-10.0.0.254"]),
        (runtime(json!(["10.0.0.7", "10.0.0.8"])), all, 7, &["10.0.0.8"]),
    ] {
        refused(&sandbox, family, &plugin, (reference, code, names));
    }
    if family.is_ours() {
        for (ip, names) in [("10.0.0.0", ["10.0.0.0", "10.0.0.0/24"]), ("10.0.0.255", ["10.0.0.255", "broadcast"])] {
            refused(&sandbox, family, &runtime(json!([ip])), ("", 7, &names));
        }
    }
    // None of it is in the way of DEL, nor of a correct call.
    call(&sandbox, family, "0.4.0", json!({"subnet": "10.0.0.0/24", "resolvConf": "/nonexistent"})).del();
    plugin.add();
    plugin.del();
}

fn b1_3_b1_4_flat_and_runtime_ranges_come_before_ranges(family: Family) {
    let sandbox = Sandbox::new();
    let only = |subnet: &str, ip: &str, gateway: &str| json!({"subnet": subnet, "rangeStart": ip, "rangeEnd": ip, "gateway": gateway});
    let mut ipam = only("10.2.0.0/24", "10.2.0.9", "");
    ipam["ranges"] = json!([[only("10.3.0.0/24", "10.3.0.9", "10.3.0.254")]]);
    let ranges = json!({"ipRanges": [[only("10.1.0.0/24", "10.1.0.9", "")]]});
    let result = call(&sandbox, family, "0.4.0", ipam).with("runtimeConfig", ranges).add();
    assert_eq!(addresses_of(&result), ["10.1.0.9/24", "10.2.0.9/24", "10.3.0.9/24"]);
    let gateways: Vec<_> = result["ips"].as_array().unwrap().iter().map(|ip| ip["gateway"].clone()).collect();
    assert_eq!(gateways, ["10.1.0.1", "10.2.0.1", "10.3.0.254"], "\"\" is the default");
}

fn b1_5_routes_are_copied_as_they_are(family: Family) {
    let sandbox = Sandbox::new();
    let mut routes = json!([{"dst": "0.0.0.0/0"}, {"dst": "10.8.0.0/16", "gw": "10.0.0.9"}]);
    if family.is_ours() {
        // The reference's version here does not know these yet.
        let more = json!({"dst": "10.7.0.0/16", "gw": "10.0.0.9", "mtu": 1400, "advmss": 1300, "priority": 5, "table": 100, "scope": 253});
        routes.as_array_mut().unwrap().push(more);
    }
    let version = if family.is_ours() { "1.1.0" } else { "1.0.0" };
    let ipam = json!({"subnet": "10.0.0.0/24", "routes": routes, "dns": {"nameservers": ["192.0.2.9"]}});
    let result = call(&sandbox, family, version, ipam).add();
    assert_eq!(result["routes"], routes);
    assert!(!result.to_string().contains("192.0.2.9"), "B1.6: a `dns` inside of ipam is not read: {result}");
}

/// The reference takes any gateway. One of another family is a mistake in any case: see the table.
fn b1_9_a_gateway_may_be_outside_of_the_subnet(family: Family) {
    let sandbox = Sandbox::new();
    let result = call(&sandbox, family, "0.4.0", json!({"subnet": "10.0.0.0/24", "gateway": "192.0.2.1"})).add();
    assert_eq!(result["ips"][0]["gateway"], "192.0.2.1");
}

fn b1_10_no_range_leads_out_of_its_subnet(family: Family) {
    let sandbox = Sandbox::new();
    let past = call(&sandbox, family, "0.4.0", json!({"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.255"}));
    let whole = json!({"subnet": "10.0.0.0/30", "rangeStart": "10.0.0.0", "rangeEnd": "10.0.0.3"});
    let whole = call(&sandbox, family, "0.4.0", whole);
    if family == Family::Reference {
        // Its defect: the broadcast address, and after it the next subnet's.
        assert_eq!(addresses_of(&past.add()), ["10.0.0.255/24"]);
        assert_eq!(addresses_of(&past.clone().container("c2").add()), ["10.0.1.0/24"]);
        return;
    }
    let (code, message) = past.add_fails();
    assert!(code == 7 && message.contains("RangeStart 10.0.0.255"), "{code} {message}");
    assert_eq!(addresses_of(&whole.add()), ["10.0.0.2/30"]);
    assert_eq!(whole.clone().container("c2").add_fails().0, 11, "neither network nor broadcast address");
}

fn b1_12_a_requested_address_that_is_taken(family: Family) {
    let sandbox = Sandbox::new();
    let plugin = call(&sandbox, family, "0.4.0", json!({"subnet": "10.0.0.0/24"}));
    let asking = plugin.clone().with("runtimeConfig", json!({"ips": ["10.0.0.9"]}));
    asking.clone().named("web").add();
    let (code, message) = asking.clone().container("c2").named("db").add_fails();
    assert!(message.contains("equested IP address 10.0.0.9 is not available"), "{message}");
    if family.is_ours() {
        assert!(
            code == 101 && ["\"web\"", "container c1", "since 20"].iter().all(|word| message.contains(word)),
            "{message}"
        );
        // Granted, it takes the place of the one before: never two addresses out of one set.
        let other = plugin.named("web").with("runtimeConfig", json!({"ips": ["10.0.0.10"]}));
        assert_eq!(addresses_of(&other.add()), ["10.0.0.10/24"]);
        assert_eq!(sandbox.held(family, "mynet").len(), 1);
    }
}

/// Ours reads CNI_ARGS of any runtime; the reference wants to be told to.
fn b1_13_unknown_arguments(family: Family) {
    let sandbox = Sandbox::new();
    let plugin = call(&sandbox, family, "0.4.0", json!({"subnet": "10.0.0.0/24"}));
    let told = plugin.clone().args("IgnoreUnknown=1;FOO=BAR;IP=10.0.0.7");
    assert_eq!(addresses_of(&told.add()), ["10.0.0.7/24"]);
    let reply = plugin.clone().container("c2").args("FOO=BAR").call("ADD").success_or_error();
    assert_eq!(reply.is_ok(), family.is_ours(), "{reply:?}");
}

fn b1_14_the_rest_of_the_configuration_is_not_read(family: Family) {
    let sandbox = Sandbox::new();
    let plugin = call(&sandbox, family, "0.4.0", json!({"subnet": "10.0.0.0/24", "unknown": {"x": [1]}}))
        .with("mtu", json!("banana"))
        .with("isGateway", json!({"x": 1}))
        .with("prevResult", json!({"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "192.0.2.9/24"}]}));
    assert!(addresses_of(&plugin.add())[0].starts_with("10.0.0."), "nor is prevResult");
    plugin.del();
}

/// ST1, ST3, ST6, ST10: another IPAM plugin than ours, under the bridge.
fn c3_static_gives_addresses_to_a_bridge(family: Family) {
    let sandbox = Sandbox::new();
    let pod = sandbox.netns("pod");
    let mut config = family.bridge_config("1.0.0", "mynet", json!({}));
    config["isGateway"] = json!(true);
    config["ipam"] = json!({"type": "static", "routes": [{"dst": "0.0.0.0/0"}], "addresses": [
        {"address": "10.10.0.9/24", "gateway": "10.10.0.254"}, {"address": "fd0a::9/64", "gateway": "fd0a::1"}],
        "dns": {"nameservers": ["192.0.2.9"]}});
    let plugin = sandbox.plugin(family.bridge()).netns(&pod).config(config);
    let result = plugin.add();
    assert_eq!(addresses_of(&result), ["10.10.0.9/24", "fd0a::9/64"]);
    // The reference that Debian packages drops what its IPAM plugin says.
    let dns = if family.is_ours() { json!(["192.0.2.9"]) } else { Value::Null };
    assert_eq!(result["dns"]["nameservers"], dns);
    assert_eq!(sandbox.addresses_in(&pod, "eth0"), addresses_of(&result));
    assert!(sandbox.ping(&pod, "10.10.0.254"), "the gateway is on the bridge");
    plugin.check(&result);
    plugin.del();
    plugin.clone().container("unknown").del();
    // Such an address has no gateway, and the bridge another than that of the reference's choice.
    let plugin = plugin.with("isGateway", json!(false));
    let at = |plugin: &Plugin<'_>| {
        let result = plugin.add();
        plugin.del();
        addresses_of(&result)
    };
    let in_args = plugin.clone().with("args", json!({"cni": {"ips": ["10.10.0.66/24"]}}));
    assert_eq!(at(&in_args), ["10.10.0.66/24"]);
    let asking = in_args.with("runtimeConfig", json!({"ips": ["10.10.0.77/24"]}));
    assert_eq!(at(&asking), ["10.10.0.77/24"], "the runtime's wins");
    let routes = json!([{"dst": "10.0.0.0/8", "gw": "10.10.0.2"}, {"dst": "10.0.0.0/8", "gw": "10.10.0.3"}]);
    let bare = plugin.clone().with("ipam", json!({"type": "static", "routes": routes}));
    let words = "IgnoreUnknown=1;IP=10.10.0.55/24,10.20.0.5/24;GATEWAY=10.10.0.1,10.20.0.1";
    let asking = bare.args(words);
    let result = asking.add();
    let paths = sandbox
        .routes_in(&pod, 4)
        .iter()
        .filter(|route| route["dst"] == "10.0.0.0/8")
        .map(|route| route["nexthops"].as_array().map_or(1, Vec::len))
        .sum::<usize>();
    assert_eq!(paths, 2, "two ways to one destination");
    asking.del();
    let (addresses, gateway) = (addresses_of(&result), result["ips"][0]["gateway"].clone());
    assert_eq!((addresses, gateway), (vec!["10.10.0.55/24".to_owned(), "10.20.0.5/24".to_owned()], json!("10.10.0.1")));
    let (_, message) = plugin.with("runtimeConfig", json!({"ips": ["10.10.0.77"]})).add_fails();
    assert!(message.contains("an entry in the 'ips' field is NOT in CIDR notation, got: '10.10.0.77'"), "{message}");
    // The reference leaves what it had made.
    assert_eq!(sandbox.links_in(&pod).contains("eth0"), !family.is_ours());
}

/// Ours: what is excluded is drawn by nobody, and given to whoever asks.
#[test]
fn excluded_addresses_are_given_on_request_only() {
    let sandbox = Sandbox::new();
    let ipam = json!({"subnet": "10.0.0.0/28", "exclude": ["10.0.0.2", "10.0.0.4-10.0.0.9", "10.0.0.12/30"]});
    let plugin = call(&sandbox, Family::Osvc, "1.1.0", ipam);
    let draw = |n: usize| addresses_of(&plugin.clone().container(&format!("c{n}")).add()).concat();
    let mut drawn: Vec<_> = (0..3).map(draw).collect();
    drawn.sort();
    assert_eq!(drawn, ["10.0.0.10/28", "10.0.0.11/28", "10.0.0.3/28"]);
    assert_eq!(plugin.clone().container("c3").add_fails().0, 11);
    let asking = plugin.clone().container("c4").with("runtimeConfig", json!({"ips": ["10.0.0.5"]}));
    assert_eq!(addresses_of(&asking.add()), ["10.0.0.5/28"]);
    // It was asked for once: its key has it again.
    asking.del();
    assert_eq!(addresses_of(&plugin.clone().container("c4").add()), ["10.0.0.5/28"]);
}

/// Ours: a template instead of the usual order of keys.
#[test]
fn a_key_template_says_whose_address_it_is() {
    let sandbox = Sandbox::new();
    let ipam = json!({"subnet": "10.0.0.0/24", "key": "${K8S_POD_NAMESPACE}/${APP}"});
    let plugin = call(&sandbox, Family::Osvc, "1.1.0", ipam);
    let pod = |container: &str, name: &str, app: &str| {
        let app = if app.is_empty() { String::new() } else { format!(";APP={app}") };
        plugin.clone().container(container).args(&format!("K8S_POD_NAMESPACE=prod;K8S_POD_NAME={name}{app}"))
    };
    let key = |plugin: &Plugin<'_>| {
        let address = addresses_of(&plugin.add()).concat();
        let record = sandbox.record("/var/lib/cni/osvc/ipam/mynet", address.split('/').next().unwrap());
        (address, record["key"].clone())
    };
    let (first, text) = key(&pod("c1", "web-5d9f", "web"));
    assert_eq!(text, json!({"source": "template", "text": "prod/web"}));
    pod("c1", "", "").del();
    assert_eq!(key(&pod("c2", "web-77aa", "web")).0, first, "another pod of the same application");
    assert_eq!(key(&pod("c3", "db-0", "")).1, json!({"source": "k8s", "text": "prod/db-0"}), "without the variable");
}
