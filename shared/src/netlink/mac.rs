//! Ethernet addresses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An Ethernet address. In records it is text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Mac(pub [u8; 6]);

impl From<Mac> for String {
    fn from(mac: Mac) -> Self {
        mac.to_string()
    }
}

impl TryFrom<String> for Mac {
    type Error = MacError;

    fn try_from(text: String) -> Result<Self, MacError> {
        text.parse()
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Text that is no Ethernet address.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is no Ethernet address of the form 02:00:00:00:00:01")]
pub struct MacError(pub String);

impl FromStr for Mac {
    type Err = MacError;

    /// Six octets of two hexadecimal digits, separated by `:` or `-`.
    fn from_str(text: &str) -> Result<Self, MacError> {
        let wrong = || MacError(text.to_owned());
        let mut octets = [0; 6];
        let mut parts = text.split(if text.contains('-') { '-' } else { ':' });
        for octet in &mut octets {
            let part = parts.next().filter(|part| part.len() == 2 && !part.starts_with('+')).ok_or_else(wrong)?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        if parts.next().is_none() { Ok(Self(octets)) } else { Err(wrong()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn br17_mac_addresses_as_text() {
        let mac = Mac([0x0a, 0x58, 10, 22, 0, 1]);
        assert_eq!("0a:58:0a:16:00:01".parse(), Ok(mac));
        assert_eq!("0A-58-0A-16-00-01".parse(), Ok(mac));
        assert_eq!(mac.to_string(), "0a:58:0a:16:00:01");
        for bad in ["", "zz", "0a:58:0a:16:00", "0a:58:0a:16:00:01:02", "0a:58:0a:16:00:1", "+a:58:0a:16:00:01"] {
            assert_eq!(bad.parse::<Mac>(), Err(MacError(bad.to_owned())));
        }
    }
}
