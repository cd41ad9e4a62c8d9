//! Network configurations as runtimes find them: the files of a folder.

use std::path::{Path, PathBuf};

use osvc_cni::protocol::{Call, CniArgs, Command, Config, PluginPath, SpecVersion};
use osvc_cni::{Host, NetworkName};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::{Error, Place};
use crate::locate;

mod files;
mod whose;

pub use files::{Unreadable, is_below, load_all, text, usual_folders};

/// The plugin of networks that end with the host.
pub const BRIDGE: &str = "osvc-bridge";

/// The plugin that publishes ports, whoever gave the addresses.
pub const PORTMAP: &str = "osvc-portmap";

/// The configuration of a network.
#[derive(Debug)]
pub struct Definition {
    /// The network.
    pub name: NetworkName,
    /// The file.
    pub file: PathBuf,
    /// The version in which its plugins are called.
    pub version: SpecVersion,
    /// The plugins.
    pub plugins: Vec<Plugin>,
    /// Other files for a network of this name in the same folder, which do not count.
    pub shadowed: Vec<PathBuf>,
    /// Files for a network of this name in other folders: another runtime's, which may see another network.
    pub elsewhere: Vec<PathBuf>,
}

/// The configuration of one of a network's plugins.
#[derive(Debug)]
pub struct Plugin {
    /// Name of its binary.
    pub kind: String,
    /// Where it begins.
    pub place: Place,
    object: Map<String, Value>,
}

/// A conflist, or a configuration of a single plugin.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Low {
    name: Option<String>,
    cni_version: Option<String>,
    #[serde(default)]
    cni_versions: Vec<String>,
    plugins: Option<Vec<Map<String, Value>>>,
}

impl Definition {
    /// The call that a runtime would make of a plugin to ask for its status, for functions that want one.
    pub fn call(&self, plugin: &Plugin, host: &Host) -> Result<Call, osvc_cni::Error> {
        let mut object = plugin.object.clone();
        object.insert("name".to_owned(), Value::from(self.name.as_str()));
        object.insert("cniVersion".to_owned(), Value::from(self.version.as_str()));
        Ok(Call {
            command: Command::Status,
            version: self.version,
            network: self.name.clone(),
            netns: None,
            args: CniArgs::default(),
            path: PluginPath::new(""),
            config: Config::parse(Value::Object(object).to_string().into_bytes())?.of_version(self.version),
            host: host.clone(),
        })
    }
}

impl Plugin {
    /// The plugin that allocates addresses for this one.
    pub fn ipam(&self) -> Option<&str> {
        self.object.get("ipam")?.get("type")?.as_str()
    }

    /// True if it is of this suite, or has its addresses from it.
    pub fn is_ours(&self) -> bool {
        self.kind.starts_with("osvc-") || self.ipam() == Some("osvc-ipam")
    }

    /// True if this plugin allocates addresses as this suite does, or lets osvc-ipam do it.
    pub fn gives_addresses(&self) -> bool {
        (self.kind.starts_with("osvc-") && self.kind != PORTMAP) || self.ipam() == Some("osvc-ipam")
    }
}

/// The network in the text of a file.
pub fn parse(file: &Path, text: &[u8]) -> Result<Definition, Error> {
    let place = |line, column| Place { file: file.to_owned(), line, column };
    let json = |error: serde_json::Error| {
        let problem = error.to_string();
        let suffix = format!(" at line {} column {}", error.line(), error.column());
        let problem = problem.strip_suffix(&suffix).unwrap_or(&problem).to_owned();
        Error::Json { place: place(error.line().max(1), error.column().max(1)), problem }
    };
    let refuse = |line, column, problem: &str| Error::Json { place: place(line, column), problem: problem.to_owned() };

    let low: Low = serde_json::from_slice(text).map_err(json)?;
    let name = low.name.filter(|name| !name.is_empty()).ok_or_else(|| refuse(1, 1, "missing network name"))?;
    let version = version(&low.cni_versions, low.cni_version.as_deref()).map_err(|problem| refuse(1, 1, &problem))?;
    let objects = match low.plugins {
        Some(objects) => objects,
        None => vec![serde_json::from_slice(text).map_err(json)?],
    };
    if objects.is_empty() {
        return Err(refuse(1, 1, "no plugins in list"));
    }
    let plugin = |(index, object): (usize, Map<String, Value>)| {
        let offset = locate::element(text, "plugins", index).unwrap_or_default();
        let (line, column) = locate::place(text, offset);
        match object.get("type").and_then(Value::as_str).filter(|kind| !kind.is_empty()) {
            Some(kind) => Ok(Plugin { kind: kind.to_owned(), place: place(line, column), object }),
            None => Err(refuse(line, column, "plugin without type")),
        }
    };
    let plugins = objects.into_iter().enumerate().map(plugin).collect::<Result<_, _>>()?;
    match name.parse() {
        Ok(name) => Ok(Definition {
            name,
            file: file.to_owned(),
            version,
            plugins,
            shadowed: Vec::new(),
            elsewhere: Vec::new(),
        }),
        Err(source) => Err(Error::Name { place: place(1, 1), name, source }),
    }
}

