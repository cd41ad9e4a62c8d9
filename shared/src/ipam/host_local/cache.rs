//! All that libcni's cached result of an attachment tells: what the plugins got, and what they made.
//!
//! libcni writes a file `<network>-<container id>-<interface>` (`cniCacheV1`) after a whole ADD, in the folder `results`
//! of its cache, which all runtimes share unless they say otherwise.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::store::file::is_absence;
use super::HostLocalError;
use super::results::{CachedResult, read};
use crate::NetworkName;
use crate::base64;
use crate::protocol::CniArgs;

/// A container attached by a runtime with libcni.
#[derive(Debug, Clone, Default)]
pub struct Cached {
    /// CNI_IFNAME.
    pub ifname: String,
    /// CNI_ARGS.
    pub args: CniArgs,
    /// `args.cni` of the configuration of the plugin that let host-local allocate.
    pub cni_args: Option<Value>,
    /// The addresses that were asked for by name.
    pub requested: Vec<IpAddr>,
    /// The container's network namespace.
    pub netns: Option<PathBuf>,
    /// The host end of the pair that the reference plugin made.
    pub veth: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Low {
    container_id: Option<String>,
    if_name: Option<String>,
    network_name: Option<String>,
    netns: Option<PathBuf>,
    cni_args: Option<Vec<(String, String)>>,
    capability_args: Option<Map<String, Value>>,
    config: Option<String>,
    result: Option<CachedResult>,
}

/// Looks for the cached result of an attachment in several folders; one whose namespace is there goes first. `ifname`:
/// records of old do not say it; then there must be one only.
///
/// # Errors
/// A folder or a file cannot be read.
pub fn find(
    folders: &[PathBuf],
    network: &NetworkName,
    container: &str,
    ifname: Option<&str>,
) -> Result<Option<Cached>, HostLocalError> {
    let mut found = Vec::new();
    for folder in folders {
        let names = match ifname {
            // The names are a foreign file's: they must not lead out of the folder.
            Some(ifname) if container.contains('/') || ifname.contains('/') => Vec::new(),
            Some(ifname) => vec![format!("{network}-{container}-{ifname}")],
            None => names(folder, &format!("{network}-{container}-"))?,
        };
        for name in names {
            let Some(low) = read::<Low>(&folder.join(name))? else { continue };
            found.extend(low.check(network, container, ifname));
        }
    }
    if ifname.is_none() && found.windows(2).any(|pair| pair[0].ifname != pair[1].ifname) {
        return Ok(None);
    }
    let there = found.iter().position(|cached| cached.netns.as_ref().is_some_and(|netns| netns.exists()));
    Ok((!found.is_empty()).then(|| found.swap_remove(there.unwrap_or(0))))
}

/// The files of a folder whose names begin so.
fn names(folder: &Path, beginning: &str) -> Result<Vec<String>, HostLocalError> {
    let fault = |source| HostLocalError::Read { path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if is_absence(&error) => return Ok(Vec::new()),
        entries => entries.map_err(fault)?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let name = entry.map_err(fault)?.file_name();
        found.extend(name.to_str().filter(|name| name.starts_with(beginning)).map(str::to_owned));
    }
    Ok(found)
}

impl Low {
    /// `None` if it is another attachment's: `a-b` and `c` make the same file name as `a` and `b-c`.
    fn check(self, network: &NetworkName, container: &str, ifname: Option<&str>) -> Option<Cached> {
        let is = |said: &Option<String>, expected: &str| said.as_deref().is_none_or(|said| said == expected);
        let interface = self.if_name.as_deref().or(ifname)?.to_owned();
        if !is(&self.container_id, container)
            || !is(&self.network_name, network.as_str())
            || ifname.is_some_and(|expected| expected != interface)
        {
            return None;
        }
        let result = self.result.unwrap_or_default();
        let pairs = self.cni_args.unwrap_or_default();
        let pairs: Vec<String> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let args = CniArgs::parse(&pairs.join(";"));
        let cni_args = self.config.as_deref().and_then(cni_args);
        let listed = |value: Option<&Value>| -> Vec<String> {
            let texts = value.and_then(Value::as_array).into_iter().flatten();
            texts.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut asked = listed(self.capability_args.as_ref().and_then(|capabilities| capabilities.get("ips")));
        asked.extend(listed(cni_args.as_ref().and_then(|cni| cni.get("ips"))));
        asked.extend(args.get("IP").map(str::to_owned));
        Some(Cached {
            ifname: interface,
            requested: asked.iter().flat_map(|text| text.split(',')).filter_map(|text| address(text.trim())).collect(),
            args,
            cni_args,
            netns: self.netns.filter(|path| path.is_absolute()).or_else(|| result.sandbox().map(Path::to_owned)),
            veth: result.veth().map(str::to_owned),
        })
    }
}

/// An address with or without prefix length.
fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| text.parse::<IpNet>().ok().map(|net| net.addr()))
}

