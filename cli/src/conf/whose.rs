//! Whose a file is that holds no network: many programs keep files beside the configurations, and below.

use std::path::Path;

use serde_json::Value;

/// Whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Ours, or that of nobody who could read it: it is to be put right.
    Ours,
    /// Somebody else's.
    Foreign,
    /// Somebody else's, and it was never meant to hold a network.
    NoNetwork,
}

/// Whose the file of this text is.
pub fn of(file: &Path, text: &[u8]) -> Whose {
    if text.windows(5).any(|word| word == b"osvc-") {
        return Whose::Ours;
    }
    let is_below = super::is_below(file);
    match serde_json::from_slice::<Value>(text) {
        // Torn, as far as anybody can tell.
        Err(_) if !is_below => Whose::Ours,
        Err(_) => Whose::Foreign,
        Ok(value) if is_below && !["name", "plugins", "type"].iter().any(|key| value.get(key).is_some()) => {
            Whose::NoNetwork
        }
        // By its name it is a list of plugins, and no runtime can read it.
        Ok(value) if !is_below && file.extension().is_some_and(|is| is == "conflist") && !is_list(&value) => {
            Whose::Ours
        }
        Ok(_) => Whose::Foreign,
    }
}

/// True if it is what a runtime can read: a name and plugins, or a name alone, since newer ones take the plugins from files
/// of a folder of that name then (libcni 1.3).
fn is_list(value: &Value) -> bool {
    let has = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let inlined = value.get("loadOnlyInlinedPlugins").and_then(Value::as_bool) == Some(true);
    has(value, "name")
        && match value.get("plugins").and_then(Value::as_array) {
            Some(plugins) if !plugins.is_empty() => plugins.iter().all(|plugin| has(plugin, "type")),
            _ => !inlined,
        }
}

#[cfg(test)]
mod tests {
    use super::{Whose, of};

    #[test]
    fn what_is_put_right_and_what_is_left_alone() {
        let whose = |file: &str, text: &str| of(&std::path::Path::new("/etc/cni/net.d").join(file), text.as_bytes());
        for (file, text, is) in [
            ("a.conflist", r#"{"name": "a", "plugins": [{"type": 5}]}"#, Whose::Ours),
            ("a.conflist", "{}", Whose::Ours),
            ("a.conflist", "{", Whose::Ours),
            ("a.conflist", r#"{"name": "a"}"#, Whose::Foreign),
            ("a.conflist", r#"{"name": "a", "loadOnlyInlinedPlugins": true}"#, Whose::Ours),
            ("a.conf", "{", Whose::Ours),
            ("a.conf", r#"{"type": "osvc-bridge"}"#, Whose::Ours),
            ("a.conf", r#"{"type": "bridge"}"#, Whose::Foreign),
            ("a.json", r#"{"kubeconfig": "/x"}"#, Whose::Foreign),
            // Of a version of the specification, or with a name, that others may have a use for.
            ("a.conflist", r#"{"cniVersion": "7.0", "name": "a", "plugins": [{"type": "x"}]}"#, Whose::Foreign),
            ("whereabouts.d/whereabouts.conf", r#"{"datastore": "kubernetes"}"#, Whose::NoNetwork),
            ("default/a.conflist", r#"{"plugins": [{"type": 5}]}"#, Whose::Foreign),
            ("default/a.conflist", "{", Whose::Foreign),
            ("default/a.conflist", r#"{"plugins": [{"type": "osvc-bridge"}]}"#, Whose::Ours),
        ] {
            assert_eq!(whose(file, text), is, "{file}: {text}");
        }
    }
}
