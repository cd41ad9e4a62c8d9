//! Versions of the CNI specification, and which of them know which verb.

use std::fmt;
use std::str::FromStr;

use super::Command;
use super::error::Error;

/// A version of the CNI specification that we speak: all there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpecVersion {
    /// 0.1.0, also meant by a configuration without `cniVersion`.
    V010,
    /// 0.2.0: the same results as 0.1.0; VERSION.
    V020,
    /// 0.3.0: interfaces, several addresses, chaining.
    V030,
    /// 0.3.1: 0.3.0 with its prose put right.
    V031,
    /// 0.4.0: CHECK, prevResult on DEL.
    V040,
    /// 1.0.0: no `ips[].version`.
    V100,
    /// 1.1.0: GC, STATUS, more keys in interfaces and routes.
    V110,
}

impl SpecVersion {
    /// All of them, oldest first: `supportedVersions` of VERSION.
    pub const ALL: [Self; 7] = [Self::V010, Self::V020, Self::V030, Self::V031, Self::V040, Self::V100, Self::V110];

    /// The newest one.
    pub const LATEST: Self = Self::V110;

    /// The version as the specification writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V010 => "0.1.0",
            Self::V020 => "0.2.0",
            Self::V030 => "0.3.0",
            Self::V031 => "0.3.1",
            Self::V040 => "0.4.0",
            Self::V100 => "1.0.0",
            Self::V110 => "1.1.0",
        }
    }

    /// The versions whose results have one form: what is written in one can be read in the others.
    pub fn family(self) -> &'static [Self] {
        match self {
            Self::V010 | Self::V020 => &[Self::V010, Self::V020],
            Self::V030 | Self::V031 | Self::V040 => &[Self::V030, Self::V031, Self::V040],
            Self::V100 | Self::V110 => &[Self::V100, Self::V110],
        }
    }

    /// True if the results of both versions have one form.
    pub fn is_akin_to(self, other: Self) -> bool {
        self.family() == other.family()
    }

    /// The first version that knows a verb.
    fn first_with(command: Command) -> Self {
        match command {
            Command::Add | Command::Del | Command::Version => Self::V010,
            Command::Check => Self::V040,
            Command::Gc | Command::Status => Self::V110,
        }
    }

    /// The version of a configuration, if it is one of ours and knows the verb. Empty means 0.1.0.
    ///
    /// Support is membership of the list: 1.1 or 1.2.0 are not 1.1.0.
    ///
    /// # Errors
    /// [`Error::IncompatibleVersion`], [`Error::ConfigTooOld`], [`Error::ConfigTooNew`], and
    /// [`Error::VersionNumber`] for something that cannot be compared at all.
    pub(super) fn of_config(text: &str, command: Command) -> Result<Self, Error> {
        let text = if text.is_empty() { Self::V010.as_str() } else { text };
        let first = Self::first_with(command);
        if first > Self::V010 {
            let number = number(text)?;
            if number < first.number() {
                return Err(Error::ConfigTooOld { command, first, version: text.to_owned() });
            }
            if number > Self::LATEST.number() {
                return Err(Error::ConfigTooNew { command, version: text.to_owned() });
            }
        }
        text.parse().map_err(|Unknown| Error::IncompatibleVersion(text.to_owned()))
    }

    fn number(self) -> [u64; 3] {
        match self {
            Self::V010 => [0, 1, 0],
            Self::V020 => [0, 2, 0],
            Self::V030 => [0, 3, 0],
            Self::V031 => [0, 3, 1],
            Self::V040 => [0, 4, 0],
            Self::V100 => [1, 0, 0],
            Self::V110 => [1, 1, 0],
        }
    }
}

/// Any dotted version of up to three numbers; missing ones are 0.
fn number(text: &str) -> Result<[u64; 3], Error> {
    let mut number = [0; 3];
    let mut parts = number.iter_mut();
    for part in text.split('.') {
        match (parts.next(), part.parse()) {
            (Some(place), Ok(value)) => *place = value,
            _ => return Err(Error::VersionNumber(text.to_owned())),
        }
    }
    Ok(number)
}

impl fmt::Display for SpecVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Not a version of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a version of the CNI specification")]
pub struct Unknown;

impl FromStr for SpecVersion {
    type Err = Unknown;
    fn from_str(text: &str) -> Result<Self, Unknown> {
        Self::ALL.into_iter().find(|version| version.as_str() == text).ok_or(Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str, command: Command) -> (u32, String, Option<String>) {
        let error = SpecVersion::of_config(text, command).unwrap_err();
        (error.code(), error.to_string(), error.details())
    }

    #[test]
    fn c40_all_known_versions_and_none_means_010() {
        for version in SpecVersion::ALL {
            assert_eq!(SpecVersion::of_config(version.as_str(), Command::Add).unwrap(), version);
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        assert_eq!(SpecVersion::of_config("", Command::Add).unwrap(), SpecVersion::V010);
        assert!(SpecVersion::ALL.is_sorted());
    }

    #[test]
    fn c41_support_is_exact_membership() {
        for text in ["1.1", "1.2.0", "0.5.0", "abc", "1.1.0 ", "01.1.0"] {
            let (code, msg, details) = refusal(text, Command::Add);
            assert_eq!((code, msg.as_str()), (1, "incompatible CNI versions"));
            assert_eq!(
                details.unwrap(),
                format!(
                    "config is {text:?}, plugin supports \
                     [\"0.1.0\" \"0.2.0\" \"0.3.0\" \"0.3.1\" \"0.4.0\" \"1.0.0\" \"1.1.0\"]"
                )
            );
        }
    }

    #[test]
    fn c42_verbs_that_a_version_does_not_know() {
        for text in ["", "0.1.0", "0.3.1", "0.3.9"] {
            let (code, msg, _) = refusal(text, Command::Check);
            assert_eq!((code, msg.as_str()), (1, "config version does not allow CHECK"));
        }
        for text in ["", "0.4.0", "1.0.0"] {
            assert_eq!(refusal(text, Command::Gc).1, "config version does not allow GC");
            assert_eq!(refusal(text, Command::Status).1, "config version does not allow STATUS");
        }
        for command in [Command::Check, Command::Gc, Command::Status] {
            let (code, msg, _) = refusal("1.2.0", command);
            assert_eq!((code, msg), (1, format!("plugin version does not allow {command}")));
            assert_eq!(refusal("abc", command).0, 6);
            assert_eq!(refusal("1.1.0.0", command).0, 6);
        }
        assert_eq!(refusal("0.5.0", Command::Check).1, "incompatible CNI versions");
        assert_eq!(SpecVersion::of_config("0.4.0", Command::Check).unwrap(), SpecVersion::V040);
        assert_eq!(SpecVersion::of_config("1.1.0", Command::Gc).unwrap(), SpecVersion::V110);
    }

    #[test]
    fn c111_families_of_one_form() {
        assert!(SpecVersion::V030.is_akin_to(SpecVersion::V040));
        assert!(!SpecVersion::V040.is_akin_to(SpecVersion::V100));
        assert!(!SpecVersion::V020.is_akin_to(SpecVersion::V030));
    }
}