/// `args.cni` in a cached configuration (base64): a conflist, or the configuration of one plugin.
fn cni_args(config: &str) -> Option<Value> {
    let config: Value = serde_json::from_slice(&base64::decode(config)?).ok()?;
    let plugins = match config.get("plugins").and_then(Value::as_array) {
        Some(plugins) => plugins.iter().collect(),
        None => vec![&config],
    };
    let allocates = |plugin: &&&Value| plugin.get("ipam").and_then(|ipam| ipam.get("type")).is_some();
    Some(plugins.iter().find(allocates)?.get("args")?.get("cni")?.clone())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn found(entries: &[(&str, Value)], container: &str, ifname: Option<&str>) -> Option<Cached> {
        let folder = tempfile::tempdir().unwrap();
        for (name, entry) in entries {
            fs::write(folder.path().join(name), entry.to_string()).unwrap();
        }
        let folders = [folder.path().join("absent"), folder.path().to_owned()];
        find(&folders, &"net".parse().unwrap(), container, ifname).unwrap()
    }

    #[test]
    fn all_that_a_key_is_made_of() {
        // {"plugins":[{"type":"bridge","ipam":{"type":"host-local"},"args":{"cni":{"osvc.key":"prod/web"}}}]}
        let config = "eyJwbHVnaW5zIjpbeyJ0eXBlIjoiYnJpZGdlIiwiaXBhbSI6eyJ0eXBlIjoiaG9zdC1sb2NhbCJ9LCJhcmdzIjp7ImNuaSI6eyJ\
                      vc3ZjLmtleSI6InByb2Qvd2ViIn19fV19";
        let entry = json!({
            "kind": "cniCacheV1", "containerId": "c1", "ifName": "eth0", "networkName": "net", "config": config,
            "cniArgs": [["IgnoreUnknown", "1"], ["K8S_POD_NAME", "web"], ["IP", "10.0.0.9"]],
            "capabilityArgs": {"ips": ["10.0.0.7/24"]},
            "result": {"interfaces": [{"name": "br0"}, {"name": "veth12"}, {"name": "eth0", "sandbox": "/run/netns/x"}]}
        });
        let cached = found(&[("net-c1-eth0", entry)], "c1", Some("eth0")).unwrap();
        assert_eq!(cached.args.get("K8S_POD_NAME"), Some("web"));
        assert_eq!(cached.cni_args, Some(json!({"osvc.key": "prod/web"})));
        assert_eq!(cached.requested, ["10.0.0.7".parse::<IpAddr>().unwrap(), "10.0.0.9".parse().unwrap()]);
        assert_eq!(cached.netns.as_deref(), Some(Path::new("/run/netns/x")));
        assert_eq!(cached.veth.as_deref(), Some("veth12"));
    }

    #[test]
    fn the_interface_is_found_if_there_is_but_one() {
        let entry = |ifname: &str| json!({"containerId": "c1", "ifName": ifname, "networkName": "net", "netns": "/n"});
        let one = [("net-c1-net1", entry("net1"))];
        assert_eq!(found(&one, "c1", None).unwrap().ifname, "net1");
        let two = [("net-c1-net1", entry("net1")), ("net-c1-net2", entry("net2"))];
        assert!(found(&two, "c1", None).is_none());
        assert_eq!(found(&two, "c1", Some("net2")).unwrap().ifname, "net2");
    }

    #[test]
    fn what_is_anothers_or_torn_is_nothing() {
        let entry = json!({"containerId": "c1-eth0", "ifName": "x", "networkName": "net"});
        assert!(found(&[("net-c1-eth0-x", entry)], "c1", Some("eth0-x")).is_none());
        assert!(found(&[("net-c1-eth0", json!("torn"))], "c1", Some("eth0")).is_none());
        assert!(found(&[], "../c1", Some("eth0")).is_none());
    }
}
