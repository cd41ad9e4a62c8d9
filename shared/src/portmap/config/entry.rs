//! `runtimeConfig.portMappings`: what runtimes ask for.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::Value;

use super::{ConfigError, Entry, Fault, low};
use crate::portmap::{Mapping, Protocol};
use crate::protocol::json::shown;

/// The entries, in their order.
pub(super) fn entries(list: &[low::PortMapping]) -> Result<Vec<Entry>, ConfigError> {
    list.iter().enumerate().map(|(index, low)| entry(index, low)).collect()
}

fn entry(index: usize, low: &low::PortMapping) -> Result<Entry, ConfigError> {
    let refuse = |key: &str, value: Option<&Value>, fault| {
        let value = value.map_or_else(|| format!("no {key}"), |value| format!("{key} {}", shown(value)));
        ConfigError::Entry { entry: format!("portMappings[{index}] ({value})"), fault }
    };
    let read = |key, value: &Option<Value>, fault: fn(String) -> Fault| {
        // The reference takes an absent port for 0.
        let found = || value.as_ref().map_or_else(|| "0".to_owned(), shown);
        value.as_ref().and_then(port).ok_or_else(|| refuse(key, value.as_ref(), fault(found())))
    };
    let host_port = read("hostPort", &low.host_port, Fault::HostPort)?;
    let container_port = read("containerPort", &low.container_port, Fault::ContainerPort)?;
    let protocol = low.protocol.as_deref().unwrap_or(Protocol::Tcp.name());
    let protocol =
        Protocol::from_name(protocol).ok_or_else(|| refuse("protocol", Some(&protocol.into()), Fault::Protocol))?;
    let address = |text: &str| host_ip(text).map_err(|fault| refuse("hostIP", Some(&text.into()), fault));
    let host_ip = low.host_ip.as_deref().map(address).transpose()?;
    let mapping = Mapping { host_ip, host_port, container_port, protocol };
    Ok(Entry { label: format!("portMappings[{index}] ({mapping})"), mapping })
}

/// A port written as a JSON number; `80.0` is none, as in Go.
fn port(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|number| u16::try_from(number).ok()).filter(|port| *port != 0)
}

/// An address that packets can be sent to. It need not be this host's: it may come later.
fn host_ip(text: &str) -> Result<IpAddr, Fault> {
    let address = text.trim().parse::<IpAddr>().map_err(|_| Fault::NoAddress)?.to_canonical();
    match address {
        address if address.is_multicast() || address == Ipv4Addr::BROADCAST => Err(Fault::Group),
        IpAddr::V6(address) if address.is_loopback() => Err(Fault::Localhost6),
        address => Ok(address),
    }
}
