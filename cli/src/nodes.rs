//! `osvc-net conf new routed`, `conf add-node` and `conf remove-node`: the list of a routed network's nodes.
//!
//! A list in which each segment is fixed (`subnet`) is never wrong, in whatever order the nodes see it. So every edit
//! fixes those that are not: to what is recorded on this host, or to what the list gives where nothing is.

use std::path::Path;

use osvc_cni::routed::config::Places;
use osvc_cni::routed::{self, Plan, RoutedConfig, SegmentRecord};
use osvc_cni::{Host, NetworkName, protocol::json};
use serde_json::{Map, Value};

use crate::document::{get, get_mut, set};
use crate::error::Error;

/// What the plugin is called.
pub const ROUTED: &str = "osvc-routed";

/// A node that is to join.
#[derive(Debug, Clone, Default)]
pub struct NewNode {
    /// Its name.
    pub name: String,
    /// Where the others reach it; its name, when empty.
    pub addresses: Vec<String>,
    /// Its segments; the lowest free ones, when empty.
    pub subnets: Vec<String>,
    /// Its WireGuard key.
    pub public_key: Option<String>,
}

/// What became of a node that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// It is marked as retired: its segment stays empty.
    Retired,
    /// It was retired, and is no longer in the list: its segment is free.
    Forgotten,
}

/// The configuration of a routed network while it is edited.
#[derive(Debug)]
pub struct Editing<'a> {
    network: NetworkName,
    document: &'a mut Value,
    record: Option<SegmentRecord>,
}

impl<'a> Editing<'a> {
    /// The network in a document, with what is recorded of it on this host.
    ///
    /// # Errors
    /// It is no routed network, or its record cannot be read.
    pub fn new(host: &Host, network: &NetworkName, document: &'a mut Value, file: &Path) -> Result<Self, Error> {
        let record = SegmentRecord::load(host, network).map_err(|error| failed(network, error))?;
        if plugin(document).is_none() {
            return Err(Error::NotRouted { file: file.to_owned(), network: network.clone() });
        }
        Ok(Self { network: network.clone(), document, record })
    }

    /// Fixes the segments of all nodes that have one.
    ///
    /// # Errors
    /// The configuration is wrong.
    pub fn fix(&mut self) -> Result<(), Error> {
        let plan = self.plan()?;
        for node in self.nodes()? {
            let Some(name) = name(node).map(str::to_lowercase) else { continue };
            let segments: Vec<String> = plan.of(&name).map(|segment| segment.to_string()).collect();
            if !segments.is_empty() {
                set(node, "subnet", one_or_list(segments));
            }
        }
        Ok(())
    }

    /// Adds a node at the end of the list, and fixes all segments. Returned are its own.
    ///
    /// # Errors
    /// There is one of that name, or no segment is left; the configuration is wrong.
    pub fn add(&mut self, new: &NewNode) -> Result<Vec<String>, Error> {
        self.fix()?;
        let lower = new.name.to_lowercase();
        if self.nodes()?.iter().any(|node| name(node).is_some_and(|known| known.to_lowercase() == lower)) {
            return Err(Error::NodeThere { network: self.network.clone(), node: new.name.clone() });
        }
        let value = new.value();
        if let Some(Value::Array(nodes)) = self.plugin().and_then(|plugin| get_mut(plugin, "nodes")) {
            nodes.push(value);
        }
        self.fix()?;
        let plan = self.plan()?;
        let segments: Vec<String> = plan.of(&lower).map(|segment| segment.to_string()).collect();
        match plan.refusal_of(&lower) {
            Some(why) if segments.len() < plan.networks().len() => {
                Err(Error::NoSegment { network: self.network.clone(), why: why.to_string() })
            }
            _ => Ok(segments),
        }
    }

