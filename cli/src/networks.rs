//! Which networks there are: those that are configured, and those of which there are records.

use std::collections::BTreeMap;
use std::path::Path;

use osvc_cni::ipam::config::Folders;
use osvc_cni::network::NetworkRecord;
use osvc_cni::protocol::Call;
use osvc_cni::routed::RoutedRecord;
use osvc_cni::{Host, NetworkName, portmap};

use crate::conf::{self, Definition, FOLDER, Plugin};
use crate::error::Error;
use crate::nearest::nearest;

/// The networks of this host.
#[derive(Debug)]
pub struct Networks {
    known: BTreeMap<String, Network>,
    /// Configurations that cannot be read: each command reports them.
    faults: Vec<Error>,
}

/// A network.
#[derive(Debug)]
pub struct Network {
    /// Its name.
    pub name: NetworkName,
    /// Its configuration; `None` if only records are left.
    pub definition: Option<Definition>,
}

impl Networks {
    /// The networks of a folder of configurations, or of the usual one, which need not be there, and of the records.
    ///
    /// # Errors
    /// The folder or the records cannot be read.
    pub fn load(host: &Host, folder: Option<&Path>) -> Result<Self, Error> {
        let usual = Path::new(FOLDER);
        let (definitions, faults) = match folder {
            Some(folder) => conf::load(folder)?,
            None if usual.exists() => conf::load(usual)?,
            None => Default::default(),
        };
        let mut known = BTreeMap::new();
        for definition in definitions {
            let network = Network { name: definition.name.clone(), definition: Some(definition) };
            known.insert(network.name.to_string(), network);
        }
        let recorded = NetworkRecord::all(host)?.into_iter().map(|record| record.name);
        let routed = RoutedRecord::all(host)?.into_iter().map(|record| record.name);
        for name in portmap::networks(host)
            .into_iter()
            .chain(recorded)
            .chain(routed)
            .chain(folders(&host.state.join("ipam"))?)
            .chain(folders(&host.state.join("folders"))?)
        {
            known.entry(name.to_string()).or_insert(Network { name, definition: None });
        }
        Ok(Self { known, faults })
    }

    /// The networks of these names, or all; and what keeps others from being found.
    pub fn choose(mut self, names: &[String]) -> (Vec<Network>, Vec<Error>) {
        if names.is_empty() {
            return (self.known.into_values().collect(), self.faults);
        }
        let mut names: Vec<&String> = names.iter().collect();
        names.sort();
        names.dedup();
        let unknown: Vec<Error> =
            names.iter().filter(|name| !self.known.contains_key(**name)).map(|name| self.unknown(name)).collect();
        let networks = names.iter().filter_map(|name| self.known.remove(*name)).collect();
        // A file that cannot be read may be that of an unknown network; no matter if all named ones are found.
        let faults = if unknown.is_empty() { Vec::new() } else { self.faults };
        (networks, faults.into_iter().chain(unknown).collect())
    }

    /// True if there is such a network.
    pub fn knows(&self, name: &NetworkName) -> bool {
        self.known.contains_key(name.as_str())
    }

    fn unknown(&self, name: &str) -> Error {
        Error::Unknown {
            name: name.to_owned(),
            nearest: nearest(name, self.known.keys().map(String::as_str)).map(str::to_owned),
            known: self.known.keys().cloned().collect(),
        }
    }
}

impl Network {
    /// Its configuration, and in it that of the plugin of this kind.
    pub fn plugin(&self, kind: &str) -> Option<(&Definition, &Plugin)> {
        let definition = self.definition.as_ref()?;
        Some((definition, definition.plugins.iter().find(|plugin| plugin.kind == kind)?))
    }

    /// The folders of its addresses by its configuration.
    pub fn address_folders(&self, host: &Host) -> Option<Folders> {
        self.address_call(host)?.ok().map(|call| Folders::of_call(&call))
    }

    /// A call of the plugin that gives its addresses.
    pub fn address_call(&self, host: &Host) -> Option<Result<Call, osvc_cni::Error>> {
        let definition = self.definition.as_ref()?;
        let plugin = definition.plugins.iter().find(|plugin| plugin.gives_addresses())?;
        Some(definition.call(plugin, host))
    }
}

/// The folders of a folder that are named by a network.
fn folders(folder: &Path) -> Result<Vec<NetworkName>, Error> {
    let fault = |source| Error::Read { path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(fault)?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(fault)?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.extend(entry.file_name().to_str().and_then(|name| name.parse().ok()));
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_and_recorded_networks() {
        let folder = tempfile::tempdir().unwrap();
        let (conf, state) = (folder.path().join("net.d"), folder.path().join("state"));
        std::fs::create_dir_all(&conf).unwrap();
        std::fs::create_dir_all(state.join("ipam/old")).unwrap();
        std::fs::write(
            conf.join("a.conflist"),
            r#"{"name":"podnet","plugins":[{"type":"osvc-bridge","ipam":{"dataDir":"/d"}}]}"#,
        )
        .unwrap();
        std::fs::write(conf.join("bad.conflist"), "{").unwrap();
        let host = Host { state, run: folder.path().join("run"), boot: "boot".into() };
        let choose = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            Networks::load(&host, Some(&conf)).unwrap().choose(&names)
        };

        let (all, errors) = choose(&[]);
        assert_eq!(all.iter().map(|network| network.name.as_str()).collect::<Vec<_>>(), ["old", "podnet"]);
        assert!(errors[0].to_string().contains("bad.conflist:1:1"), "{errors:?}");
        assert_eq!(all[1].address_folders(&host).unwrap().ours, Path::new("/d/osvc/podnet"));
        assert!(all[0].address_folders(&host).is_none());

        let (one, errors) = choose(&["podnet", "podnet"]);
        assert_eq!((one.len(), errors.len()), (1, 0));
        let (none, errors) = choose(&["pdonet"]);
        assert_eq!((none.len(), errors.len()), (0, 2));
        assert_eq!(errors[1].to_string(), "no network \"pdonet\": did you mean \"podnet\"?");
        let (_, errors) = choose(&["elsewhere"]);
        assert_eq!(errors[1].to_string(), "no network \"elsewhere\": there are old, podnet");
        assert!(Networks::load(&host, Some(&folder.path().join("absent"))).is_err());
    }
}
