//! Which networks there are: those that are configured, and those of which there are records.

use std::collections::BTreeMap;
use std::path::PathBuf;

use osvc_cni::ipam::config::Folders;
use osvc_cni::protocol::Call;
use osvc_cni::{Host, NetworkName, portmap};

use crate::conf::{self, Definition, Plugin, Unreadable};
use crate::error::Error;
use crate::nearest::nearest;
use crate::output;
use crate::torn::{self, Torn};

mod recorded;

pub use recorded::is_newer;
use recorded::{folders_of, recorded};

/// The networks of this host.
#[derive(Debug)]
pub struct Networks {
    known: BTreeMap<String, Network>,
    /// What cannot be read: each command reports it.
    faults: Vec<Fault>,
    /// Files of somebody else's are not told of.
    quiet: bool,
}

/// What keeps a network from being known as it is.
#[derive(Debug)]
pub struct Fault {
    /// What it is about.
    pub of: Source,
    /// The network, of a record.
    pub network: Option<NetworkName>,
    /// What is wrong.
    pub error: Error,
}

/// What cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A configuration.
    Conflist,
    /// A file of somebody else's.
    Foreign,
    /// A record of what was set up.
    Record,
    /// One that a later version has written.
    Newer,
    /// One that is torn.
    Torn,
}

/// What was chosen of the networks.
pub struct Choice {
    /// Those that there are.
    pub networks: Vec<Network>,
    /// What keeps others from being found, or these from being known as they are.
    pub faults: Vec<Fault>,
    /// Names that are those of no network.
    pub unknown: Vec<Error>,
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
    /// The networks of folders of configurations, or of the usual ones, which need not be there, and of the records.
    ///
    /// # Errors
    /// A folder or the records cannot be read.
    pub fn load(host: &Host, folders: &[PathBuf]) -> Result<Self, Error> {
        let folders = if folders.is_empty() { conf::usual_folders() } else { folders.to_vec() };
        let (definitions, faults) = conf::load_all(&folders)?;
        let mut known = BTreeMap::new();
        for definition in definitions {
            let network = Network { name: definition.name.clone(), definition: Some(definition) };
            known.insert(network.name.to_string(), network);
        }
        let wrong = |wrong: Unreadable| {
            let of = if wrong.foreign { Source::Foreign } else { Source::Conflist };
            Fault { of, network: None, error: wrong.error }
        };
        let mut faults: Vec<Fault> = faults.into_iter().map(wrong).collect();
        for name in portmap::networks(host)
            .into_iter()
            .chain(recorded(host, &mut faults)?)
            .chain(folders_of(&host.state.join("ipam"))?)
            .chain(folders_of(&host.state.join("folders"))?)
        {
            known.entry(name.to_string()).or_insert(Network { name, definition: None });
        }
        let torn = |torn: Torn| Fault { of: Source::Torn, network: torn.network(), error: torn.into() };
        faults.extend(torn::take().into_iter().map(torn));
        Ok(Self { known, faults, quiet: false })
    }

    /// The same, with nothing to be said of somebody else's files: for timers.
    pub fn quietly(self, quiet: bool) -> Self {
        Self { quiet, ..self }
    }

    /// The networks of these names, or all; and what keeps others from being found. What is wrong with a file of
    /// somebody else's is told here, and is no error unless the network is looked for in vain.
    pub fn choose(self, names: &[String]) -> (Vec<Network>, Vec<Error>) {
        let quiet = self.quiet;
        let Choice { networks, faults, unknown } = self.look(names);
        let mut errors = Vec::new();
        for Fault { of, error, .. } in faults {
            match of {
                Source::Foreign if unknown.is_empty() && quiet => {}
                Source::Foreign if unknown.is_empty() => {
                    output::complain(&format_args!("warning: {error}: left alone, since nothing of ours is in it"));
                }
                _ => errors.push(error),
            }
        }
        errors.extend(unknown);
        (networks, errors)
    }

    /// The same, for those who tell everything.
    pub fn look(mut self, names: &[String]) -> Choice {
        if names.is_empty() {
            let networks = self.known.into_values().collect();
            return Choice { networks, faults: self.faults, unknown: Vec::new() };
        }
        let mut names: Vec<&String> = names.iter().collect();
        names.sort();
        names.dedup();
        let unknown: Vec<Error> =
            names.iter().filter(|name| !self.known.contains_key(**name)).map(|name| self.unknown(name)).collect();
        // A file that cannot be read may be that of an unknown network; no matter if all named ones are found.
        let matters = |fault: &Fault| match &fault.network {
            Some(network) => names.iter().any(|name| *name == network.as_str()),
            None => !unknown.is_empty(),
        };
        self.faults.retain(matters);
        let networks = names.iter().filter_map(|name| self.known.remove(*name)).collect();
        Choice { networks, faults: self.faults, unknown }
    }

    /// One network by its name.
    ///
    /// # Errors
    /// There is none: the nearest name is told.
    pub fn one(self, name: &str) -> Result<Network, Vec<Error>> {
        let (chosen, errors) = self.choose(&[name.to_owned()]);
        chosen.into_iter().next().ok_or(errors)
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

#[cfg(test)]
mod tests {
    use std::path::Path;

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
            Networks::load(&host, std::slice::from_ref(&conf)).unwrap().choose(&names)
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
        assert!(Networks::load(&host, &[folder.path().join("absent")]).is_err());

        // Somebody else's file is no error, unless the network may be in it.
        std::fs::write(conf.join("bad.conflist"), r#"{"cniVersion": "7.0", "name": "x", "plugins": [{"type": "x"}]}"#)
            .unwrap();
        assert!(choose(&[]).1.is_empty());
        assert_eq!(choose(&["x"]).1.len(), 2);
    }

    #[test]
    fn records_of_a_later_version_are_told_and_their_networks_known() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        for (name, kind) in [("v6", "networks"), ("far", "routed")] {
            std::fs::create_dir_all(state.join(kind)).unwrap();
            std::fs::write(state.join(kind).join(format!("{name}.json")), r#"{"v":9}"#).unwrap();
        }
        let host = Host { state, run: folder.path().join("run"), boot: "boot".into() };
        let load = || Networks::load(&host, &[folder.path().to_owned()]).unwrap();
        let (all, errors) = load().choose(&[]);
        assert_eq!(all.iter().map(|network| network.name.as_str()).collect::<Vec<_>>(), ["far", "v6"]);
        assert_eq!(errors.len(), 2, "{errors:?}");
        let (_, errors) = load().choose(&["v6".to_owned()]);
        assert!(errors[0].to_string().contains("network v6: ") && errors.len() == 1, "{errors:?}");
        assert!(errors[0].to_string().contains("install the version that wrote it"), "{errors:?}");
        assert!(load().look(&[]).faults.iter().all(|fault| fault.of == Source::Newer));
    }
}
