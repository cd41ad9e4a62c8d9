//! A cluster whose nodes see its configuration in different versions and orders. Whatever is edited, no two of them
//! have a segment in common, and nobody moves.

use std::collections::BTreeMap;
use std::rc::Rc;

use ipnet::IpNet;
use proptest::prelude::*;
use serde_json::json;

use self::step::{Step, step};
use super::slots::Slots;
use super::{Plan, SegmentRecord, fresh::fresh};
use crate::network::config::overlap;
use crate::routed::config::tests::config;
use crate::routed::{Error, RoutedConfig};

mod step;

#[derive(Debug, Clone, PartialEq)]
struct Listed {
    name: String,
    fixed: Option<IpNet>,
    retired: bool,
}

/// What the cluster really is.
struct Cluster {
    network: IpNet,
    prefix: u8,
    versions: Vec<Rc<Vec<Listed>>>,
    /// Node → its segment and its record, for those in service.
    live: BTreeMap<String, (IpNet, SegmentRecord)>,
    gone: Vec<String>,
}

impl Cluster {
    fn new(network: &str, prefix: u8) -> Self {
        let first = ["n0", "n1", "n2"].map(|name| Listed { name: name.into(), fixed: None, retired: false });
        let (versions, gone) = (vec![Rc::new(first.to_vec())], Vec::new());
        Self { network: network.parse().unwrap(), prefix, versions, live: BTreeMap::new(), gone }
    }

    fn config(&self, here: &str, version: &[Listed]) -> Result<RoutedConfig, Error> {
        let node = |node: &Listed| json!({"name": node.name, "subnet": node.fixed, "retired": node.retired});
        let nodes: Vec<_> = version.iter().map(node).collect();
        config(&json!({"network": self.network, "maskPerNode": self.prefix, "node": here, "nodes": nodes}))
    }

    fn slot(&self, slot: u8) -> Option<IpNet> {
        let all = Slots::new(self.network, self.prefix, []);
        let count = all.how_many().min(24) as usize;
        all.into_iter().nth(usize::from(slot) % count)
    }

    fn edit(&mut self, step: &Step) {
        let mut list = self.versions[self.versions.len() - 1].to_vec();
        let len = list.len().max(1);
        let at = |place: u8| usize::from(place) % len;
        match *step {
            Step::Insert { name, place, fixed } => {
                let name = format!("n{}", name % 12);
                if list.iter().any(|node| node.name == name) || self.gone.contains(&name) {
                    return;
                }
                let fixed = fixed.and_then(|slot| self.slot(slot));
                list.insert(usize::from(place) % (list.len() + 1), Listed { name, fixed, retired: false });
            }
            Step::Swap { a, b } if !list.is_empty() => list.swap(at(a), at(b)),
            Step::Remove { place } if list.len() > 1 => drop(list.remove(at(place))),
            Step::Fix { place, slot } if !list.is_empty() => list[at(place)].fixed = self.slot(slot),
            Step::FixAsItIs { place } if !list.is_empty() => {
                let node = &mut list[at(place)];
                node.fixed = self.live.get(&node.name).map(|(segment, _)| *segment);
            }
            Step::Unfix { place } if !list.is_empty() => list[at(place)].fixed = None,
            Step::Retire { place } if !list.is_empty() => {
                let node = &mut list[at(place)];
                node.retired = true;
                self.live.remove(&node.name);
                self.gone.push(node.name.clone());
            }
            _ => return,
        }
        // What is refused as a whole is nobody's version.
        let somebody = list.iter().find(|node| !node.retired).map(|node| node.name.clone());
        if somebody.is_some_and(|name| self.config(&name, &list).is_ok()) {
            self.versions.push(Rc::new(list));
        }
    }

    fn version(&self, version: u8) -> Rc<Vec<Listed>> {
        // The newest ones most often.
        let back = usize::from(version).pow(2) / 65 / 65 * self.versions.len() / 16;
        self.versions[self.versions.len() - 1 - back.min(self.versions.len() - 1)].clone()
    }

    /// Whose segment is another one by this list alone, of those in service.
    fn astray(&self, config: &RoutedConfig) -> Vec<String> {
        let alone = fresh(self.network, self.prefix, &config.nodes);
        let is_astray = |(name, (segment, _)): &(&String, &(IpNet, SegmentRecord))| {
            alone.segments.get(name.as_str()) != Some(segment)
        };
        self.live.iter().filter(is_astray).map(|(name, _)| name.clone()).collect()
    }

