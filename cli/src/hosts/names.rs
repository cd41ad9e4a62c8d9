//! Names of keys, as resolvers know names.

use osvc_cni::ipam::key::{Key, KeySource};

/// The longest label and the longest name of RFC 1035.
const LABEL: usize = 63;
pub const NAME: usize = 253;

/// The host name of a key: its last part first, as names go from the small to the large. `web`, `prod/web` → `web.prod`,
/// OpenSVC's `test/svc/web!ip#0` → `web.svc.test`.
pub fn host_name(key: &Key) -> Option<String> {
    let text = match key.source {
        KeySource::Osvc => key.text.rsplit_once('!').map_or(key.text.as_str(), |(object, _)| object),
        _ => &key.text,
    };
    let labels: Vec<String> = text.split('/').rev().flat_map(|part| part.split('.')).filter_map(label).collect();
    let name = labels.join(".");
    (!name.is_empty() && name.len() <= NAME).then_some(name)
}

/// A label of RFC 1123: letters, digits and inner hyphens, which stand for whatever else there is.
pub fn label(text: &str) -> Option<String> {
    let replaced: String =
        text.to_lowercase().chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
    let cut: String = replaced.trim_matches('-').chars().take(LABEL).collect();
    let label = cut.trim_end_matches('-');
    (!label.is_empty()).then(|| label.to_owned())
}

/// What a name means to whoever looks it up, whatever a hosts file says, or should (RFC 6761, inet_aton(3)).
pub fn meaning(name: &str) -> Option<&'static str> {
    let loopback = ["localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"];
    if loopback.contains(&name) || name.ends_with(".localhost") {
        return Some("this host itself");
    }
    let is_number = |part: &str| match part.strip_prefix("0x") {
        Some(digits) => digits.chars().all(|digit| digit.is_ascii_hexdigit()),
        None => part.chars().all(|digit| digit.is_ascii_digit()),
    };
    let is_address = name.split('.').count() <= 4 && name.split('.').all(is_number);
    is_address.then_some("an address")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: &str, text: &str) -> Key {
        Key { source: KeySource::from_name(source).unwrap(), text: text.to_owned() }
    }

    #[test]
    fn keys_become_names() {
        for (source, text, name) in [
            ("podman", "web", "web"),
            ("k8s", "prod/web", "web.prod"),
            ("osvc", "test/svc/web!ip#0", "web.svc.test"),
            ("osvc", "web!ip#0", "web"),
            ("nomad", "default/job/group", "group.job.default"),
            ("podman", "My_Web.v1", "my-web.v1"),
            ("podman", "-é-x-", "x"),
        ] {
            assert_eq!(host_name(&key(source, text)).as_deref(), Some(name), "{text}");
        }
        assert_eq!(host_name(&key("podman", "\u{1b}[2J")).as_deref(), Some("2j"), "nothing that a terminal obeys");
        assert_eq!(host_name(&key("podman", "é/!")), None);
        assert_eq!(host_name(&key("podman", &"x".repeat(99))).unwrap().len(), 63);
        assert_eq!(host_name(&key("k8s", &"abc/".repeat(99))), None);
    }
}
