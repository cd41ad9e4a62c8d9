use std::cell::RefCell;

use serde_json::json;

use super::*;
use crate::protocol::testing::{attachment, call, environment};
use crate::protocol::{Interface, Ip, ValidAttachments};

/// A plugin that notes what it is asked and answers as told.
#[derive(Default)]
struct Recorder {
    asked: RefCell<Vec<String>>,
    result: CniResult,
}

impl Recorder {
    fn note(&self, verb: &str, call: &Call, attachment: Option<&Attachment>) -> Result<(), crate::Error> {
        let about = attachment.map(|a| format!(" {}/{}", a.container, a.ifname)).unwrap_or_default();
        self.asked.borrow_mut().push(format!("{verb} {}{about}", call.network));
        match call.args.get("FAIL") {
            Some(verbs) if verbs.contains(verb) => {
                Err(Error::Delegate { code: 111, msg: "told to".into(), details: None }.into())
            }
            _ => Ok(()),
        }
    }
}

impl Plugin for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }
    fn add(&self, call: &Call, attachment: &Attachment) -> Result<CniResult, crate::Error> {
        self.note("ADD", call, Some(attachment)).map(|()| self.result.clone())
    }
    fn del(&self, call: &Call, attachment: &Attachment) -> Result<(), crate::Error> {
        self.note("DEL", call, Some(attachment))
    }
    fn check(&self, call: &Call, attachment: &Attachment) -> Result<(), crate::Error> {
        self.note("CHECK", call, Some(attachment))
    }
    fn status(&self, call: &Call) -> Result<(), crate::Error> {
        self.note("STATUS", call, None)
    }
    fn gc(&self, call: &Call) -> Result<(), crate::Error> {
        self.note("GC", call, None)
    }
}

struct Untouched;

impl Read for Untouched {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        panic!("stdin was read");
    }
}

const VARIABLES: [(&str, &str); 4] =
    [("CNI_CONTAINERID", "c1"), ("CNI_NETNS", "/nowhere"), ("CNI_IFNAME", "eth0"), ("CNI_PATH", "/opt/cni/bin")];

/// The variables of a full call, with some of them other or more.
fn variables<'a>(verb: &'a str, other: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let all = other.iter().copied().chain([("CNI_COMMAND", verb)]).chain(VARIABLES);
    all.collect()
}

/// What the process would print: the document, and whether it is an error's.
fn ask(plugin: &Recorder, verb: &str, other: &[(&str, &str)], stdin: &str) -> Result<Option<Value>, Value> {
    let document = |version, code, msg: String, details| refusal(version, code, &msg, details);
    match prepare(&environment(&variables(verb, other)), &mut stdin.as_bytes()) {
        Ok(Task::Call(call, job)) => serve(plugin, &call, &job)
            .map_err(|error| document(Some(call.version), error.code(), error.to_string(), error.details())),
        Ok(Task::Version) => Ok(Some(versions())),
        Ok(Task::Banner) => Ok(None),
        Err(Refusal { version, error }) => Err(document(version, error.code(), error.to_string(), error.details())),
    }
}

fn refused(verb: &str, other: &[(&str, &str)], stdin: &str) -> Value {
    let plugin = Recorder::default();
    let document = ask(&plugin, verb, other, stdin).unwrap_err();
    assert!(plugin.asked.borrow().is_empty(), "nothing is done before everything is validated");
    document
}

fn config(version: &str) -> String {
    json!({"cniVersion": version, "name": "net", "type": "osvc-ipam"}).to_string()
}

#[test]
fn c35_each_verb_reaches_the_plugin_and_only_add_answers() {
    let plugin = Recorder::default();
    for verb in ["ADD", "DEL", "CHECK", "STATUS", "GC"] {
        let answer = ask(&plugin, verb, &[], &config("1.1.0")).unwrap();
        assert_eq!(answer, (verb == "ADD").then(|| json!({"cniVersion": "1.1.0"})), "{verb}");
    }
    let expected = ["ADD net c1/eth0", "DEL net c1/eth0", "CHECK net c1/eth0", "STATUS net", "GC net"];
    assert_eq!(*plugin.asked.borrow(), expected);
}

#[test]
fn c4_c23_banner_and_version_read_nothing() {
    for pairs in [vec![], vec![("CNI_COMMAND", "")]] {
        assert!(matches!(prepare(&environment(&pairs), &mut Untouched), Ok(Task::Banner)));
    }
    let probe = [
        ("CNI_COMMAND", "VERSION"),
        ("CNI_NETNS", "dummy"),
        ("CNI_IFNAME", "dummy"),
        ("CNI_PATH", "dummy"),
        ("CNI_CONTAINERID", ""),
    ];
    assert!(matches!(prepare(&environment(&probe), &mut Untouched), Ok(Task::Version)));
    assert!(matches!(prepare(&environment(&probe[..1]), &mut Untouched), Ok(Task::Version)));
    let expected = "CNI osvc-x plugin v0.1.0\n\
        CNI protocol versions supported: 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0\n";
    assert_eq!(banner("osvc-x"), expected);
}