/// The highest version that both sides know, as runtimes choose it.
fn version(offered: &[String], single: Option<&str>) -> Result<SpecVersion, String> {
    let single = single.filter(|version| !version.is_empty());
    let known = offered.iter().map(String::as_str).chain(single).filter_map(|text| text.parse::<SpecVersion>().ok());
    match known.max() {
        Some(version) => Ok(version),
        None if offered.is_empty() && single.is_none() => Ok(SpecVersion::V010),
        None => Err(format!("incompatible CNI versions: {:?}", single.unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(text: &str) -> String {
        parse(Path::new("/net.d/a.conflist"), text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn conflists_and_single_configurations() {
        let text = r#"{
  "cniVersion": "0.3.1", "cniVersions": ["0.4.0", "1.0.0", "9.0.0"], "name": "podnet",
  "plugins": [
    {"type": "osvc-bridge", "network": "10.22.0.0/16"},
    {"type": "portmap"}
  ]
}"#;
        let definition = parse(Path::new("x.conflist"), text.as_bytes()).unwrap();
        assert_eq!((definition.name.as_str(), definition.version), ("podnet", SpecVersion::V100));
        assert_eq!(definition.plugins[1].place.to_string(), "x.conflist:5:5");
        assert!(definition.plugins[0].gives_addresses() && !definition.plugins[1].gives_addresses());
        let host = Host { state: "/s".into(), run: "/r".into(), boot: "b".into() };
        let call = definition.call(&definition.plugins[0], &host).unwrap();
        assert_eq!(call.config.name().unwrap().as_str(), "podnet");
        let text = br#"{"name": "one", "type": "bridge", "ipam": {"type": "osvc-ipam"}}"#;
        let definition = parse(Path::new("x.conf"), text).unwrap();
        assert_eq!((definition.plugins.len(), definition.version), (1, SpecVersion::V010));
        assert!(definition.plugins[0].gives_addresses());
    }

    #[test]
    fn faults_are_told_with_file_line_and_column() {
        assert_eq!(failure("{\n  \"name\": \"a\",\n}"), "/net.d/a.conflist:3:1: trailing comma");
        assert_eq!(failure(""), "/net.d/a.conflist:1:1: EOF while parsing a value");
        assert!(failure("{\n \"name\": 5}").starts_with("/net.d/a.conflist:2:10: invalid type: integer `5`"));
        assert!(failure("{\"name\": \"a\",\n \"plugins\": {}}").starts_with("/net.d/a.conflist:2:"));
        assert_eq!(failure("{}"), "/net.d/a.conflist:1:1: missing network name");
        assert_eq!(failure(r#"{"name": "a", "plugins": []}"#), "/net.d/a.conflist:1:1: no plugins in list");
        assert_eq!(
            failure("{\"name\": \"a\", \"plugins\": [{\"type\": \"x\"},\n  {\"type\": \"\"}]}"),
            "/net.d/a.conflist:2:3: plugin without type"
        );
        assert!(failure(r#"{"name": "../a", "type": "x"}"#).contains("network name \"../a\": invalid characters"));
        assert!(failure(r#"{"name": "a", "type": "x", "cniVersion": "7.0"}"#).contains("incompatible CNI versions"));
    }
}
