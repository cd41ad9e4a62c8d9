use serde_json::{Value, json};

use super::*;
use crate::Code;
use crate::routed::config::tests::config as checked;

mod networks;
mod record;

/// A configuration of 10.11.0.0/16 with /22: nodes are names, `name=slot` fixes a segment, `!name` is retired.
fn config(here: &str, nodes: &str) -> RoutedConfig {
    config_of(here, nodes, json!("10.11.0.0/16"), json!(22))
}

fn config_of(here: &str, nodes: &str, network: Value, mask: Value) -> RoutedConfig {
    let node = |text: &str| {
        let retired = text.starts_with('!');
        let (name, slot) = text.trim_start_matches('!').split_once('=').map_or((text, None), |(n, s)| (n, Some(s)));
        let subnet = slot.map(|slot| slot.parse::<u32>().map_or(slot.to_owned(), segment));
        json!({"name": name.trim_start_matches('!'), "retired": retired, "subnet": subnet})
    };
    let nodes: Vec<Value> = nodes.split(' ').map(node).collect();
    checked(&json!({"network": network, "maskPerNode": mask, "node": here, "nodes": nodes})).unwrap()
}

/// The segment of this number.
fn segment(slot: u32) -> String {
    format!("10.11.{}.0/22", slot * 4)
}

/// The plan in short: `a0 b1 c2`, in the order of names.
fn short(plan: &Plan) -> String {
    let slot = |segment: &IpNet| match segment.addr() {
        std::net::IpAddr::V4(ip) => u32::from(ip.octets()[2]) / 4,
        std::net::IpAddr::V6(_) => unreachable!(),
    };
    let segments = &plan.networks()[0].segments;
    segments.iter().map(|(name, segment)| format!("{name}{}", slot(segment))).collect::<Vec<_>>().join(" ")
}

/// A node that sees one configuration after the other.
struct Seen(SegmentRecord);

impl Seen {
    fn new(here: &str, nodes: &str) -> Self {
        Self(Plan::new(&config(here, nodes), None).unwrap().record().clone())
    }

    fn sees(&mut self, nodes: &str) -> Plan {
        let here = self.0.node.clone();
        self.sees_as(&here, nodes).unwrap()
    }

    /// By the name of another node, or a new one.
    fn sees_as(&mut self, here: &str, nodes: &str) -> Result<Plan, Error> {
        let plan = Plan::new(&config(here, nodes), Some(&self.0))?;
        self.0 = plan.record().clone();
        Ok(plan)
    }
}

fn refusals(plan: &Plan) -> Vec<String> {
    plan.refused().iter().map(ToString::to_string).collect()
}

#[test]
fn the_example_of_the_design() {
    let plan = Plan::new(&config("a", "a b c"), None).unwrap();
    assert_eq!(plan.here(), ["10.11.0.0/22".parse().unwrap()]);
    assert_eq!(plan.segment("b", false), Some("10.11.4.0/22".parse().unwrap()));
    assert_eq!(plan.of("c").collect::<Vec<_>>(), ["10.11.8.0/22".parse().unwrap()]);
    assert_eq!((plan.segment("c", true), plan.of("d").count()), (None, 0));
    assert_eq!(plan.holder("10.11.11.7".parse().unwrap()), Some("c"));
    assert_eq!(plan.holder("10.11.12.0".parse().unwrap()), None);
    assert!(plan.is_new() && plan.refused().is_empty());
}

#[test]
fn fixed_segments_first_of_any_size() {
    let plan = |nodes| short(&Plan::new(&config("a", nodes), None).unwrap());
    assert_eq!(plan("a b=0 c"), "a1 b0 c2");
    assert_eq!(plan("a b=10.11.4.0/24 c=10.11.0.0/24 d"), "a2 b1 c0 d3");
    assert_eq!(plan("a !b c"), "a0 b1 c2");
}

#[test]
fn a_joined_node_gets_the_lowest_free_segment_on_all_nodes() {
    let mut a = Seen::new("a", "a b c");
    let plan = a.sees("a b c d");
    assert_eq!((short(&plan).as_str(), plan.is_new(), plan.refused()), ("a0 b1 c2 d3", true, &[][..]));
    assert!(!a.sees("a b c d").is_new());
    assert_eq!(a.0, SegmentRecord { node: "a".to_owned(), ..Seen::new("d", "a b c d").0 });
    assert_eq!(short(&a.sees("a e=5 b c d f")), "a0 b1 c2 d3 e5 f4");
}

