//! What the tests of this module share.

use std::ffi::OsString;
use std::path::Path;

use super::{Call, CniArgs, Command, Config, PluginPath, SpecVersion};
use crate::{Attachment, Host};

/// An environment of the given variables only.
pub fn environment(pairs: &[(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (name.to_string(), OsString::from(value))).collect();
    move |name| pairs.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone())
}

/// A call on network `net` with one folder as CNI_PATH.
pub fn call(command: Command, path: &Path) -> Call {
    let text = r#"{"cniVersion": "1.0.0", "name": "net", "type": "osvc-bridge", "ipam": {"type": "p"}, "x": 1}"#;
    Call {
        command,
        version: SpecVersion::V100,
        network: "net".parse().unwrap(),
        netns: Some("/run/netns/x".into()),
        args: CniArgs::parse("IgnoreUnknown=1;MAC=02:00:00:00:00:01"),
        path: PluginPath::new(path),
        config: Config::parse(text.as_bytes().to_vec()).unwrap().of_version(SpecVersion::V100),
        host: Host { state: path.join("state"), run: path.join("run"), boot: "boot".into() },
    }
}

/// Interface eth0 of container c1 on network `net`.
pub fn attachment() -> Attachment {
    Attachment { network: "net".parse().unwrap(), container: "c1".parse().unwrap(), ifname: "eth0".parse().unwrap() }
}
