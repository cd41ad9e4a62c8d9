//! Comments that say whose a rule is, and device names that nft can be given.

use sha2::{Digest, Sha256};

use crate::NetworkName;
use crate::attachment::hex;

/// The longest comment that nft takes, in bytes (NFTNL_UDATA_COMMENT_MAXLEN).
const COMMENT: usize = 128;

/// Begins the comment of each rule and element in our tables.
pub const OWN: &str = "osvc:";

/// Begins the comment of each rule of ours in somebody else's chain.
pub const FOREIGN: &str = "osvc-cni:";

/// The comment of what belongs to a network: prefix and name. A name that does not fit is cut, and a
/// hash of it follows a `~`, which no name contains.
pub fn mark(prefix: &str, name: &NetworkName) -> String {
    let name = name.as_str();
    if prefix.len() + name.len() <= COMMENT {
        return format!("{prefix}{name}");
    }
    let hash = hex(&Sha256::digest(name.as_bytes())[..8]);
    // A name is ASCII: it can be cut anywhere.
    let room = COMMENT - prefix.len() - 1 - hash.len();
    format!("{prefix}{}~{hash}", &name[..room])
}

/// True for a device name that can be a name of a device (`dev_valid_name`) and that nft reads in
/// quotes as just that. A final `*` would be a wildcard, and one name that nft refuses is the whole
/// document refused.
pub fn is_device(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && !matches!(name, "." | "..")
        && name.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'*' | b'/' | b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_to_what_nft_takes_and_stays_unique() {
        let name = |last: &str| format!("{}{last}", "n".repeat(199)).parse::<NetworkName>().unwrap();
        let (a, b) = (mark(OWN, &name("a")), mark(OWN, &name("b")));
        assert_eq!((a.len(), b.len()), (128, 128));
        assert_ne!(a, b);
        assert_eq!(mark(OWN, &"web".parse().unwrap()), "osvc:web");
        let fits = "n".repeat(123).parse().unwrap();
        assert_eq!(mark(OWN, &fits), format!("osvc:{fits}"));
    }

    #[test]
    fn device_names_that_nft_cannot_be_given() {
        for good in ["obr_web", "br-1234567890ab", "eth0.100", "a"] {
            assert!(is_device(good), "{good}");
        }
        for bad in ["", ".", "..", "sixteen_bytes_xx", "a b", "a\"b", "a*", "a/b", "a:b", "a\\b", "é", "a\nb"] {
            assert!(!is_device(bad), "{bad}");
        }
    }
}
