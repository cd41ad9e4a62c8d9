//! A network of ours with all that several topics ask of it.

use osvc_cni::netlink::netns::host_id;
use osvc_cni::network::NetworkRecord;
use osvc_cni::plugin::routed::{Departed, departed};
use osvc_cni::routed::{self, RoutedRecord};
use osvc_cni::{Host, NetworkName};

use super::{Report, records};
use crate::conf::PORTMAP;
use crate::error::Error;
use crate::networks::{self, Network};
use crate::nodes::ROUTED;
use crate::shape::Shape;

/// A configured network that a plugin of ours serves on this node.
pub struct Subject<'a> {
    pub network: &'a Network,
    /// What it is; none if it only publishes ports.
    pub shape: Option<Shape>,
    /// What was set up in this boot.
    pub record: Option<NetworkRecord>,
    /// The same, of a routed network.
    pub routed: Option<RoutedRecord>,
}

impl<'a> Subject<'a> {
    /// The network as a subject; none if nothing of ours serves it here, or its configuration cannot be used, which is
    /// reported.
    pub fn of(report: &mut Report, host: &Host, network: &'a Network) -> Option<Self> {
        let definition = network.definition.as_ref()?;
        let name = &network.name;
        if has_left(host, network).is_ok_and(|why| why.is_some()) {
            // It is to be gone from this node: setup and gc say so.
            return None;
        }
        let shape = match network.shape(host) {
            Ok(shape) => shape,
            Err(Error::Config { source, .. }) if networks::is_newer(&source) => {
                unread(report, network, &Error::Network { network: name.clone(), source });
                return None;
            }
            Err(error @ Error::Config { .. }) => {
                report.add(
                    "configuration",
                    Some(name),
                    told(&error, name),
                    "no container of this network can start",
                    format!("osvc-net conf lint {}", definition.file.display()),
                );
                return None;
            }
            Err(error) => {
                unread(report, network, &error);
                return None;
            }
        };
        if shape.is_none() && !definition.plugins.iter().any(|plugin| plugin.kind == PORTMAP) {
            return None;
        }
        let netns = host_id();
        let netns = netns.as_ref();
        let mut subject = Self { network, shape, record: None, routed: None };
        match NetworkRecord::load(host, name) {
            Ok(record) => subject.record = record.filter(|record| netns.is_ok_and(|netns| record.is_of(host, netns))),
            Err(error) => unread(report, network, &error.into()),
        }
        match RoutedRecord::load(host, name) {
            Ok(record) => subject.routed = record.filter(|record| netns.is_ok_and(|netns| record.is_of(host, netns))),
            Err(error) => unread(report, network, &osvc_cni::Error::from(error).into()),
        }
        Some(subject)
    }
}

fn has_left(host: &Host, network: &Network) -> Result<Option<Departed>, osvc_cni::Error> {
    let Some((definition, plugin)) = network.plugin(ROUTED) else { return Ok(None) };
    departed(&definition.call(plugin, host)?)
}

/// An error without the name of the network, which the report tells.
pub fn told(error: &Error, name: &NetworkName) -> String {
    error.to_string().replacen(&format!("network {name}: "), "", 1)
}

/// A record that cannot be read, unless that was told.
fn unread(report: &mut Report, network: &Network, error: &Error) {
    let name = &network.name;
    let what = told(error, name);
    if report.about(name).any(|finding| finding.what == what) {
        return;
    }
    let is_newer = match error {
        Error::Core(source) | Error::Network { source, .. } => networks::is_newer(source),
        Error::Routed { source, .. } => matches!(**source, routed::Error::NewerFormat { .. }),
        _ => false,
    };
    if is_newer {
        return records::newer(report, name, what);
    }
    report.add("unreadable-record", Some(name), what, records::WHY, format!("osvc-net fsck {name}"));
}