#[test]
fn removed_from_the_middle_nobody_moves_and_it_is_told() {
    let mut c = Seen::new("c", "a b c");
    let plan = c.sees("a c");
    assert_eq!(short(&plan), "a0 c2");
    assert_eq!(
        refusals(&plan),
        ["node c has 10.11.8.0/22 and would move to 10.11.4.0/22: set its `subnet` to 10.11.8.0/22 on all nodes, or \
             put back the node that was before it in the list, with \"retired\": true if it is gone"]
    );
    let plan = c.sees("a c d");
    assert_eq!(short(&plan), "a0 c2", "d itself, without a record, would come to c's");
    assert_eq!(
        refusals(&plan)[1],
        "node d would get 10.11.8.0/22, and 10.11.8.0/22 is that of node c: set `subnet` of d to a free one such as \
         10.11.12.0/22 on all nodes"
    );
    for clean in ["a c=2", "a !b c", "a=0 b=1 c=2 d=3", "a !b c d", "a c=2 d=3", "a b c"] {
        assert_eq!(refusals(&Seen::new("c", "a b c").sees(clean)), [""; 0], "{clean}");
    }
    assert_eq!(short(&c.sees("a !b c d")), "a0 b1 c2 d3", "put back, it is clean");
}

#[test]
fn a_removed_segment_is_not_given_away_until_it_was_retired() {
    let mut a = Seen::new("a", "a b c");
    let plan = a.sees("a c=2 d=1");
    assert_eq!(short(&plan), "a0 c2");
    assert_eq!(
        refusals(&plan),
        ["node d would get 10.11.4.0/22, and 10.11.4.0/22 is that of node b: put b back into the list, with \
          \"retired\": true if it is gone, or set `subnet` of d to a free one such as 10.11.12.0/22 on all nodes"]
    );
    assert_eq!(short(&a.sees("a !b c")), "a0 b1 c2");
    let plan = a.sees("a c=2 d=1");
    assert_eq!((short(&plan).as_str(), plan.refused()), ("a0 c2 d1", &[][..]));
    assert!(!a.0.networks[0].segments.contains_key("b"));
    let mut back = Seen::new("a", "a !b c");
    back.sees("a b c");
    assert_eq!(short(&back.sees("a c=2 d=1")), "a0 c2", "it is back in service");
}

#[test]
fn reordering_and_fixing_move_nobody() {
    let mut a = Seen::new("a", "a b c");
    let plan = a.sees("c b a");
    assert_eq!((short(&plan).as_str(), plan.refused().len()), ("a0 b1 c2", 2));
    let plan = a.sees("a b=5 c");
    assert_eq!(short(&plan), "a0 b1 c2");
    assert_eq!(
        refusals(&plan)[0],
        "node b has 10.11.4.0/22 and its `subnet` says 10.11.20.0/22: set `subnet` to 10.11.4.0/22"
    );
    assert_eq!(plan.refusal_of("b"), plan.refused().first());
    assert_eq!(plan.refusal_of("a"), None);
}

#[test]
fn what_a_disagreeing_list_says_of_others_is_not_recorded() {
    let mut a = Seen::new("a", "a b c");
    let plan = a.sees("a c d e");
    assert_eq!(short(&plan), "a0 c2 e3", "for now");
    assert!(!plan.is_new());
    assert_eq!(short(&a.sees("a b c d e")), "a0 b1 c2 d3 e4");
}

#[test]
fn a_new_name_of_this_node_keeps_its_segment_here() {
    let mut b = Seen::new("b", "a b c");
    let plan = b.sees_as("bb", "a bb c").unwrap();
    assert_eq!(short(&plan), "a0 bb1 c2");
    assert_eq!(
        refusals(&plan),
        ["this node was b and is bb; it keeps 10.11.4.0/22, and the others keep it for b: go back to that name on \
          all nodes"]
    );
    assert_eq!((b.0.node.as_str(), b.0.networks[0].segments.contains_key("bb")), ("b", false));
    assert_eq!(short(&Seen::new("a", "a b c").sees("a bb c")), "a0 c2", "the others wait");
    // A copy of b's disk, as its addresses show.
    b.0.node = "x".to_owned();
    let error = b.sees_as("x", "x a b c").unwrap_err();
    assert_eq!(error.code(), Code::InvalidConfig);
    assert!(error.to_string().starts_with("this node has no segment: node x would get 10.11.0.0/22"), "{error}");
}