    /// Retires a node, or takes a retired one out of the list; and fixes all segments.
    ///
    /// # Errors
    /// There is none of that name, or it is the last one; the configuration is wrong.
    pub fn remove(&mut self, node: &str) -> Result<Removed, Error> {
        self.fix()?;
        let lower = node.to_lowercase();
        let (network, mut nodes) = (self.network.clone(), self.nodes()?);
        let known: Vec<String> = nodes.iter().filter_map(|node| name(node)).map(str::to_owned).collect();
        let Some(index) = known.iter().position(|known| known.to_lowercase() == lower) else {
            return Err(Error::NoNode { network, node: node.to_owned(), known });
        };
        let retired = |node: &Map<String, Value>| get(node, "retired") == Some(&Value::Bool(true));
        if !retired(nodes[index]) {
            let left = nodes.iter().filter(|node| !retired(node)).count();
            if left == 1 {
                return Err(Error::LastNode { network, node: node.to_owned() });
            }
            set(nodes[index], "retired", Value::Bool(true));
            return Ok(Removed::Retired);
        }
        if let Some(Value::Array(nodes)) = self.plugin().and_then(|plugin| get_mut(plugin, "nodes")) {
            nodes.remove(index);
        }
        self.plan().map(|_| Removed::Forgotten)
    }

    /// The plan of the document as it is.
    fn plan(&mut self) -> Result<Plan, Error> {
        let network = self.network.clone();
        let Some(plugin) = self.plugin() else { return Err(Error::Unconfigured(network)) };
        let (config, is_here) = config(&network, plugin).map_err(|error| failed(&network, error))?;
        // What is recorded here is this node's; on a host that is none of them, for what was one, it is as good.
        let record = self.record.as_ref().filter(|_| is_here);
        Plan::new(&config, record).map_err(|error| failed(&network, error))
    }

    fn plugin(&mut self) -> Option<&mut Map<String, Value>> {
        plugin(self.document)
    }

    fn nodes(&mut self) -> Result<Vec<&mut Map<String, Value>>, Error> {
        let network = self.network.clone();
        match self.plugin().and_then(|plugin| get_mut(plugin, "nodes")) {
            Some(Value::Array(nodes)) => Ok(nodes.iter_mut().filter_map(Value::as_object_mut).collect()),
            _ => Err(Error::Unconfigured(network)),
        }
    }
}

impl NewNode {
    /// As it stands in the list.
    pub fn value(&self) -> Value {
        let mut object = Map::new();
        object.insert("name".to_owned(), self.name.as_str().into());
        if !self.addresses.is_empty() {
            object.insert("addr".to_owned(), one_or_list(self.addresses.clone()));
        }
        if !self.subnets.is_empty() {
            object.insert("subnet".to_owned(), one_or_list(self.subnets.clone()));
        }
        if let Some(key) = &self.public_key {
            object.insert("publicKey".to_owned(), key.as_str().into());
        }
        object.into()
    }
}

/// The configuration of a plugin, as this host sees it, and true; or as the first node would, if this host is none.
fn config(network: &NetworkName, plugin: &Map<String, Value>) -> Result<(RoutedConfig, bool), routed::Error> {
    let checked = |object: &Map<String, Value>| {
        let value = Value::Object(object.clone());
        RoutedConfig::new(network, &json::from_value(&value)?, &json::from_value(&value)?, &Places::default())
    };
    checked(plugin).map(|config| (config, true)).or_else(|error| {
        let retired = |node: &Map<String, Value>| get(node, "retired") == Some(&Value::Bool(true));
        let nodes = get(plugin, "nodes").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
        let Some(first) = nodes.filter(|node| !retired(node)).find_map(name) else { return Err(error) };
        let mut other = plugin.clone();
        set(&mut other, "node", first.into());
        // If it is wrong in another respect, that is so for everybody.
        checked(&other).map(|config| (config, false)).map_err(|_| error)
    })
}

/// The plugin of a document.
fn plugin(document: &mut Value) -> Option<&mut Map<String, Value>> {
    let is_it = |object: &Map<String, Value>| object.get("type").and_then(Value::as_str) == Some(ROUTED);
    let object = document.as_object_mut()?;
    if is_it(object) {
        return Some(object);
    }
    let plugins = get_mut(object, "plugins")?.as_array_mut()?;
    plugins.iter_mut().filter_map(Value::as_object_mut).find(|object| is_it(object))
}

fn name(node: &Map<String, Value>) -> Option<&str> {
    get(node, "name").and_then(Value::as_str)
}

fn one_or_list(mut texts: Vec<String>) -> Value {
    if texts.len() == 1 { texts.remove(0).into() } else { texts.into() }
}

fn failed(network: &NetworkName, error: routed::Error) -> Error {
    Error::Routed { network: network.clone(), source: Box::new(error) }
}

#[cfg(test)]
#[path = "nodes_tests.rs"]
mod tests;
