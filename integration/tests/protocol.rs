//! The protocol as a runtime meets it: the built binaries, their environment, stdin, stdout and exit code.
//!
//! The binaries are looked for in OSVC_BIN, or in `bin/` of the workspace. No namespaces are needed: what is
//! asked here is refused before anything is made, or touches a state folder of its own only.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cni_plugin::reply::{ErrorReply, VersionReply};
use serde_json::{Value, json};

const PLUGINS: [&str; 4] = ["osvc-ipam", "osvc-bridge", "osvc-routed", "osvc-portmap"];
const VERSIONS: [&str; 7] = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"];
const NOT_JSON: &str = "stdin has to be one JSON object, the network configuration";

/// The variables of a full call. The netns is one that nobody has.
const VARIABLES: [(&str, &str); 4] = [
    ("CNI_CONTAINERID", "c1"),
    ("CNI_NETNS", "/run/netns/nobody-has-this"),
    ("CNI_IFNAME", "eth0"),
    ("CNI_PATH", "/opt/cni/bin"),
];

fn binary(plugin: &str) -> PathBuf {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../bin");
    let path = std::env::var_os("OSVC_BIN").map_or_else(default, PathBuf::from).join(plugin);
    assert!(path.is_file(), "{} is missing: `make build` makes it, or set OSVC_BIN", path.display());
    path
}

/// One call of a plugin, with a state folder of its own.
struct Call {
    process: Command,
    state: tempfile::TempDir,
}

#[derive(Debug)]
struct Answer {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Call {
    fn bare(plugin: &str) -> Self {
        let state = tempfile::tempdir().unwrap();
        let mut process = Command::new(binary(plugin));
        process.env_clear();
        process.env("OSVC_STATE_DIR", state.path().join("state")).env("OSVC_RUN_DIR", state.path().join("run"));
        Self { process, state }
    }

    fn new(plugin: &str, verb: &str) -> Self {
        let mut call = Self::bare(plugin);
        call.process.env("CNI_COMMAND", verb).envs(VARIABLES);
        call
    }

    fn env(mut self, name: &str, value: &str) -> Self {
        self.process.env(name, value);
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.process.env_remove(name);
        self
    }

