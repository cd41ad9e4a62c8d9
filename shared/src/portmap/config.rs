//! The configuration of osvc-portmap, checked: what is published, and for whom.
//!
//! All faults are found here, before anything is changed. ADD and CHECK read all of it; whatever else runs
//! needs the [`Options`] at most, so that no port, good or bad, stops a DEL.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;

pub use self::error::{ConfigError, Fault};
pub use self::options::Options;
pub use self::target::{host_end, targets};
use super::Mapping;
use crate::NetworkName;
use crate::protocol::Call;

mod entry;
mod error;
mod expose;
pub mod low;
mod options;
mod target;

/// What one call publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortmapConfig {
    /// `runtimeConfig.portMappings`, then `args.cni."osvc.expose"`: each once, no two of them in contradiction.
    pub mappings: Vec<Mapping>,
    /// How messages call the mapping of the same index: `portMappings[0] (8080->80/tcp)`.
    pub entries: Vec<String>,
    /// How they are published.
    pub options: Options,
}

/// A mapping, and the entry that it was written as.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    label: String,
    mapping: Mapping,
}

impl PortmapConfig {
    /// The host ports that a call asks for: none at all is no error.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn from_call(call: &Call) -> Result<Self, ConfigError> {
        let options = Options::from_call(call)?;
        let low: low::Ports = call.config.low()?;
        let runtime = low.runtime_config.and_then(|runtime| runtime.port_mappings).unwrap_or_default();
        let expose = low.args.and_then(|args| args.cni).and_then(|cni| cni.expose);
        let mut entries = entry::entries(&runtime)?;
        entries.extend(expose::entries(expose.as_ref())?);
        let mut config = Self { mappings: Vec::new(), entries: Vec::new(), options };
        config.join(entries)?;
        Ok(config)
    }

    /// Refuses what contradicts the options or another entry, and takes duplicates once.
    fn join(&mut self, entries: Vec<Entry>) -> Result<(), ConfigError> {
        let mut known = HashSet::with_capacity(entries.len());
        let mut leads: HashMap<(IpAddr, _, u16), usize> = HashMap::with_capacity(entries.len());
        for Entry { label, mapping } in entries {
            if !known.insert(mapping) {
                continue;
            }
            if !self.options.snat && mapping.host_ip.is_some_and(|address| address.is_loopback()) {
                return Err(ConfigError::Entry { entry: label, fault: Fault::LocalhostWithoutSnat });
            }
            let any = [IpAddr::from([0; 4]), IpAddr::from([0; 16])];
            for address in mapping.host_ip.as_ref().map_or(&any[..], std::slice::from_ref) {
                let key = (*address, mapping.protocol, mapping.host_port);
                let first = *leads.entry(key).or_insert(self.mappings.len());
                if self.mappings.get(first).is_some_and(|first| first.container_port != mapping.container_port) {
                    let fault = Fault::Contradicts { other: self.entries[first].clone() };
                    return Err(ConfigError::Entry { entry: label, fault });
                }
            }
            self.mappings.push(mapping);
            self.entries.push(label);
        }
        Ok(())
    }

    /// Refuses an entry for host addresses of a family in which the container has none: it could never be reached.
    ///
    /// # Errors
    /// [`Fault::NoTarget`], code 7.
    pub fn check_targets(&self, targets: &[IpNet], network: &NetworkName) -> Result<(), ConfigError> {
        for (mapping, entry) in self.mappings.iter().zip(&self.entries) {
            let Some(address) = mapping.host_ip else { continue };
            if !targets.iter().any(|target| mapping.is_for(target.addr())) {
                let fault = Fault::NoTarget { address, network: network.clone() };
                return Err(ConfigError::Entry { entry: entry.clone(), fault });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