#[test]
fn c43_answer_to_version() {
    assert_eq!(
        versions().to_string(),
        r#"{"cniVersion":"1.1.0","supportedVersions":["0.1.0","0.2.0","0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}"#
    );
}

#[test]
fn c3_an_unknown_verb_after_the_configuration() {
    let expected = json!({
        "cniVersion": "1.0.0", "code": 4, "msg": "unknown CNI_COMMAND: add",
        "details": "one of ADD, DEL, CHECK, STATUS, GC, VERSION"
    });
    assert_eq!(refused("add", &[], &config("1.0.0")), expected);
    assert_eq!(refused("NOPE", &[], "{}")["code"], 7);
    assert_eq!(refused("NOPE", &[], "x")["code"], 6);
}

#[test]
fn c30_errors_carry_the_configurations_version() {
    for (version, printed) in [("0.3.1", "0.3.1"), ("", "0.1.0"), ("9.0.0", "1.1.0")] {
        let stdin = json!({"cniVersion": version, "name": "ne%t1"}).to_string();
        let expected = json!({
            "cniVersion": printed, "code": 7, "msg": "invalid characters found in network name", "details": "ne%t1"
        });
        assert_eq!(refused("ADD", &[], &stdin), expected);
    }
    let unknown = refused("ADD", &[("CNI_IFNAME", ".")], &config("0.3.1"));
    assert_eq!(unknown, json!({"cniVersion": "1.1.0", "code": 4, "msg": "interface name is . or ..", "details": "."}));
}

#[test]
fn c19_own_netns_is_refused_before_any_work() {
    let own = [("CNI_NETNS", "/proc/self/ns/net")];
    for verb in ["ADD", "CHECK"] {
        let document = refused(verb, &own, &config("1.0.0"));
        assert_eq!(document["code"], 8);
        assert_eq!(document["msg"], "plugin's netns and netns from CNI_NETNS should not be the same");
    }
    let plugin = Recorder::default();
    assert!(ask(&plugin, "DEL", &own, &config("1.0.0")).is_ok(), "DEL never depends on the netns");
    let overridden = [own[0], ("CNI_NETNS_OVERRIDE", "true")];
    assert!(ask(&plugin, "ADD", &overridden, &config("1.0.0")).is_ok());
}

#[test]
fn c40_c45_a_result_is_printed_in_the_configurations_version() {
    let plugin = Recorder {
        result: CniResult { ips: vec![Ip::new("10.0.0.2/24".parse().unwrap(), None)], ..CniResult::default() },
        ..Recorder::default()
    };
    for version in SpecVersion::ALL {
        let answer = ask(&plugin, "ADD", &[], &config(version.as_str())).unwrap().unwrap();
        assert_eq!(answer["cniVersion"], version.as_str());
    }
    for stdin in [r#"{"name": "net"}"#, r#"{"name": "net", "cniVersion": ""}"#] {
        let answer = ask(&plugin, "ADD", &[], stdin).unwrap().unwrap();
        assert_eq!(answer, json!({"cniVersion": "0.1.0", "ip4": {"ip": "10.0.0.2/24"}, "dns": {}}));
    }
}

#[test]
fn c52_what_cannot_be_printed_is_undone() {
    let plugin = Recorder::default();
    let document = ask(&plugin, "ADD", &[], &config("0.2.0")).unwrap_err();
    assert_eq!(document["msg"], "cannot convert: no valid IP addresses");
    assert_eq!(document["cniVersion"], "0.2.0");
    assert_eq!(*plugin.asked.borrow(), ["ADD net c1/eth0", "DEL net c1/eth0"]);
}

#[test]
fn c33_sk12_a_plugins_error_is_printed_as_it_is() {
    let plugin = Recorder::default();
    for verb in ["ADD", "DEL", "CHECK", "STATUS", "GC"] {
        let document =
            ask(&plugin, verb, &[("CNI_ARGS", "FAIL=ADD,DEL,CHECK,STATUS,GC")], &config("1.1.0")).unwrap_err();
        assert_eq!(document, json!({"cniVersion": "1.1.0", "code": 111, "msg": "told to"}));
    }
}

#[test]
fn c14_bad_args_are_no_matter() {
    let plugin = Recorder::default();
    for args in [";", "IP", "=;=", "IP=banana;;FOO=BAR", "IgnoreUnknown=maybe"] {
        for verb in ["ADD", "DEL", "CHECK"] {
            assert!(ask(&plugin, verb, &[("CNI_ARGS", args)], &config("1.0.0")).is_ok());
        }
    }
}

#[test]
fn c70_sk7_del_needs_no_netns() {
    let plugin = Recorder::default();
    for netns in ["", "/nowhere", "/etc/passwd"] {
        assert!(ask(&plugin, "DEL", &[("CNI_NETNS", netns)], &config("1.0.0")).is_ok());
    }
}

