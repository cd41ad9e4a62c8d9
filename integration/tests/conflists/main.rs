//! Conflists as other projects ship, generate or document them, in their form but in our words: each is run by cnitool
//! with nothing but the types changed, and one of each kind as it is, with the reference plugins.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use integration::{Family, Netns, Output, Sandbox, addresses_of, report};
use serde_json::{Value, json};

/// One test for each file, and the same with the reference plugins for those that tell one kind from another.
macro_rules! conflists {
    (switched { $($case:ident: $file:literal,)* } as_they_are { $($reference:ident: $as_it_is:literal,)* }) => {
        mod switched {
            $( #[test] fn $case() { super::run(integration::Family::Osvc, ($file, include_str!(concat!("files/", $file)))); } )*
        }
        mod as_they_are {
            $( #[test] fn $reference() {
                super::run(integration::Family::Reference, ($as_it_is, include_str!(concat!("files/", $as_it_is))));
            } )*
        }
    };
}

conflists! {
    switched {
        apptainer: "apptainer.conflist",
        buildkit: "buildkit.conflist",
        cni_readme: "cni-readme.conf",
        containerd: "containerd.conflist",
        cri_o: "cri-o.conflist",
        cri_o_1_20: "cri-o-1.20.conf",
        flannel_delegate: "flannel-delegate.conflist",
        kind: "kind.conflist",
        kube_router: "kube-router.conflist",
        kubenet: "kubenet.conf",
        kubernetes_docs: "kubernetes-docs.conflist",
        kubevirt_bridge: "kubevirt-bridge.conf",
        mesos: "mesos.conf",
        minikube: "minikube.conflist",
        multus_bridge: "multus-bridge.conf",
        multus_macvlan: "multus-macvlan.conf",
        nerdctl: "nerdctl.conflist",
        nomad: "nomad.conflist",
        opensvc_bridge: "opensvc-bridge.conf",
        opensvc_routed_bridge: "opensvc-routed-bridge.conf",
        podman: "podman.conflist",
        podman_macvlan: "podman-macvlan.conflist",
        podman_network_create: "podman-network-create.conflist",
        rkt: "rkt.conf",
    }
    as_they_are {
        flannel_delegate: "flannel-delegate.conflist",
        kubenet: "kubenet.conf",
        kubevirt_bridge: "kubevirt-bridge.conf",
        multus_bridge: "multus-bridge.conf",
        podman_macvlan: "podman-macvlan.conflist",
    }
}

/// The three types that are ours; every other plugin is called as it is.
fn switched(document: &Value) -> Value {
    let mut document = document.clone();
    match document.get_mut("plugins") {
        Some(plugins) => plugins.as_array_mut().unwrap().iter_mut().for_each(switch),
        None => switch(&mut document),
    }
    document
}

fn switch(plugin: &mut Value) {
    for holder in ["/type", "/ipam/type"] {
        if let Some(kind) = plugin.pointer_mut(holder) {
            *kind = match kind.as_str().unwrap() {
                "bridge" => json!("osvc-bridge"),
                "host-local" => json!("osvc-ipam"),
                "portmap" => json!("osvc-portmap"),
                other => json!(other),
            };
        }
    }
}

/// What a file asks for, as far as the traffic depends on it.
struct Asked {
    name: String,
    version: String,
    layer_three: bool,
    masqueraded: bool,
    on_the_link: bool,
    publishes: bool,
    shaped: bool,
}

impl Asked {
    fn of(document: &Value) -> Self {
        let one = [document.clone()];
        let plugins = document["plugins"].as_array().map_or(&one[..], Vec::as_slice);
        let any = |test: &dyn Fn(&Value) -> bool| plugins.iter().any(test);
        Self {
            name: document["name"].as_str().unwrap().to_owned(),
            version: document["cniVersion"].as_str().unwrap_or("0.1.0").to_owned(),
            layer_three: any(&|plugin| plugin["ipam"]["type"].is_string()),
            masqueraded: any(&|plugin| plugin["ipMasq"] == true),
            on_the_link: any(&|plugin| plugin["type"] == "macvlan"),
            publishes: any(&|plugin| plugin["type"] == "portmap"),
            shaped: any(&|plugin| plugin["type"] == "bandwidth"),
        }
    }
}

fn cnitool(sandbox: &Sandbox, capabilities: &Value, words: &str) -> Output {
    sandbox.sh(&format!("CNI_PATH=/opt/cni/bin CAP_ARGS='{capabilities}' cnitool {words}"))
}