    fn stdin(&mut self, stdin: impl AsRef<[u8]>) -> Answer {
        self.process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.process.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let stdin = stdin.as_ref().to_vec();
        // A plugin that refuses its environment does not read stdin: EPIPE is no matter.
        let feeding = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
        let output = child.wait_with_output().unwrap();
        feeding.join().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Answer { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The error document; nothing was made.
    fn refused(mut self, stdin: impl AsRef<[u8]>) -> Value {
        let answer = self.stdin(stdin);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        let made = std::fs::read_dir(self.state.path()).unwrap().count();
        assert_eq!(made, 0, "something was made: {answer:?}");
        serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: not one document: {answer:?}"))
    }
}

fn config(version: &str) -> String {
    json!({"cniVersion": version, "name": "net", "type": "osvc-ipam",
           "ipam": {"type": "osvc-ipam", "subnet": "10.99.0.0/24"}})
    .to_string()
}

fn error(version: &str, code: u32, msg: &str, details: Option<&str>) -> Value {
    let mut document = json!({"cniVersion": version, "code": code, "msg": msg});
    if let Some(details) = details {
        document["details"] = details.into();
    }
    document
}

#[test]
fn c4_sk10_the_banner_goes_to_stderr_and_stdin_is_left_alone() {
    for plugin in PLUGINS {
        for mut call in [Call::bare(plugin), Call::bare(plugin).env("CNI_COMMAND", "")] {
            let state = call.state.path().to_owned();
            // A pipe that nobody closes: reading it would never end.
            let (reader, _writer) = std::io::pipe().unwrap();
            let output = call.process.stdin(reader).output().unwrap();
            assert_eq!(output.status.code(), Some(0));
            assert!(output.stdout.is_empty());
            let expected = format!(
                "CNI {plugin} plugin v{}\nCNI protocol versions supported: {}\n",
                env!("CARGO_PKG_VERSION"),
                VERSIONS.join(", ")
            );
            assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
            assert_eq!(std::fs::read_dir(state).unwrap().count(), 0);
        }
    }
}

#[test]
fn c23_c43_sk8_version_needs_and_reads_nothing() {
    let line = format!("{}\n", json!({"cniVersion": "1.1.0", "supportedVersions": VERSIONS}));
    for plugin in PLUGINS {
        let probe = |name: &str| Call::bare(plugin).env("CNI_COMMAND", "VERSION").env(name, "dummy");
        let dummy = probe("CNI_NETNS").env("CNI_IFNAME", "dummy").env("CNI_PATH", "dummy").env("CNI_CONTAINERID", "");
        for mut call in [Call::bare(plugin).env("CNI_COMMAND", "VERSION"), dummy] {
            let (reader, _writer) = std::io::pipe().unwrap();
            let output = call.process.stdin(reader).output().unwrap();
            assert_eq!(output.status.code(), Some(0));
            let stdout = String::from_utf8(output.stdout).unwrap();
            assert_eq!(stdout, line);
            assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
            assert_eq!(std::fs::read_dir(call.state.path()).unwrap().count(), 0);
            let read: VersionReply = serde_json::from_str(&stdout).unwrap();
            let versions: Vec<_> = read.supported_versions.iter().map(ToString::to_string).collect();
            assert_eq!(versions, VERSIONS);
        }
        let answer = Call::bare(plugin).env("CNI_COMMAND", "VERSION").stdin(r#"{"cniVersion": "1.0.0"}"#);
        assert_eq!(answer.stdout, line);
    }
}

#[test]
fn c5_c6_c7_sk1_missing_variables_are_named_at_once() {
    let needs = [
        ("ADD", vec!["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"]),
        ("CHECK", vec!["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_PATH"]),
        ("DEL", vec!["CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH"]),
        ("STATUS", vec!["CNI_PATH"]),
        ("GC", vec!["CNI_PATH"]),
    ];
    let missing = |verb: &str, names: &[&str]| {
        let msg = format!("required env variables [{}] missing", names.join(","));
        error("1.1.0", 4, &msg, Some(&format!("the runtime has to set them for {verb}")))
    };
    for plugin in PLUGINS {
        for (verb, names) in &needs {
            let none = Call::bare(plugin).env("CNI_COMMAND", verb);
            assert_eq!(none.refused(config("1.1.0")), missing(verb, names));
            for name in names {
                let expected = missing(verb, &[*name]);
                assert_eq!(Call::new(plugin, verb).without(name).refused(config("1.1.0")), expected);
                assert_eq!(Call::new(plugin, verb).env(name, "").refused(config("1.1.0")), expected, "empty");
            }
        }
        let two = Call::new(plugin, "ADD").without("CNI_PATH").without("CNI_IFNAME");
        assert_eq!(two.refused(config("1.1.0")), missing("ADD", &["CNI_IFNAME", "CNI_PATH"]));
    }
}

#[test]
fn c8_c9_c10_sk2_sk3_bad_names_in_the_environment() {
    const CHARACTERS: &str = "interface name contains / or : or whitespace characters";
    let cases = [
        ("CNI_CONTAINERID", "_c", "invalid characters in containerID", "_c"),
        ("CNI_CONTAINERID", "../../etc/x", "invalid characters in containerID", "../../etc/x"),
        ("CNI_CONTAINERID", "c 1", "invalid characters in containerID", "c 1"),
        (
            "CNI_IFNAME",
            "eth0eth0eth0eth0",
            "interface name is too long",
            "interface name should be less than 16 characters",
        ),
        ("CNI_IFNAME", ".", "interface name is . or ..", "."),
        ("CNI_IFNAME", "..", "interface name is . or ..", ".."),
        ("CNI_IFNAME", "a/b", CHARACTERS, "a/b"),
        ("CNI_IFNAME", "a:b", CHARACTERS, "a:b"),
        ("CNI_IFNAME", "a b", CHARACTERS, "a b"),
    ];
    for plugin in PLUGINS {
        for verb in ["ADD", "DEL", "CHECK"] {
            for (name, value, msg, details) in cases {
                let call = Call::new(plugin, verb).env(name, value);
                assert_eq!(call.refused(config("1.0.0")), error("1.1.0", 4, msg, Some(details)));
            }
            // The first invalid one wins over what is missing.
            let call = Call::new(plugin, verb).env("CNI_CONTAINERID", "_c").env("CNI_IFNAME", ".").without("CNI_PATH");
            let expected = error("1.1.0", 4, "invalid characters in containerID", Some("_c"));
            assert_eq!(call.refused(config("1.0.0")), expected);
        }
    }
}

#[test]
fn c3_sk9_unknown_verbs() {
    for plugin in PLUGINS {
        for verb in ["add", "NOPE", "ADD "] {
            let expected = error(
                "1.0.0",
                4,
                &format!("unknown CNI_COMMAND: {verb}"),
                Some("one of ADD, DEL, CHECK, STATUS, GC, VERSION"),
            );
            assert_eq!(Call::new(plugin, verb).refused(config("1.0.0")), expected);
        }
        assert_eq!(Call::new(plugin, "NOPE").refused("{}")["code"], 7, "the configuration comes first");
    }
}

#[test]
fn c11_c12_c22_sk5_bad_configurations() {
    const BAD: &str = "error unmarshall network config: ";
    const NAME: &str = "invalid characters found in network name";
    let long = "x".repeat(300);
    let too_long = "network name of 300 bytes is too long: its records are a folder of that name, 200 bytes at most";
    let mut cases: Vec<(Vec<u8>, Value)> = Vec::new();
    let mut case = |stdin: &[u8], document: Value| cases.push((stdin.to_vec(), document));
    for (stdin, problem) in [
        (&b""[..], "EOF while parsing a value at line 1 column 0"),
        (b"{", "EOF while parsing an object at line 1 column 1"),
        (br#"{"name":"net"#, "EOF while parsing a string at line 1 column 12"),
        (b"{\"name\":\"net\",\n  // comment\n}", "key must be a string at line 2 column 3"),
        (br#"{"name":"net"}x"#, "trailing characters at line 1 column 15"),
        (br#"{"name":"net"}{"name":"net"}"#, "trailing characters at line 1 column 15"),
        (b"[]", "a list instead of an object, at line 1 column 1"),
        (b"null", "null instead of an object, at line 1 column 1"),
        (b"\"net\"", "a string instead of an object, at line 1 column 1"),
        (b"\xef\xbb\xbf{\"name\":\"net\"}", "it starts with a byte order mark, at line 1 column 1"),
        (b"{\"name\":\"\xff\"}", "invalid unicode code point at line 1 column 10"),
    ] {
        case(stdin, error("1.1.0", 6, &format!("{BAD}{problem}"), Some(NOT_JSON)));
    }
    case(&b" ".repeat(10 << 20), error("1.1.0", 6, &format!("{BAD}more than 8388608 bytes on stdin"), Some(NOT_JSON)));
    let deep = format!("{BAD}recursion limit exceeded at line 1 column 128");
    case(&b"[".repeat(1 << 20), error("1.1.0", 6, &deep, Some(NOT_JSON)));
    let number = format!("{BAD}name: invalid type: integer `5`, expected a string");
    case(br#"{"name": 5, "cniVersion": "1.0.0"}"#, error("1.0.0", 6, &number, None));
    let number = format!("{BAD}cniVersion: invalid type: integer `1`, expected a string");
    case(br#"{"name": "net", "cniVersion": 1}"#, error("1.1.0", 6, &number, None));
    let needs = Some("the network configuration needs a \"name\"");
    for stdin in [&br#"{}"#[..], br#"{"name": ""}"#, br#"{"name": null}"#] {
        case(stdin, error("0.1.0", 7, "missing network name", needs));
    }
    for name in ["ne%t1", "../x", "a/b", "..", "a b", "_a"] {
        let stdin = json!({"cniVersion": "1.0.0", "NAME": name}).to_string();
        case(stdin.as_bytes(), error("1.0.0", 7, NAME, Some(name)));
    }
    let stdin = json!({"cniVersion": "1.0.0", "name": long}).to_string();
    case(stdin.as_bytes(), error("1.0.0", 7, too_long, None));
    for plugin in PLUGINS {
        for verb in ["ADD", "DEL", "CHECK", "STATUS", "GC"] {
            for (stdin, expected) in &cases {
                let shown = String::from_utf8_lossy(&stdin[..stdin.len().min(80)]).into_owned();
                assert_eq!(Call::new(plugin, verb).refused(stdin), *expected, "{plugin} {verb} {shown}");
            }
        }
    }
}

#[test]
fn c12_sk11_unreadable_stdin() {
    for plugin in PLUGINS {
        let mut call = Call::new(plugin, "ADD");
        let output = call.process.stdin(File::open("/").unwrap()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(document, error("1.1.0", 5, "error reading from stdin: Is a directory (os error 21)", None));
    }
}

#[test]
fn c41_c42_sk4_sk5_sk6_versions() {
    let supported = r#"["0.1.0" "0.2.0" "0.3.0" "0.3.1" "0.4.0" "1.0.0" "1.1.0"]"#;
    let unknown = |version: &str| {
        let details = format!("config is {version:?}, plugin supports {supported}");
        error("1.1.0", 1, "incompatible CNI versions", Some(&details))
    };
    let old = |verb: &str, version: &str, since: &str| {
        let details = format!("config is {version:?}, {verb} is known since {since:?}");
        error(version, 1, &format!("config version does not allow {verb}"), Some(&details))
    };
    for plugin in PLUGINS {
        for version in ["1.1", "1.2.0", "0.5.0", "abc"] {
            for verb in ["ADD", "DEL"] {
                assert_eq!(Call::new(plugin, verb).refused(config(version)), unknown(version));
            }
        }
        for version in ["0.1.0", "0.2.0", "0.3.0", "0.3.1"] {
            assert_eq!(Call::new(plugin, "CHECK").refused(config(version)), old("CHECK", version, "0.4.0"));
        }
        for verb in ["GC", "STATUS"] {
            for version in &VERSIONS[..6] {
                assert_eq!(Call::new(plugin, verb).refused(config(version)), old(verb, version, "1.1.0"));
            }
            assert_eq!(Call::new(plugin, verb).refused(config("")), old(verb, "0.1.0", "1.1.0"));
        }
        for verb in ["CHECK", "GC", "STATUS"] {
            let newer = error(
                "1.1.0",
                1,
                &format!("plugin version does not allow {verb}"),
                Some("config is \"1.2.0\", plugin supports up to \"1.1.0\""),
            );
            assert_eq!(Call::new(plugin, verb).refused(config("1.2.0")), newer);
            let msg = "invalid version \"abc\": not three numbers with dots between them";
            assert_eq!(Call::new(plugin, verb).refused(config("abc")), error("1.1.0", 6, msg, None));
        }
        assert_eq!(Call::new(plugin, "CHECK").refused(config("0.5.0")), unknown("0.5.0"));
    }
}

#[test]
fn c19_the_plugins_own_netns() {
    let expected = error(
        "1.0.0",
        8,
        "plugin's netns and netns from CNI_NETNS should not be the same",
        Some("/proc/self/ns/net is the namespace that the plugin runs in"),
    );
    for plugin in PLUGINS {
        for verb in ["ADD", "CHECK"] {
            let call = Call::new(plugin, verb).env("CNI_NETNS", "/proc/self/ns/net");
            assert_eq!(call.refused(config("1.0.0")), expected);
        }
    }
}

#[test]
fn c2_c35_c70_sk7_success_without_an_answer_is_silent() {
    let valid = |list: Value| {
        let mut config: Value = serde_json::from_str(&config("1.1.0")).unwrap();
        config["cni.dev/valid-attachments"] = list;
        config.to_string()
    };
    let silent = |mut call: Call, stdin: String| {
        let answer = call.stdin(stdin);
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), ""), "{answer:?}");
    };
    for plugin in ["osvc-ipam", "osvc-portmap"] {
        let call = |verb| Call::new(plugin, verb);
        silent(call("STATUS"), config("1.1.0"));
        silent(call("GC"), valid(json!(null)));
        silent(call("GC"), valid(json!([])));
        silent(call("GC"), valid(json!([{"containerID": "c1", "ifname": "eth0"}])));
        silent(call("GC"), config("1.1.0"));
        for version in VERSIONS {
            silent(call("DEL"), config(version));
        }
        silent(call("DEL").without("CNI_NETNS"), config("1.0.0"));
        silent(call("DEL").env("CNI_NETNS", "/proc/self/ns/net"), config("1.0.0"));
        silent(call("DEL").env("CNI_NETNS", "/etc/passwd"), config("1.0.0"));
        silent(call("DEL").env("CNI_ARGS", "IP=banana;;FOO;=;"), config("1.0.0"));
    }
}

#[test]
fn c30_c31_errors_are_one_document_that_others_can_read() {
    for plugin in PLUGINS {
        let answer = Call::new(plugin, "ADD").stdin(r#"{"cniVersion": "0.4.0", "name": "ne%t1"}"#);
        let read: ErrorReply<'_> = serde_json::from_str(&answer.stdout).unwrap();
        assert_eq!(read.cni_version.to_string(), "0.4.0");
        assert_eq!((read.code, read.msg), (7, "invalid characters found in network name"));
        assert_eq!(read.details, "ne%t1");
        assert_eq!(answer.stdout.lines().count(), 1);
    }
}

#[test]
fn logs_go_to_stderr_and_never_hold_the_environment_or_stdin() {
    for plugin in PLUGINS {
        for level in ["error", "warn", "info", "debug", "trace", "nonsense", ""] {
            let mut call = Call::new(plugin, "ADD").env("OSVC_LOG", level).env("SECRET", "hunter2");
            let answer = call.stdin(r#"{"cniVersion": "1.0.0", "name": "ne%t1", "password": "hunter2"}"#);
            assert!(answer.stderr.contains(&format!("{plugin}: ")), "{answer:?}");
            assert!(answer.stderr.contains("invalid characters found in network name (ne%t1)"), "{answer:?}");
            assert!(!answer.stderr.contains("hunter2"), "{answer:?}");
        }
        let mut warned = Call::new(plugin, "ADD").env("CNI_NETNS", "/proc/self/ns/net").env("CNI_NETNS_OVERRIDE", "1");
        let state = warned.state.path().join("state");
        let answer = warned.stdin(r#"{"cniVersion": "1.0.0", "name": "net", "ipam": 5}"#);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert!(answer.stderr.contains(&format!("OSVC_STATE_DIR is set: using {}", state.display())), "{answer:?}");
    }
}

#[test]
fn a_stdout_that_takes_nothing_is_a_failure_and_no_panic() {
    for plugin in PLUGINS {
        for verb in ["VERSION", "ADD"] {
            let mut call = Call::new(plugin, verb).env("CNI_CONTAINERID", "_");
            let full = File::options().write(true).open("/dev/full").unwrap();
            let output = call.process.stdin(Stdio::null()).stdout(full).output().unwrap();
            assert_eq!(output.status.code(), Some(1));
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let mut call = Call::new(plugin, verb).env("CNI_CONTAINERID", "_");
            let output = call.process.stdin(Stdio::null()).stdout(writer).output().unwrap();
            assert_eq!(output.status.code(), Some(1));
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert!(stderr.contains("cannot write to stdout: Broken pipe"), "{stderr}");
            assert!(!stderr.contains("panic"), "{stderr}");
        }
    }
}