#[test]
fn c71_a_broken_prev_result_is_the_plugins_to_judge() {
    let plugin = Recorder::default();
    let stdin = json!({"cniVersion": "1.0.0", "name": "net", "prevResult": "broken"}).to_string();
    assert!(ask(&plugin, "DEL", &[], &stdin).is_ok());
}

#[test]
fn c100_valid_attachments_reach_the_plugin() {
    let stdin = json!({"cniVersion": "1.1.0", "name": "net", "cni.dev/valid-attachments": null}).to_string();
    let Ok(Task::Call(call, Job::Gc)) = prepare(&environment(&variables("GC", &[])), &mut stdin.as_bytes()) else {
        panic!("no GC");
    };
    assert_eq!(call.config.valid_attachments().unwrap(), ValidAttachments::Listed(vec![]));
}

#[test]
fn c130_what_libcni_injects_is_read() {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Low {
        runtime_config: Option<Value>,
    }
    let stdin = r#"{"name": "net", "RuntimeConfig": {"ips": ["10.0.0.9"]}, "capabilities": {"ips": true}}"#;
    let Ok(Task::Call(call, _)) = prepare(&environment(&variables("ADD", &[])), &mut stdin.as_bytes()) else {
        panic!("no ADD");
    };
    assert_eq!(call.config.low::<Low>().unwrap().runtime_config, Some(json!({"ips": ["10.0.0.9"]})));
    assert_eq!(call.config.text(), stdin.as_bytes());
}

#[test]
fn state_folders_come_from_the_environment() {
    let folders = |other: &[(&str, &str)]| {
        let stdin = config("1.0.0");
        match prepare(&environment(&variables("DEL", other)), &mut stdin.as_bytes()) {
            Ok(Task::Call(call, _)) => (call.host.state, call.host.run),
            _ => panic!("no DEL"),
        }
    };
    assert_eq!(folders(&[]), (PathBuf::from("/var/lib/cni/osvc"), PathBuf::from("/run/osvc-cni")));
    let moved = [("OSVC_STATE_DIR", "/tmp/state"), ("OSVC_RUN_DIR", "/tmp/run")];
    assert_eq!(folders(&moved), (PathBuf::from("/tmp/state"), PathBuf::from("/tmp/run")));
}

#[test]
fn c31_a_panic_prints_one_document_and_exits_1() {
    // The panic needs a process of its own: this program again, with only the test below.
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "protocol::run::tests::panics"])
        .env("TEST_PANIC", "1")
        .output()
        .unwrap();
    assert_eq!(child.status.code(), Some(1));
    let stdout = String::from_utf8(child.stdout).unwrap();
    // The test harness prints a heading first.
    let document: Value = serde_json::from_str(&stdout[stdout.find('{').unwrap()..]).unwrap();
    assert_eq!((&document["cniVersion"], &document["code"]), (&json!("0.4.0"), &json!(999)));
    let msg = document["msg"].as_str().unwrap();
    assert!(msg.starts_with("internal error in recorder: out of luck at "), "{msg}");
    assert!(String::from_utf8(child.stderr).unwrap().starts_with("recorder: internal error"));
}

/// The process of the test above.
#[test]
fn panics() {
    if std::env::var_os("TEST_PANIC").is_none() {
        return;
    }
    let _ = VERSION.set(SpecVersion::V040);
    print_panics("recorder");
    panic!("out of luck");
}

#[test]
fn our_documents_are_read_by_the_cni_plugin_crate() {
    use cni_plugin::reply::{ErrorReply, SuccessReply, VersionReply};
    let text = versions().to_string();
    let read: VersionReply = serde_json::from_str(&text).unwrap();
    assert_eq!(read.cni_version.to_string(), "1.1.0");
    assert_eq!(read.supported_versions.len(), 7);

    let text = refusal(None, 7, "missing network name", Some("x".into())).to_string();
    let read: ErrorReply<'_> = serde_json::from_str(&text).unwrap();
    assert_eq!((read.code, read.msg, read.details.as_str()), (7, "missing network name", "x"));

    let interface = Interface { name: "eth0".into(), sandbox: Some("/s".into()), ..Default::default() };
    let ip = Ip { interface: Some(0), ..Ip::new("10.0.0.2/24".parse().unwrap(), None) };
    let result = CniResult { interfaces: vec![interface], ips: vec![ip], ..CniResult::default() };
    let text = result.print(SpecVersion::V040).unwrap().to_string();
    let read: SuccessReply = serde_json::from_str(&text).unwrap();
    assert_eq!((read.ips[0].address.to_string().as_str(), read.ips[0].interface), ("10.0.0.2/24", Some(0)));
    assert_eq!(read.interfaces[0].name, "eth0");
}

#[test]
fn calls_of_tests_are_calls() {
    let call = call(Command::Del, std::path::Path::new("/nowhere"));
    assert_eq!(call.config.name().unwrap(), attachment().network);
}
