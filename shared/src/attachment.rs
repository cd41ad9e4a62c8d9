//! What everything else is about: one interface of one container on one network.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A name that CNI does not allow, or that this implementation cannot keep.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NameError {
    /// CNI spec 1.1.0, "CNI_CONTAINERID": alphanumeric first, then alphanumeric, `_`, `.` or `-`.
    #[error("invalid characters in containerID")]
    ContainerId(String),
    /// CNI spec 1.1.0, network configuration `name`: the same characters as a container id.
    #[error("invalid characters found in network name")]
    NetworkCharacters(String),
    /// The network's records are a folder of that name.
    #[error("network name of {0} bytes is too long: its records are a folder of that name, 200 bytes at most")]
    NetworkLength(usize),
    /// IFNAMSIZ is 16, with the closing NUL (linux/if.h).
    #[error("interface name is too long")]
    InterfaceLength(String),
    /// The kernel refuses both (`dev_valid_name`).
    #[error("interface name is . or ..")]
    InterfaceDots(String),
    /// The kernel refuses `/`, `:` and white space (`dev_valid_name`).
    #[error("interface name contains / or : or whitespace characters")]
    InterfaceCharacters(String),
    /// An empty interface name.
    #[error("interface name is empty")]
    InterfaceEmpty,
}

/// `^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$`
fn is_cni_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(text: String) -> Result<Self, NameError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }
    };
}

name_type!(
    /// The name of a network: the `name` of its conflist.
    NetworkName
);
name_type!(
    /// CNI_CONTAINERID, of any length.
    ContainerId
);
name_type!(
    /// CNI_IFNAME: the interface inside the container.
    InterfaceName
);

impl FromStr for NetworkName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        if !is_cni_name(text) {
            return Err(NameError::NetworkCharacters(text.to_owned()));
        }
        if text.len() > 200 {
            return Err(NameError::NetworkLength(text.len()));
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for ContainerId {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        if is_cni_name(text) { Ok(Self(text.to_owned())) } else { Err(NameError::ContainerId(text.to_owned())) }
    }
}

impl FromStr for InterfaceName {
    type Err = NameError;
    fn from_str(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::InterfaceEmpty);
        }
        if text.len() > 15 {
            return Err(NameError::InterfaceLength(text.to_owned()));
        }
        if matches!(text, "." | "..") {
            return Err(NameError::InterfaceDots(text.to_owned()));
        }
        if text.contains(|c: char| matches!(c, '/' | ':' | '\0') || c.is_whitespace()) {
            return Err(NameError::InterfaceCharacters(text.to_owned()));
        }
        Ok(Self(text.to_owned()))
    }
}

/// One interface of one container on one network: the key of all state (CNI spec 0.4.0, "DEL").
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attachment {
    /// The network.
    pub network: NetworkName,
    /// The container.
    pub container: ContainerId,
    /// The interface in the container.
    pub ifname: InterfaceName,
}

impl Attachment {
    /// 13 hex digits of SHA-256(network NUL container NUL interface): a name of fixed length for a
    /// container id of any length.
    pub fn tag(&self) -> String {
        tag(self.network.as_str(), self.container.as_str(), self.ifname.as_str())
    }

    /// The name of the host end of this attachment's pair: `ov` and the [tag](Self::tag), 15 bytes.
    pub fn host_end(&self) -> String {
        format!("ov{}", self.tag())
    }
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "container {} interface {} on network {}", self.container, self.ifname, self.network)
    }
}

/// [`Attachment::tag`] of names as they stand in a record.
pub fn tag(network: &str, container: &str, ifname: &str) -> String {
    let mut hash = Sha256::new();
    for part in [network.as_bytes(), &[0], container.as_bytes(), &[0], ifname.as_bytes()] {
        hash.update(part);
    }
    hex(&hash.finalize()[..7])[..13].to_owned()
}

/// Lower-case hexadecimal digits of some bytes.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c8_container_ids_of_any_length() {
        assert!("a".parse::<ContainerId>().is_ok());
        assert!("A0_.-".parse::<ContainerId>().is_ok());
        assert!("x".repeat(300).parse::<ContainerId>().is_ok());
        for bad in ["", "_a", ".a", "-a", "a/b", "a b", "..", "é", "a\n"] {
            assert_eq!(bad.parse::<ContainerId>(), Err(NameError::ContainerId(bad.to_owned())));
        }
    }

    #[test]
    fn c9_interface_names_as_the_kernel_takes_them() {
        assert!("a".repeat(15).parse::<InterfaceName>().is_ok());
        assert!("eth0.100".parse::<InterfaceName>().is_ok());
        assert!(matches!("a".repeat(16).parse::<InterfaceName>(), Err(NameError::InterfaceLength(_))));
        for bad in [".", ".."] {
            assert!(matches!(bad.parse::<InterfaceName>(), Err(NameError::InterfaceDots(_))));
        }
        for bad in ["a/b", "a:b", "a b", "a\u{2003}b", "a\tb"] {
            assert!(matches!(bad.parse::<InterfaceName>(), Err(NameError::InterfaceCharacters(_))));
        }
    }

    #[test]
    fn c11_network_names_never_leave_their_folder() {
        for bad in ["", "..", "../x", "a/b", "ne%t1", "a b", ".hidden"] {
            assert!(matches!(bad.parse::<NetworkName>(), Err(NameError::NetworkCharacters(_))));
        }
        assert_eq!("x".repeat(300).parse::<NetworkName>(), Err(NameError::NetworkLength(300)));
    }

    #[test]
    fn host_ends_fit_and_differ_by_interface() {
        let attachment = |ifname: &str| Attachment {
            network: "net".parse().unwrap(),
            container: "c1".parse().unwrap(),
            ifname: ifname.parse().unwrap(),
        };
        assert_eq!(attachment("eth0").host_end().len(), 15);
        assert_ne!(attachment("eth0").host_end(), attachment("eth1").host_end());
        assert_eq!(attachment("eth0").host_end(), attachment("eth0").host_end());
    }
}
