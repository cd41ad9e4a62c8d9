//! Values, checked as the plugins check them.

use osvc_cni::Host;
use osvc_cni::ipam::config::IpamConfig;
use osvc_cni::plugin::{bridge, routed};
use osvc_cni::portmap::config::PortmapConfig;
use osvc_cni::protocol::{Call, Config};
use osvc_cni::routed::RoutedConfig;
use osvc_cni::routed::config::Contradiction;
use osvc_cni::{Error, portmap, routed as cluster};
use serde_json::Value;

use super::places::Step;
use super::{Severity, Sheet};
use crate::conf::{BRIDGE, Definition, PORTMAP, Plugin};
use crate::nodes::ROUTED;

/// What the plugins of ours would refuse.
pub fn look(sheet: &mut Sheet<'_>, host: &Host, definition: &Definition) {
    for (index, plugin) in definition.plugins.iter().enumerate() {
        if let Err(error) = check(host, definition, plugin) {
            let below = path_of(sheet, index, &[]);
            let text = error.to_string();
            let text = text.strip_prefix(&format!("network {}: ", definition.name)).unwrap_or(&text);
            let plugin_at = sheet.places.key(&path_of(sheet, index, &["type"]));
            let at = sheet.places.spoken_of(text, &below).or(plugin_at).unwrap_or_default();
            sheet.add(Severity::Error, at, format!("{}: {text}", plugin.kind));
        }
    }
}

/// The way to a key of a plugin: a file may hold a list, or one plugin.
pub fn path_of(sheet: &Sheet<'_>, index: usize, keys: &[&str]) -> Vec<Step> {
    let list = sheet.places.key(&["plugins".into()]).is_some();
    let begin = if list { vec!["plugins".into(), index.into()] } else { Vec::new() };
    begin.into_iter().chain(keys.iter().map(|key| Step::from(*key))).collect()
}

fn check(host: &Host, definition: &Definition, plugin: &Plugin) -> Result<(), Error> {
    let call = definition.call(plugin, host)?;
    match plugin.kind.as_str() {
        BRIDGE => {
            bridge::wanted(&call)?;
            bridge::addresses(&call)?;
        }
        ROUTED => as_any_node(&call)?,
        PORTMAP => drop(PortmapConfig::from_call(&call).map_err(portmap::Error::from)?),
        _ if plugin.ipam() == Some("osvc-ipam") => drop(IpamConfig::from_call(&call)?),
        _ => {}
    }
    Ok(())
}

/// A routed network is the same file on all nodes, and may be looked at where there is none of them: then as its first
/// node sees it.
fn as_any_node(call: &Call) -> Result<(), Error> {
    let elsewhere = match RoutedConfig::from_call(call) {
        Err(cluster::Error::Contradiction(Contradiction::NotListed { .. } | Contradiction::Retired(_))) => true,
        Err(error) => return Err(error.into()),
        Ok(_) => false,
    };
    if !elsewhere {
        return addresses(call);
    }
    let mut value: Value = serde_json::from_slice(call.config.text()).unwrap_or_default();
    // A word of the file's own is wrong, whoever reads it.
    let names = value.get("nodes").and_then(Value::as_array).into_iter().flatten();
    let alive = names.filter(|node| node.get("retired").and_then(Value::as_bool) != Some(true));
    let first = alive.filter_map(|node| node.get("name")?.as_str()).next().map(str::to_owned);
    let Some(object) = value.as_object_mut().filter(|object| !object.contains_key("node")) else {
        return RoutedConfig::from_call(call).map(drop).map_err(Into::into);
    };
    let Some(first) = first else { return RoutedConfig::from_call(call).map(drop).map_err(Into::into) };
    object.insert("node".to_owned(), first.into());
    let config = Config::parse(value.to_string().into_bytes())?.of_version(call.version);
    // What that one has recorded is not known here.
    let host = Host { state: "/nonexistent".into(), run: "/nonexistent".into(), boot: call.host.boot.clone() };
    addresses(&Call { config, host, ..call.clone() })
}

/// Also of the segment that is planned.
fn addresses(call: &Call) -> Result<(), Error> {
    routed::wanted(call)?;
    routed::addresses(call)?;
    Ok(())
}
