//! The network configuration on stdin.

use std::io::Read;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::json::{self, JsonError};
use super::{CniResult, Error, SpecVersion};
use crate::NetworkName;

/// The most that is read from stdin, in bytes. 10 000 published ports, one entry each, are 1 MiB.
pub(super) const LIMIT: u64 = 8 << 20;

/// The network configuration: stdin as received, and the JSON object in it.
#[derive(Debug, Clone)]
pub struct Config {
    text: Vec<u8>,
    object: Value,
    version: SpecVersion,
}

/// The attachments that GC must leave alone (`cni.dev/valid-attachments`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ValidAttachments {
    /// No list: nothing is known to be stale.
    Absent,
    /// Container ids and interface names. `null` is Go's empty list: nothing is valid.
    Listed(Vec<(String, String)>),
}

/// What every configuration has.
#[derive(Deserialize)]
struct Head {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "cniVersion")]
    cni_version: Option<String>,
}

#[derive(Deserialize)]
struct Valid {
    #[serde(rename = "containerID")]
    container_id: String,
    ifname: String,
}

/// All of stdin, up to the limit.
///
/// # Errors
/// [`Error::Stdin`] and [`Error::TooLong`].
pub(super) fn read(stdin: &mut dyn Read) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    stdin.take(LIMIT + 1).read_to_end(&mut text).map_err(Error::Stdin)?;
    if text.len() as u64 > LIMIT { Err(Error::TooLong { limit: LIMIT }) } else { Ok(text) }
}

impl Config {
    /// The configuration in a text, not yet asked for name or version.
    ///
    /// # Errors
    /// Code 6: not JSON, or no object.
    pub fn parse(text: Vec<u8>) -> Result<Self, Error> {
        if text.starts_with(b"\xef\xbb\xbf") {
            return Err(Error::ByteOrderMark);
        }
        let object = json::parse(&text).map_err(Error::Syntax)?;
        if !object.is_object() {
            return Err(Error::NotAnObject(json::kind(&object)));
        }
        Ok(Self { text, object, version: SpecVersion::LATEST })
    }

    /// `name`.
    ///
    /// # Errors
    /// Code 6 if it is no string, 7 if it is missing or no name.
    pub fn name(&self) -> Result<NetworkName, Error> {
        let Head { name } = self.low()?;
        name.ok_or(Error::MissingName)?.parse().map_err(Error::NetworkName)
    }

    /// `cniVersion` as written; empty if it is absent.
    ///
    /// # Errors
    /// Code 6 if it is no string.
    pub fn version(&self) -> Result<String, Error> {
        let Version { cni_version } = self.low()?;
        Ok(cni_version.unwrap_or_default())
    }

    /// The same configuration, known to be of a version that we speak.
    #[must_use]
    pub fn of_version(self, version: SpecVersion) -> Self {
        Self { version, ..self }
    }

    /// The configuration as a type, read as Go reads it: see [`json::from_value`].
    ///
    /// # Errors
    /// Code 6, with the path of the value that does not fit.
    pub fn low<T: DeserializeOwned>(&self) -> Result<T, Error> {
        json::from_value(&self.object).map_err(Error::Value)
    }

    /// stdin as received, for delegated plugins.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// `prevResult`, with everything in it, known or not.
    ///
    /// # Errors
    /// Code 6: it is no result, or in a version of another form than the configuration's.
    pub fn prev_result(&self) -> Result<Option<CniResult>, Error> {
        let Some(value) = self.get("prevResult") else { return Ok(None) };
        let version: Version = json::from_value(value).map_err(|error| Error::PrevResult(error.under("prevResult")))?;
        if let Some(found) = version.cni_version
            && !found.parse().is_ok_and(|version: SpecVersion| version.is_akin_to(self.version))
        {
            return Err(Error::PrevResultVersion { config: self.version, found });
        }
        match CniResult::parse(value, self.version) {
            Err(Error::ResultValue(error)) => Err(Error::PrevResult(error.under("prevResult"))),
            other => other.map(Some),
        }
    }

