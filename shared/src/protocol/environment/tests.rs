use super::*;
use crate::protocol::testing::environment;

fn read(command: Command, pairs: &[(&str, &str)]) -> Result<Variables, Error> {
    Variables::read(Some(command), &environment(pairs))
}

fn refusal(command: Command, pairs: &[(&str, &str)]) -> (u32, String, Option<String>) {
    let error = read(command, pairs).unwrap_err();
    (error.code(), error.to_string(), error.details())
}

const FULL: [(&str, &str); 4] =
    [("CNI_CONTAINERID", "c1"), ("CNI_NETNS", "/run/netns/x"), ("CNI_IFNAME", "eth0"), ("CNI_PATH", "/opt/cni/bin")];

#[test]
fn c3_verbs_are_case_sensitive() {
    for command in Command::ALL {
        assert_eq!(command.as_str().parse::<Command>().unwrap(), command);
    }
    let error = "add".parse::<Command>().unwrap_err();
    assert_eq!((error.code(), error.to_string()), (4, "unknown CNI_COMMAND: add".to_owned()));
}

#[test]
fn c5_c6_what_each_verb_needs() {
    let needs = [
        (Command::Add, vec!["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"]),
        (Command::Check, vec!["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"]),
        (Command::Del, vec!["CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"]),
        (Command::Gc, vec!["CNI_PATH"]),
        (Command::Status, vec!["CNI_PATH"]),
    ];
    for (command, needed) in needs {
        let (code, msg, _) = refusal(command, &[]);
        assert_eq!((code, msg), (4, format!("required env variables [{}] missing", needed.join(","))));
        for (name, _) in FULL {
            let pairs: Vec<_> = FULL.into_iter().filter(|(other, _)| *other != name).collect();
            assert_eq!(read(command, &pairs).is_err(), needed.contains(&name), "{command} without {name}");
            let empty: Vec<_> = FULL.into_iter().map(|(n, v)| (n, if n == name { "" } else { v })).collect();
            assert_eq!(read(command, &empty).is_err(), needed.contains(&name), "{command} with empty {name}");
        }
    }
}

#[test]
fn c7_all_missing_in_one_error() {
    let (code, msg, details) = refusal(Command::Add, &[("CNI_CONTAINERID", "c1")]);
    assert_eq!((code, msg.as_str()), (4, "required env variables [CNI_NETNS,CNI_IFNAME,CNI_PATH] missing"));
    assert!(details.unwrap().contains("ADD"));
}

#[test]
fn c8_c9_bad_values() {
    let with = |name: &str, value: &str| {
        let pairs: Vec<_> = FULL.into_iter().map(|(n, v)| (n, if n == name { value } else { v })).collect();
        refusal(Command::Add, &pairs)
    };
    let details = Some("a/b".to_owned());
    assert_eq!(with("CNI_CONTAINERID", "a/b"), (4, "invalid characters in containerID".into(), details));
    let cases = [
        ("a234567890123456", "interface name is too long"),
        (".", "interface name is . or .."),
        ("..", "interface name is . or .."),
        ("a/b", "interface name contains / or : or whitespace characters"),
        ("a:b", "interface name contains / or : or whitespace characters"),
        ("a b", "interface name contains / or : or whitespace characters"),
    ];
    for (value, message) in cases {
        let (code, msg, _) = with("CNI_IFNAME", value);
        assert_eq!((code, msg.as_str()), (4, message));
    }
    let long = with("CNI_IFNAME", "a234567890123456").2.unwrap();
    assert_eq!(long, "interface name should be less than 16 characters");
}

#[test]
fn c10_invalid_before_missing_and_only_where_needed() {
    assert_eq!(refusal(Command::Add, &[("CNI_CONTAINERID", "_")]).1, "invalid characters in containerID");
    let both = [("CNI_CONTAINERID", "_"), ("CNI_IFNAME", ".")];
    assert_eq!(refusal(Command::Del, &both).1, "invalid characters in containerID");
    assert!(read(Command::Status, &[("CNI_CONTAINERID", "_"), ("CNI_IFNAME", "."), ("CNI_PATH", "/x")]).is_ok());
}

#[test]
fn c17_plugins_are_found_in_order_and_names_do_not_leave_the_path() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::create_dir(one.path().join("host-local")).unwrap();
    std::fs::write(two.path().join("host-local"), "").unwrap();
    let path = PluginPath::new(format!("{}::{}", one.path().display(), two.path().display()));
    assert_eq!(path.find("host-local").unwrap(), two.path().join("host-local"), "a folder is no plugin");
    std::fs::write(one.path().join("dhcp"), "").unwrap();
    std::fs::write(two.path().join("dhcp"), "").unwrap();
    assert_eq!(path.find("dhcp").unwrap(), one.path().join("dhcp"), "the first one wins");
    let error = path.find("x").unwrap_err();
    let expected = format!("failed to find plugin \"x\" in path [{} {}]", one.path().display(), two.path().display());
    assert_eq!((error.code(), error.to_string()), (7, expected));
    for name in ["../x", "/bin/sh", "a/b", "", "..", "."] {
        assert!(matches!(path.find(name), Err(Error::PluginName(_))), "{name}");
    }
}

#[test]
fn c18_c19_own_netns_is_refused_unless_overridden() {
    let with = |netns: &str, value: &str| {
        let mut pairs = FULL.to_vec();
        pairs[1].1 = netns;
        pairs.push(("CNI_NETNS_OVERRIDE", value));
        read(Command::Add, &pairs).unwrap().refuse_own_netns()
    };
    for value in ["", "0", "false", "yes"] {
        let error = with("/proc/self/ns/net", value).unwrap_err();
        assert_eq!(error.code(), 8);
        assert_eq!(error.to_string(), "plugin's netns and netns from CNI_NETNS should not be the same");
    }
    for value in ["1", "true", "TRUE"] {
        assert!(with("/proc/self/ns/net", value).is_ok());
    }
    assert!(with("/nowhere", "").is_ok(), "a path that cannot be opened is no matter here");
    assert!(with("/etc/passwd", "").is_ok());
    assert!(with("/proc/self/ns/mnt", "").is_ok());
}
