//! WireGuard keys as text: 32 bytes in base64 (RFC 4648, section 4), as `wg pubkey` prints them.

use crate::netlink::wireguard::key::{LENGTH, from_text, to_text};

/// The key in a text; `None` if it is none: not 44 characters, of another alphabet, with bits behind the last byte, or
/// zero, by which the kernel means that there is no key.
pub fn parse(text: &str) -> Option<[u8; LENGTH]> {
    from_text(text).filter(|key| *key != [0; LENGTH])
}

/// A key as text.
pub fn text(key: &[u8; LENGTH]) -> String {
    to_text(key)
}

/// Public keys in records.
pub mod as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{LENGTH, parse};

    /// Writes a key as text.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<S: Serializer>(key: &[u8; LENGTH], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::text(key))
    }

    /// Reads one.
    ///
    /// # Errors
    /// The text is no key.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; LENGTH], D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| D::Error::custom("no public key"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_of_wg() {
        // RFC 7748, section 6.1: Alice's public key.
        let alice = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
        let key = parse(alice).unwrap();
        assert_eq!((key[0], key[1], key[31]), (0x85, 0x20, 0x6a));
        assert_eq!(text(&key), alice);
    }

    #[test]
    fn what_is_no_key() {
        let alice = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
        let bad = [
            "",
            "=",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            &alice[1..],
            &alice[..43],
            &alice.replace('/', "_"),
            &alice.replace("mo=", "mp="),
            &format!("{alice}\n"),
            &format!(" {alice}"),
            &format!("A{alice}"),
            "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTé=",
        ];
        for bad in bad {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn there_and_back(key: [u8; 32], other in "[A-Za-z0-9+/=]{40,46}|.{0,50}") {
            prop_assume!(key != [0; 32]);
            prop_assert_eq!(text(&key).len(), 44);
            prop_assert_eq!(parse(&text(&key)), Some(key));
            if let Some(key) = parse(&other) {
                prop_assert_eq!(text(&key), other);
            }
        }
    }
}
