//! WireGuard's keys: 32 bytes of Curve25519, as text in base64 (`wg genkey`, `wg pubkey`).

use std::fmt;
use std::fs::File;
use std::io::{self, Read};

use crate::base64;

/// Bytes of a key.
pub const LENGTH: usize = 32;
/// Characters of a key as text: the last one is `=`.
const TEXT: usize = 44;

/// A private key. It shows itself to nobody but the one who asks for it by name.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateKey([u8; LENGTH]);

impl PrivateKey {
    /// A key of these bytes, clamped as the kernel does (RFC 7748, 5), so that it compares with what the kernel tells.
    pub fn new(mut bytes: [u8; LENGTH]) -> Self {
        bytes[0] &= 0xf8;
        bytes[LENGTH - 1] = bytes[LENGTH - 1] & 0x7f | 0x40;
        Self(bytes)
    }

    /// A new key.
    ///
    /// # Errors
    /// There are no random bytes: /dev is not there.
    pub fn generate() -> io::Result<Self> {
        let mut bytes = [0; LENGTH];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self::new(bytes))
    }

    /// The key itself.
    pub fn expose(&self) -> &[u8; LENGTH] {
        &self.0
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(…)")
    }
}

/// A key as text, of 44 characters.
pub fn to_text(key: &[u8; LENGTH]) -> String {
    base64::encode(key)
}

/// The key that a text is; none if it is no key: of another length, other characters, bits beyond the last byte.
pub fn from_text(text: &str) -> Option<[u8; LENGTH]> {
    let letters = text.strip_suffix('=').filter(|letters| letters.len() == TEXT - 1 && !letters.ends_with('='))?;
    base64::decode(letters)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_as_text() {
        let key: [u8; LENGTH] = std::array::from_fn(|n| n as u8);
        let text = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        assert_eq!(to_text(&key), text);
        assert_eq!(from_text(text), Some(key));
        assert_eq!(from_text(&to_text(&[0xff; LENGTH])), Some([0xff; LENGTH]));
        let long = format!("{text}=");
        for bad in ["", "=", &text[1..], &text[..43], &long, &text.replace('8', "9"), &text.replace('A', " ")] {
            assert_eq!(from_text(bad), None, "{bad}");
        }
    }

    #[test]
    fn private_keys_are_clamped_and_not_shown() {
        let key = PrivateKey::new([0xff; LENGTH]);
        assert_eq!((key.expose()[0], key.expose()[31]), (0xf8, 0x7f));
        assert_eq!(format!("{key:?}"), "PrivateKey(…)");
        assert_ne!(PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
    }
}