#[test]
fn a_name_that_becomes_that_of_another_node_moves_nobody() {
    for (here, nodes) in [("c", "a b c"), ("c", "c b a"), ("d", "a b c d"), ("c", "a c d"), ("c", "a c b=4")] {
        let mut b = Seen::new("b", "a b c");
        for again in 0..2 {
            let plan = b.sees_as(here, nodes).unwrap();
            assert_eq!(plan.here()[0].to_string(), segment(1), "{here} in {nodes}, {again}");
            // Without b in the list this host is c here, and c has none.
            let c = plan.segment("c", false);
            assert!(!nodes.contains('b') || c.is_none_or(|c| c != plan.here()[0]), "{here} in {nodes}: c has its own");
            assert!(!plan.refused().is_empty(), "{here} in {nodes}");
            assert_eq!(b.0.node, "b", "{here} in {nodes}");
        }
        assert_eq!(refusals(&b.sees("a b c")), [""; 0], "the right name again, after {here} in {nodes}");
    }
    let plan = Seen::new("b", "a b c").sees_as("c", "a b c").unwrap();
    assert_eq!((plan.node(), short(&plan).as_str()), (1, "a0 b1 c2"), "it goes on as b, and c is a peer");
    assert_eq!(
        refusals(&plan),
        ["this host was node b when the segments were recorded, and has the name of node c now, whose segment is \
          another host's: it stays b; correct `node`, /etc/osvc-cni/node or the host name"]
    );
    let error = Seen::new("b", "a b c").sees_as("c", "a !b c").unwrap_err();
    assert_eq!(error.code(), Code::InvalidConfig, "{error}");
    assert!(error.to_string().contains("was node b") && !error.to_string().contains("it stays"), "{error}");
    let plan = Seen::new("b", "a b c").sees_as("d", "a !b c d").unwrap();
    assert_eq!((short(&plan).as_str(), plan.node(), plan.refused()), ("a0 b1 c2 d3", 3, &[][..]), "it has left");
}

#[test]
fn capacity_with_the_numbers() {
    let names: Vec<String> = (0..65).map(|index| format!("n{index}")).collect();
    let error = Plan::new(&config("n0", &names.join(" ")), None).unwrap_err();
    assert_eq!(error.code(), Code::InvalidConfig);
    let text = error.to_string();
    assert!(
        text.starts_with(
            "network 10.11.0.0/16 has 64 segments of /22 (maskPerNode), and n64 needs one: 65 nodes are listed;"
        ),
        "{text}"
    );
    let mut n0 = Seen::new("n0", &names[..64].join(" "));
    let plan = n0.sees(&names.join(" "));
    assert_eq!((plan.networks()[0].segments.len(), plan.refused().len()), (64, 1), "no edit is an outage");
    let mut more = names.clone();
    more.remove(63);
    more.insert(0, "first".to_owned());
    let plan = n0.sees(&more.join(" "));
    assert_eq!(plan.networks()[0].segments.len(), 63);
    assert!(matches!(&plan.refused()[62], Refused::Moved { wanted: Some(_), .. }));
    assert!(matches!(&plan.refused()[63], Refused::Taken { node, .. } if node == "first"));
    let host = crate::Host { state: "/state".into(), run: "/run".into(), boot: String::new() };
    let text = plan.agrees(&host).unwrap_err().to_string();
    assert!(text.contains("; and 60 more. If /state/segments/net.json is what is wrong, remove it"), "{text}");
    let Refused::Full(full) = &plan.refused()[64] else { panic!("{:?}", plan.refused()[64]) };
    assert_eq!((full.slots, full.listed, full.unlisted, full.node.as_str()), (64, 65, 1, "n64"));
    assert!(full.to_string().contains("65 nodes are listed, 1 more have one and are not listed"));
    n0.0.node = "n64".to_owned();
    let error = n0.sees_as("n64", &names.join(" ")).unwrap_err();
    assert!(matches!(error, Error::Full(_)), "{error}");
}