    fn see(&mut self, node: u8, version: u8, mistaken: Option<u8>) -> Result<(), TestCaseError> {
        let Some(name) = self.live.keys().nth(usize::from(node) % self.live.len().max(1)).cloned() else {
            return Ok(());
        };
        let (segment, record) = self.live[&name].clone();
        // Not listed in it: the configuration is refused, unless the node has got another name, one that is new.
        let list = self.version(version);
        let known = &record.networks[0].segments;
        let is_new =
            |node: &&Listed| !node.retired && !self.live.contains_key(&node.name) && !known.contains_key(&node.name);
        let named = match mistaken {
            Some(other) => list.get(usize::from(other) % list.len()),
            None => list.iter().find(|node| node.name == name).or_else(|| list.iter().find(is_new)),
        };
        let Some(Ok(config)) = named.map(|node| self.config(&node.name, &list)) else { return Ok(()) };
        let plan = match Plan::new(&config, Some(&record)) {
            Ok(plan) => plan,
            Err(error) => return Err(TestCaseError::fail(format!("an edit is an outage: {error}"))),
        };
        let is_other = config.this_node().name != name && list.iter().any(|node| node.name == name);
        prop_assert!(!is_other || (plan.refusal_of(&name).is_some() && config.nodes[plan.node()].name == name));
        prop_assert_eq!(plan.here(), &[segment], "{} moved", name);
        disjoint(&plan)?;
        let alone = fresh(self.network, self.prefix, &config.nodes);
        for node in &config.nodes {
            if plan.segment(&node.name, self.is_v6()) != alone.segments.get(node.name.as_str()).copied() {
                prop_assert!(plan.refusal_of(&node.name).is_some(), "{} is not told of {}", name, node.name);
            }
        }
        // Whom it knows, nobody else has the segment of.
        for (other, (theirs, _)) in self.live.iter().filter(|(other, _)| **other != name) {
            if record.networks[0].segments.get(other) == Some(theirs) {
                let mut all = plan.networks()[0].segments.iter().filter(|(name, _)| *name != other);
                prop_assert!(all.all(|(_, segment)| !overlap(segment, theirs)), "{} gave {} away", name, theirs);
            }
        }
        let again = Plan::new(&config, Some(plan.record())).unwrap();
        prop_assert!(!again.is_new() && again.networks() == plan.networks() && again.refused() == plan.refused());
        self.live.insert(name, (segment, plan.record().clone()));
        Ok(())
    }

    fn join(&mut self, node: u8, version: u8) -> Result<(), TestCaseError> {
        let list = self.version(version);
        let name = list[usize::from(node) % list.len()].name.clone();
        if self.live.contains_key(&name) || self.gone.contains(&name) {
            return Ok(());
        }
        let Ok(config) = self.config(&name, &list) else { return Ok(()) };
        let Ok(plan) = Plan::new(&config, None) else { return Ok(()) };
        disjoint(&plan)?;
        let segment = plan.here()[0];
        let astray = self.astray(&config);
        let others = self.live.iter().filter(|(_, (other, _))| overlap(other, &segment));
        let taken: Vec<String> = others.map(|(other, _)| other.clone()).collect();
        // A list that is right about all who are in service gives a new node what is nobody's.
        prop_assert!(taken.is_empty() || !astray.is_empty(), "{} and {:?} have {}", name, taken, segment);
        for other in astray {
            // One that is not says so on the node that it is wrong about. Nobody joins by it.
            let Ok(config) = self.config(&other, &list) else { continue };
            let plan = Plan::new(&config, Some(&self.live[&other].1)).unwrap();
            prop_assert!(plan.refusal_of(&other).is_some(), "{} is not told", other);
        }
        if taken.is_empty() {
            self.live.insert(name, (segment, plan.record().clone()));
        }
        Ok(())
    }

    fn is_v6(&self) -> bool {
        self.network.addr().is_ipv6()
    }
}

fn disjoint(plan: &Plan) -> Result<(), TestCaseError> {
    for network in plan.networks() {
        let all: Vec<_> = network.segments.iter().collect();
        for (index, (name, segment)) in all.iter().enumerate() {
            prop_assert!(network.network.contains(*segment));
            for (other, theirs) in &all[..index] {
                prop_assert!(!overlap(segment, theirs), "{} and {} have {}", name, other, segment);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_two_share_a_segment_and_nobody_moves(
        (network, prefix) in prop::sample::select(vec![("10.0.0.0/24", 28), ("10.0.0.0/25", 28), ("fd77::/48", 64)]),
        steps in prop::collection::vec(step(), 1..70),
    ) {
        let mut cluster = Cluster::new(network, prefix);
        for step in &steps {
            match *step {
                Step::See { node, version } => cluster.see(node, version, None)?,
                Step::Mistake { node, version, name } => cluster.see(node, version, Some(name))?,
                Step::Join { node, version } => cluster.join(node, version)?,
                _ => cluster.edit(step),
            }
        }
    }
}