    /// `cni.dev/valid-attachments`, or the name that an older text of the specification gave it,
    /// `cni.dev/attachments` (libcni sets both).
    ///
    /// # Errors
    /// Code 6: an entry without container or interface. Freeing by half a list would be worse.
    pub fn valid_attachments(&self) -> Result<ValidAttachments, Error> {
        const KEYS: [&str; 2] = ["cni.dev/valid-attachments", "cni.dev/attachments"];
        let entries = self.object.as_object().into_iter().flatten();
        let present: Vec<_> = entries.filter(|(name, _)| KEYS.contains(&name.as_str())).collect();
        let Some((key, list)) = KEYS.iter().find_map(|key| present.iter().find(|(name, _)| name == key)) else {
            return Ok(ValidAttachments::Absent);
        };
        let list: Option<Vec<Valid>> =
            json::from_value(list).map_err(|error: JsonError| Error::ValidAttachments(error.under(key)))?;
        let pairs = list.unwrap_or_default().into_iter().map(|valid| (valid.container_id, valid.ifname));
        Ok(ValidAttachments::Listed(pairs.collect()))
    }

    /// The value of a top-level key, whatever its case; `null` is absent.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.object.as_object().and_then(|object: &Map<String, Value>| json::get(object, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::parse(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn c12_what_is_not_one_object_is_refused_with_its_place() {
        let cases = [
            ("", "error unmarshall network config: EOF while parsing a value at line 1 column 0"),
            ("{\"name\":", "error unmarshall network config: EOF while parsing a value at line 1 column 8"),
            ("{\"name\":\"a\",\n// no\n}", "error unmarshall network config: key must be a string at line 2 column 1"),
            ("{}x", "error unmarshall network config: trailing characters at line 1 column 3"),
            ("{}{}", "error unmarshall network config: trailing characters at line 1 column 3"),
            ("[]", "error unmarshall network config: a list instead of an object, at line 1 column 1"),
            ("null", "error unmarshall network config: null instead of an object, at line 1 column 1"),
            ("5", "error unmarshall network config: a number instead of an object, at line 1 column 1"),
            ("\u{feff}{}", "error unmarshall network config: it starts with a byte order mark, at line 1 column 1"),
        ];
        for (text, expected) in cases {
            let error = Config::parse(text.as_bytes().to_vec()).unwrap_err();
            assert_eq!((error.code(), error.to_string().as_str()), (6, expected), "{text}");
        }
        assert_eq!(Config::parse(b"{\"name\":\"\xff\"}".to_vec()).unwrap_err().code(), 6);
        assert_eq!(Config::parse(vec![b'['; 100_000]).unwrap_err().code(), 6);
        let deep = format!("{{\"name\":{}1{}}}", "[".repeat(200), "]".repeat(200));
        assert_eq!(Config::parse(deep.into_bytes()).unwrap_err().code(), 6);
        assert!(Config::parse(b" \n{ } \n".to_vec()).is_ok(), "white space around it is JSON too");
    }

    #[test]
    fn c12_stdin_is_limited_and_its_errors_are_code_5() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("broken"))
            }
        }
        let error = read(&mut Broken).unwrap_err();
        assert_eq!((error.code(), error.to_string().as_str()), (5, "error reading from stdin: broken"));
        let error = read(&mut std::io::repeat(b' ')).unwrap_err();
        assert_eq!(error.code(), 6);
        assert_eq!(read(&mut std::io::repeat(b' ').take(LIMIT)).unwrap().len() as u64, LIMIT);
    }

    #[test]
    fn c11_names() {
        let refusal = |text: &str| {
            let error = config(text).name().unwrap_err();
            (error.code(), error.to_string(), error.details())
        };
        for text in ["{}", r#"{"name": ""}"#, r#"{"name": null}"#] {
            let (code, msg, _) = refusal(text);
            assert_eq!((code, msg.as_str()), (7, "missing network name"));
        }
        let bad = (7, "invalid characters found in network name".to_owned(), Some("ne%t1".to_owned()));
        assert_eq!(refusal(r#"{"name": "ne%t1"}"#), bad);
        assert_eq!(refusal(r#"{"name": "../x"}"#).0, 7);
        assert_eq!(refusal(&format!(r#"{{"name": "{}"}}"#, "x".repeat(300))).0, 7);
        let wrong = "error unmarshall network config: name: invalid type: integer `5`, expected a string";
        assert_eq!(refusal(r#"{"name": 5}"#), (6, wrong.to_owned(), None));
        assert_eq!(config(r#"{"NAME": "a", "x": 1}"#).name().unwrap().as_str(), "a");
    }

    #[test]
    fn c40_an_absent_version_is_empty() {
        assert_eq!(config("{}").version().unwrap(), "");
        assert_eq!(config(r#"{"cniVersion": null}"#).version().unwrap(), "");
        assert_eq!(config(r#"{"cniversion": "1.0.0"}"#).version().unwrap(), "1.0.0");
        assert_eq!(config(r#"{"cniVersion": 1}"#).version().unwrap_err().code(), 6);
    }

    #[test]
    fn c101_absent_null_and_empty_lists_of_valid_attachments() {
        let valid = |text| config(text).valid_attachments().unwrap();
        assert_eq!(valid("{}"), ValidAttachments::Absent);
        assert_eq!(valid(r#"{"cni.dev/valid-attachments": null}"#), ValidAttachments::Listed(vec![]));
        assert_eq!(valid(r#"{"cni.dev/valid-attachments": []}"#), ValidAttachments::Listed(vec![]));
        let one = ValidAttachments::Listed(vec![("c1".into(), "eth0".into())]);
        assert_eq!(valid(r#"{"cni.dev/valid-attachments": [{"containerID": "c1", "ifname": "eth0"}]}"#), one);
        assert_eq!(valid(r#"{"cni.dev/attachments": [{"containerID": "c1", "ifname": "eth0"}]}"#), one);
        let both =
            r#"{"cni.dev/attachments": [], "cni.dev/valid-attachments": [{"containerID":"c1","ifname":"eth0"}]}"#;
        assert_eq!(valid(both), one);
    }

    #[test]
    fn c100_half_a_list_of_valid_attachments_frees_nothing() {
        for (list, expected) in [
            (r#"[{"containerID": "c1"}]"#, "[0]: missing field `ifname`"),
            (r#"[{"ifname": "eth0"}]"#, "[0]: missing field `containerID`"),
            (r#"[null]"#, "[0]: invalid type: null, expected an object"),
            (r#"{}"#, ": invalid type: map, expected a sequence"),
        ] {
            let error = config(&format!(r#"{{"cni.dev/valid-attachments": {list}}}"#)).valid_attachments().unwrap_err();
            assert_eq!(error.code(), 6);
            let place = r#"error unmarshall network config: ["cni.dev/valid-attachments"]"#;
            assert_eq!(error.to_string(), format!("{place}{expected}"));
        }
    }

    #[test]
    fn c111_prev_result_is_of_the_configurations_family() {
        let prev =
            |version, result: &str| config(&format!(r#"{{"prevResult": {result}}}"#)).of_version(version).prev_result();
        assert!(prev(SpecVersion::V100, "null").unwrap().is_none());
        assert!(prev(SpecVersion::V100, "{}").unwrap().is_some());
        assert!(prev(SpecVersion::V110, r#"{"cniVersion": "1.0.0"}"#).unwrap().is_some());
        assert!(prev(SpecVersion::V110, r#"{"cniVersion": ""}"#).unwrap().is_some());
        let error = prev(SpecVersion::V110, r#"{"cniVersion": "0.4.0"}"#).unwrap_err();
        assert_eq!(error.code(), 6);
        assert_eq!(
            error.to_string(),
            "could not parse prevResult: result type supports [1.0.0 1.1.0] but unmarshalled CNIVersion is \"0.4.0\""
        );
        let error = prev(SpecVersion::V110, r#"{"ips": [{"address": "10.0.0.1"}]}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            "could not parse prevResult: prevResult.ips[0].address: invalid IP address syntax"
        );
        assert_eq!(prev(SpecVersion::V110, "[]").unwrap_err().code(), 6);
    }
}