/// The addresses of a result of any version, but for those of `lo`, which an earlier plugin of the chain may tell.
fn listed(result: &Value) -> Vec<String> {
    match result["ip4"]["ip"].as_str() {
        Some(address) => vec![address.to_owned()],
        None => addresses_of(result).into_iter().filter(|it| !it.starts_with("127.") && it != "::1/128").collect(),
    }
}

fn bare(address: &str) -> &str {
    address.split('/').next().unwrap()
}

fn run(family: Family, (file, text): (&str, &str)) {
    let original: Value = serde_json::from_str(text).unwrap();
    let document = if family.is_ours() { switched(&original) } else { original.clone() };
    let asked = Asked::of(&original);
    let sandbox = Sandbox::with_tools(&[env!("CARGO_BIN_EXE_talk")]);
    let outside = sandbox.outside();
    let before = sandbox.links();
    sandbox.write(&format!("/etc/cni/net.d/10-{file}"), &document.to_string());
    let capabilities = |publish: bool| {
        let ports =
            if publish { json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]) } else { json!([]) };
        json!({"portMappings": ports, "bandwidth": {"ingressRate": 80_000_000, "ingressBurst": 80_000_000,
            "egressRate": 80_000_000, "egressBurst": 80_000_000}})
    };
    let add = |name: &str, publish: bool| -> (Netns, Vec<String>) {
        let pod = sandbox.netns(name);
        let words = format!("add {} {}", asked.name, pod.path);
        let result: Value = serde_json::from_str(&cnitool(&sandbox, &capabilities(publish), &words).ok()).unwrap();
        let addresses = sandbox.addresses_in(&pod, "eth0");
        if asked.layer_three {
            assert_eq!(addresses, listed(&result), "{file}: the container has what the result says");
        }
        (pod, addresses)
    };
    let (one, addresses) = add("one", true);
    let (two, others) = add("two", false);
    // Debian's bandwidth and portmap plugins fail their own CHECK right after ADD.
    let checks = !asked.shaped && (family.is_ours() || !asked.publishes);
    if checks && asked.version.as_str() >= "0.4.0" {
        cnitool(&sandbox, &capabilities(true), &format!("check {} {}", asked.name, one.path)).ok();
    }
    for (mine, other) in addresses.iter().zip(&others) {
        assert!(sandbox.ping(&one, bare(other)) && sandbox.ping(&two, bare(mine)), "{file}: {mine} and {other}");
    }
    if asked.masqueraded || asked.on_the_link {
        assert!(sandbox.ping(&one, "192.0.2.1"), "{file}: the world outside");
    }
    if asked.publishes {
        sandbox.serve(Some(&one), "tcp", "[::]:80", "one");
        assert_eq!(sandbox.ask(Some(&outside), "tcp", "192.0.2.2:8080"), "one 192.0.2.1", "{file}");
        sandbox.end_server("one");
    }
    let del = |pod: &Netns, publish: bool| {
        cnitool(&sandbox, &capabilities(publish), &format!("del {} {}", asked.name, pod.path)).ok();
        assert!(!sandbox.links_in(pod).contains("eth0"), "{file}");
    };
    if family.is_ours() {
        restart(&sandbox, &document, &asked, &one, &addresses, &add);
    } else {
        del(&one, true);
    }
    del(&two, false);
    let left: Vec<_> = sandbox
        .links()
        .difference(&before)
        .filter(|name| name.starts_with("ov") || name.starts_with("veth"))
        .cloned()
        .collect();
    assert!(left.is_empty(), "{file}: left behind: {left:?}");
    report::ran("cnitool 1.3.0", &format!("conflist {file}, {}", if family.is_ours() { "ours" } else { "reference" }));
}

/// Starts a container of a name, with its port published or without: its namespace and addresses.
type Add<'a> = dyn Fn(&str, bool) -> (Netns, Vec<String>) + 'a;

/// The first container is restarted, with and without DEL: it has its addresses again.
fn restart(sandbox: &Sandbox, document: &Value, asked: &Asked, one: &Netns, addresses: &[String], add: &Add<'_>) {
    let del = || {
        cnitool(sandbox, &json!({}), &format!("del {} {}", asked.name, one.path)).ok();
    };
    del();
    sandbox.delete_netns(one);
    assert_eq!(add("one", true).1, addresses, "after DEL: {document}");
    // Without a DEL the bandwidth plugin's own device stays in the way.
    if !asked.shaped {
        sandbox.delete_netns(one);
        sandbox.sh("rm -rf /var/lib/cni/results").ok();
        assert_eq!(add("one", true).1, addresses, "after a DEL that never came: {document}");
    }
    del();
}
