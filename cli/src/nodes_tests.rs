//! Lists of nodes while they are edited.

use serde_json::json;

use super::*;

fn document(nodes: Value) -> Value {
    json!({"cniVersion": "1.0.0", "name": "prod", "plugins": [
        {"type": "osvc-routed", "network": "10.11.0.0/16", "maskPerNode": 22, "node": "n1", "Nodes": nodes, "x": 1},
        {"type": "osvc-portmap"}
    ]})
}

/// What an edit makes of a document on a host without records.
fn edit<T>(document: &mut Value, act: impl FnOnce(&mut Editing<'_>) -> Result<T, Error>) -> Result<T, String> {
    edit_named(document, "prod".parse().unwrap(), act)
}

fn edit_named<T>(
    document: &mut Value,
    network: NetworkName,
    act: impl FnOnce(&mut Editing<'_>) -> Result<T, Error>,
) -> Result<T, String> {
    let folder = tempfile::tempdir().unwrap();
    let host = Host { state: folder.path().join("state"), run: folder.path().join("run"), boot: "boot".into() };
    let mut editing = Editing::new(&host, &network, document, Path::new("prod.conflist")).unwrap();
    act(&mut editing).map_err(|error| error.to_string())
}

fn add(document: &mut Value, name: &str) -> Result<Vec<String>, String> {
    edit(document, |editing| editing.add(&NewNode { name: name.to_owned(), ..NewNode::default() }))
}

fn subnets(document: &Value) -> Vec<String> {
    let nodes = document["plugins"][0]["Nodes"].as_array().unwrap();
    let text = |node: &Value| format!("{} {}", node["name"].as_str().unwrap(), node["subnet"].as_str().unwrap_or("-"));
    nodes.iter().map(text).collect()
}

#[test]
fn a_node_that_joins_gets_the_lowest_free_segment_and_all_are_fixed() {
    let mut prod = document(json!([{"name": "n1"}, {"name": "n2", "subnet": "10.11.8.0/22", "addr": "192.0.2.2"}]));
    assert_eq!(add(&mut prod, "n3").unwrap(), ["10.11.4.0/22"]);
    assert_eq!(subnets(&prod), ["n1 10.11.0.0/22", "n2 10.11.8.0/22", "n3 10.11.4.0/22"]);
    assert_eq!(prod["plugins"][0]["x"], 1, "what is not known stays");
    assert!(add(&mut prod, "N3").unwrap_err().contains("has a node N3"));
    let dual = json!(["10.11.0.0/16", "fd11::/48"]);
    (prod["plugins"][0]["network"], prod["plugins"][0]["maskPerNode"]) = (dual, json!([22, 64]));
    assert_eq!(add(&mut prod, "n4").unwrap(), ["10.11.12.0/22", "fd11:0:0:3::/64"]);
}

#[test]
fn a_node_is_retired_first_and_forgotten_then() {
    let mut prod = document(json!([{"name": "n1"}, {"name": "n2"}, {"name": "n3"}]));
    let remove = |prod: &mut Value, name: &str| edit(prod, |editing| editing.remove(name));
    assert_eq!(remove(&mut prod, "n2"), Ok(Removed::Retired));
    assert_eq!(subnets(&prod), ["n1 10.11.0.0/22", "n2 10.11.4.0/22", "n3 10.11.8.0/22"]);
    assert_eq!(add(&mut prod, "n4").unwrap(), ["10.11.12.0/22"], "the segment of a retired node stays empty");
    assert_eq!(remove(&mut prod, "n2"), Ok(Removed::Forgotten));
    assert_eq!(subnets(&prod), ["n1 10.11.0.0/22", "n3 10.11.8.0/22", "n4 10.11.12.0/22"]);
    assert_eq!(add(&mut prod, "n5").unwrap(), ["10.11.4.0/22"]);
    let told = remove(&mut prod, "n9").unwrap_err();
    assert!(told.contains("n9") && told.contains("n1, n3, n4, n5"), "{told}");
    let mut one = document(json!([{"name": "n1"}]));
    assert!(remove(&mut one, "n1").unwrap_err().contains("last"));
}

#[test]
fn what_is_recorded_here_wins_over_what_the_list_gives() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host { state: folder.path().join("state"), run: folder.path().join("run"), boot: "boot".into() };
    let name: NetworkName = "prod".parse().unwrap();
    let all = document(json!([{"name": "n1"}, {"name": "n2"}, {"name": "n3"}]));
    let (seen, _) = config(&name, all["plugins"][0].as_object().unwrap()).unwrap();
    Plan::new(&seen, None).unwrap().record().save(&host).unwrap();
    // n2 was removed by hand: n3 keeps what it has.
    let mut prod = document(json!([{"name": "n1"}, {"name": "n3"}]));
    Editing::new(&host, &name, &mut prod, Path::new("x")).unwrap().fix().unwrap();
    assert_eq!(subnets(&prod), ["n1 10.11.0.0/22", "n3 10.11.8.0/22"]);
}

#[test]
fn a_host_that_is_no_node_can_edit_too_and_faults_are_told() {
    let mut prod = document(json!([{"name": "n1"}, {"name": "n2"}]));
    prod["plugins"][0].as_object_mut().unwrap().remove("node");
    assert_eq!(add(&mut prod, "n3").unwrap(), ["10.11.8.0/22"]);
    prod["plugins"][0]["maskPerNode"] = json!(8);
    assert!(add(&mut prod, "n4").unwrap_err().contains("maskPerNode"));
    let mut small = document(json!([{"name": "n1"}, {"name": "n2"}]));
    small["plugins"][0]["network"] = json!("10.11.0.0/21");
    let told = add(&mut small, "n3").unwrap_err();
    assert!(told.contains("10.11.0.0/21 has 2 segments"), "{told}");
}

#[test]
fn the_examples_are_as_this_program_writes_them_and_good_on_each_node() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../conf-examples/routed");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        let network = crate::conf::parse(&file, text.as_bytes()).unwrap().name;
        let mut document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(crate::document::text(&document), text, "{}", file.display());
        let plans: Vec<Vec<osvc_cni::routed::segments::PlannedNetwork>> = ["node1", "node2", "node3"]
            .iter()
            .map(|node| {
                let mut plugin = plugin(&mut document).unwrap().clone();
                set(&mut plugin, "node", (*node).into());
                let (config, is_here) = config(&network, &plugin).unwrap();
                assert!(is_here, "{node} in {}", file.display());
                Plan::new(&config, None).unwrap().networks().to_vec()
            })
            .collect();
        assert!(plans[0][0].segments.len() == 3 && plans.iter().all(|plan| *plan == plans[0]), "{plans:?}");
        edit_named(&mut document, network, |editing| editing.fix()).unwrap();
        seen += 1;
    }
    assert_eq!(seen, 5);
}
