//! Base64 (RFC 4648, section 4): WireGuard's keys as text, and the bytes in what Go writes as JSON.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes as text, with padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bytes = [group[0], group.get(1).copied().unwrap_or(0), group.get(2).copied().unwrap_or(0)];
        let bits = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        for at in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at > group.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

/// The bytes in a text, which may lack its padding; `None` if there are other characters, or bits beyond the last byte.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(letters.len() / 4 * 3 + 2);
    let (mut bits, mut held) = (0_u32, 0);
    for letter in letters.bytes() {
        let value = ALPHABET.iter().position(|&known| known == letter)?;
        bits = bits << 6 | value as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    (bits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10.
    #[test]
    fn the_examples_of_the_standard() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYmFy", "foobar")] {
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()), "{text}");
            assert_eq!(encode(bytes.as_bytes()), text);
        }
        assert_eq!(decode("+/8"), Some(vec![0xfb, 0xff]));
        assert_eq!((decode("a b"), decode("Zh==")), (None, None));
    }
}
