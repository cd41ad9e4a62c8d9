//! CNI_ARGS: `KEY=value;KEY2=value2`.

/// The pairs of CNI_ARGS, read as leniently as runtimes write them: podman and multus repeat keys,
/// Nomad puts `=` and JSON into values, none of them escapes anything.
///
/// Split on `;`, then on the first `=`. Empty pairs, pairs without `=` and unknown keys mean nothing,
/// with or without `IgnoreUnknown`; the last of a repeated key counts. Nothing in it is an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CniArgs {
    text: String,
}

impl CniArgs {
    /// The arguments in the text of the variable.
    pub fn parse(text: &str) -> Self {
        Self { text: text.to_owned() }
    }

    /// The value of a key, which is case-sensitive. An empty value is an absent one.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.iter().filter(|(name, _)| *name == key).last().map(|(_, value)| value).filter(|value| !value.is_empty())
    }

    /// All pairs in their order, repeated keys included.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.text.split(';').filter_map(|pair| pair.split_once('='))
    }

    /// The variable as received.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c13_pairs_are_split_on_the_first_equals_sign() {
        let args = CniArgs::parse(r#"IgnoreUnknown=1;K8S_POD_NAME=web;X={"a"="b"};;FOO;=lonely;EMPTY=;"#);
        assert_eq!(args.get("K8S_POD_NAME"), Some("web"));
        assert_eq!(args.get("X"), Some(r#"{"a"="b"}"#));
        assert_eq!(args.get("EMPTY"), None);
        assert_eq!(args.get("FOO"), None);
        assert_eq!(args.get("k8s_pod_name"), None, "keys are case-sensitive");
    }

    #[test]
    fn c13_the_last_of_a_repeated_key_counts() {
        assert_eq!(CniArgs::parse("IP=10.0.0.1;IP=10.0.0.2").get("IP"), Some("10.0.0.2"));
        assert_eq!(CniArgs::parse("IP=10.0.0.1;IP=").get("IP"), None);
    }

    #[test]
    fn c14_nothing_in_it_is_an_error() {
        for text in ["", ";", ";;;", "=", "a", "\u{fffd}=\u{fffd}", "a=b=c;;"] {
            let args = CniArgs::parse(text);
            assert_eq!(args.text(), text);
            assert_eq!(args.get("IP"), None);
        }
    }
}
