//! `args.cni."osvc.expose"`: ports as OpenSVC's objects write them.
//!
//! `80:8001/tcp` and `80/tcp:8001` both lead host port 8001 to port 80 of the container. `443/tcp` says only
//! what the object serves (its agent makes an SRV record of it), and publishes nothing.

use std::net::IpAddr;

use serde_json::Value;

use super::{ConfigError, Entry, Fault};
use crate::portmap::{Mapping, Protocol};
use crate::protocol::json::{self, shown};

/// The entries, in their order: the words of a string, or of a list of strings.
pub(super) fn entries(expose: Option<&Value>) -> Result<Vec<Entry>, ConfigError> {
    let texts: Vec<Option<String>> = match expose {
        None => return Ok(Vec::new()),
        Some(Value::String(text)) => vec![Some(text.clone())],
        Some(list) => json::from_value(list)
            .map_err(|error| ConfigError::Part(error.under("osvc.expose").under("cni").under("args")))?,
    };
    let words = texts.iter().flatten().flat_map(|text| text.split_whitespace());
    let mut entries = Vec::new();
    for (index, word) in words.enumerate() {
        let label = format!("osvc.expose[{index}] ({})", shown(&word.into()));
        match mapping(word) {
            Ok(Some(mapping)) => entries.push(Entry { label, mapping }),
            Ok(None) => {}
            Err(fault) => return Err(ConfigError::Entry { entry: label, fault }),
        }
    }
    Ok(entries)
}

/// The mapping of a word; `None` if it names no host port.
fn mapping(word: &str) -> Result<Option<Mapping>, Fault> {
    let (before, after) = word.split_once('/').ok_or(Fault::Form)?;
    let (container, host, name) = match (before.split_once(':'), after.split_once(':')) {
        (Some((container, host)), None) => (container, Some(host), after),
        (None, Some((name, host))) => (before, Some(host), name),
        (None, None) => (before, None, after),
        (Some(_), Some(_)) => return Err(Fault::Form),
    };
    let container_port = port(container).ok_or_else(|| Fault::ContainerPort(shown(&container.into())))?;
    let host_port = host.map(|host| port(host).ok_or_else(|| Fault::HostPort(shown(&host.into())))).transpose()?;
    let (protocol, host_ip) = protocol(name).ok_or(Fault::Protocol)?;
    Ok(host_port.map(|host_port| Mapping { host_ip, host_port, container_port, protocol }))
}

/// The protocol, and all host addresses of the family that it may name: `tcp4`, `udp6`…
fn protocol(name: &str) -> Option<(Protocol, Option<IpAddr>)> {
    let (name, host_ip) = match (name.strip_suffix('4'), name.strip_suffix('6')) {
        (Some(name), _) => (name, Some(IpAddr::from([0; 4]))),
        (_, Some(name)) => (name, Some(IpAddr::from([0; 16]))),
        (None, None) => (name, None),
    };
    Protocol::from_name(name).map(|protocol| (protocol, host_ip))
}

/// Digits only: `u16` would take `+80` too.
fn port(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}
