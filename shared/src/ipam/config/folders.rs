//! Where records are.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::{ConfigError, low};
use crate::protocol::{Call, json};
use crate::{Host, NetworkName};

/// Where libcni keeps the results of all runtimes, unless one of them says otherwise.
pub const RESULTS: &str = "/var/lib/cni/results";

/// host-local's default `dataDir`.
const HOST_LOCAL: &str = "/var/lib/cni/networks";

/// OpenSVC's folder of reservations.
const OPENSVC: &str = "/var/lib/opensvc/ipam";

/// The folders of a network's address records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// Ours: `<state>/ipam/<network>`, or `<dataDir>/osvc/<network>`.
    pub ours: PathBuf,
    /// host-local's: `hostLocalDir`, or `<dataDir>/<network>`, or `/var/lib/cni/networks/<network>`.
    pub host_local: PathBuf,
    /// OpenSVC's: `opensvcIpamDir`, or `/var/lib/opensvc/ipam/<network>`.
    pub opensvc: PathBuf,
}

impl Folders {
    /// The folders of a call's network, whatever else its configuration holds.
    ///
    /// For DEL, which frees an address although the configuration was changed or broken after the ADD: what
    /// cannot be read counts as absent.
    pub fn of_call(call: &Call) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Network {
            ipam: Option<Value>,
        }
        let network: Network = call.config.low().unwrap_or_default();
        let low: low::Folders = network.ipam.and_then(|ipam| json::from_value(&ipam).ok()).unwrap_or_default();
        let path = |value: Option<Value>| {
            let path = PathBuf::from(value.as_ref().and_then(Value::as_str)?);
            path.is_absolute().then_some(path)
        };
        let [data, host_local, opensvc] = [low.data_dir, low.host_local_dir, low.opensvc_ipam_dir].map(path);
        Self::new(data.as_deref(), host_local, opensvc, &call.network, &call.host)
    }

    /// The folders of a network whose configuration says nothing of them.
    pub fn usual(network: &NetworkName, host: &Host) -> Self {
        Self::new(None, None, None, network, host)
    }

    /// The folders of a configuration.
    pub(super) fn checked(ipam: &low::Ipam, network: &NetworkName, host: &Host) -> Result<Self, ConfigError> {
        // Two runtimes, or one started from two folders, would not see each other's records.
        let path = |at: &'static str, text: &Option<String>| match text.as_ref().map(PathBuf::from) {
            Some(path) if path.is_relative() => Err(ConfigError::RelativePath { path, at }),
            path => Ok(path),
        };
        let data = path("ipam.dataDir", &ipam.data_dir)?;
        let host_local = path("ipam.hostLocalDir", &ipam.host_local_dir)?;
        let opensvc = path("ipam.opensvcIpamDir", &ipam.opensvc_ipam_dir)?;
        Ok(Self::new(data.as_deref(), host_local, opensvc, network, host))
    }

    fn new(
        data: Option<&Path>,
        host_local: Option<PathBuf>,
        opensvc: Option<PathBuf>,
        network: &NetworkName,
        host: &Host,
    ) -> Self {
        let name = network.as_str();
        // Beside our other state, a network called `ipam` would be the folder of all networks.
        let ours = data.map(|data| data.join("osvc")).filter(|ours| *ours != host.state);
        Self {
            ours: ours.unwrap_or_else(|| host.state.join("ipam")).join(name),
            host_local: host_local.unwrap_or_else(|| data.unwrap_or(Path::new(HOST_LOCAL)).join(name)),
            opensvc: opensvc.unwrap_or_else(|| Path::new(OPENSVC).join(name)),
        }
    }
}
