//! Running another plugin: the one that `ipam.type` names.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ExitStatus, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::error::Error;
use super::json::{self, JsonError};
use super::{Call, CniResult, Command, config};
use crate::Attachment;

/// How often a plugin is tried that is just being written, a second apart (as libcni does).
const TRIES: u32 = 6;

/// The most of a plugin's stderr that is kept for an error message, in bytes; all of it is forwarded.
const STDERR_KEPT: usize = 64 << 10;

/// An error document.
#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    code: u32,
    #[serde(default)]
    msg: String,
    details: Option<String>,
}

struct Output {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: String,
}

/// Runs the plugin `kind` from CNI_PATH with the whole configuration and the environment of this call, but
/// for the verb and the attachment. Its stderr goes to ours. The result is `Some` for ADD only.
///
/// # Errors
/// [`Error::PluginName`], [`Error::PluginNotFound`], [`Error::PluginStart`]; the plugin's own error as
/// [`Error::Delegate`], with code, message and details unchanged; [`Error::DelegateResult`] if what it
/// printed is no result.
pub fn delegate(
    call: &Call,
    kind: &str,
    command: Command,
    attachment: Option<&Attachment>,
) -> Result<Option<CniResult>, Error> {
    let plugin = call.path.find(kind).map_err(|error| match command {
        Command::Status => Error::WouldFail(Box::new(error)),
        _ => error,
    })?;
    let output = run(&plugin, call, command, attachment)
        .map_err(|source| Error::PluginStart { plugin: plugin.clone(), source })?;
    if !output.status.success() {
        return Err(refusal(&plugin, output));
    }
    if command != Command::Add {
        return Ok(None);
    }
    let result = match json::parse(&output.stdout) {
        Ok(value) => CniResult::parse(&value, call.version),
        Err(error) => Err(Error::ResultValue(<JsonError as serde::de::Error>::custom(error))),
    };
    result.map(Some).map_err(|problem| Error::DelegateResult { plugin, problem: Box::new(problem) })
}

fn run(plugin: &Path, call: &Call, command: Command, attachment: Option<&Attachment>) -> io::Result<Output> {
    let mut child = start(plugin, call, command, attachment)?;
    let (stdin, stderr, mut stdout) = (child.stdin.take(), child.stderr.take(), child.stdout.take());
    let mut printed = Vec::new();
    // All three at once: a plugin may write before it has read everything.
    let (written, stderr) = std::thread::scope(|scope| {
        scope.spawn(|| feed(stdin, call.config.text()));
        let stderr = scope.spawn(|| forward(stderr));
        let written = match &mut stdout {
            Some(stdout) => stdout.take(config::LIMIT).read_to_end(&mut printed).map(|_| ()),
            None => Ok(()),
        };
        // What is beyond the limit is not wanted: the plugin gets EPIPE.
        drop(stdout.take());
        (written, stderr.join().unwrap_or_default())
    });
    let status = child.wait()?;
    written?;
    Ok(Output { status, stdout: printed, stderr })
}

fn start(plugin: &Path, call: &Call, command: Command, attachment: Option<&Attachment>) -> io::Result<Child> {
    let mut process = std::process::Command::new(plugin);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    process.env("CNI_COMMAND", command.as_str()).env("CNI_PATH", call.path.text()).env("CNI_ARGS", call.args.text());
    match &call.netns {
        Some(netns) => process.env("CNI_NETNS", netns),
        None => process.env_remove("CNI_NETNS"),
    };
    if let Some(attachment) = attachment {
        process.env("CNI_CONTAINERID", attachment.container.as_str()).env("CNI_IFNAME", attachment.ifname.as_str());
    }
    let mut tries = 1;
    loop {
        match process.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < TRIES => {
                tracing::info!("{} is being written, trying again in a second", plugin.display());
                tries += 1;
                std::thread::sleep(Duration::from_secs(1));
            }
            other => return other,
        }
    }
}

/// A plugin that does not read its configuration has no use for it: what it answers counts.
fn feed(stdin: Option<ChildStdin>, text: &[u8]) {
    if let Some(Err(error)) = stdin.map(|mut stdin| stdin.write_all(text)) {
        tracing::debug!("the plugin did not read its configuration: {error}");
    }
}

/// Copies to our stderr as it comes, and keeps the start of it.
fn forward(stderr: Option<ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match stderr.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => return String::from_utf8_lossy(&kept).into_owned(),
            Ok(length) => {
                let _ = io::stderr().write_all(&buffer[..length]);
                let room = STDERR_KEPT - kept.len();
                kept.extend_from_slice(&buffer[..length.min(room)]);
            }
        }
    }
}

fn refusal(plugin: &Path, Output { status, stdout, stderr }: Output) -> Error {
    let plugin = plugin.to_owned();
    if stdout.is_empty() {
        return match stderr.is_empty() {
            true => Error::DelegateSilent { plugin, status },
            false => Error::DelegateStderr { plugin, status, stderr },
        };
    }
    let document = json::parse(&stdout).map_err(<JsonError as serde::de::Error>::custom);
    match document.and_then(|value: Value| json::from_value(&value)) {
        Ok(Refusal { code, msg, details }) => Error::Delegate { code, msg, details },
        Err(problem) => {
            Error::DelegateGarbled { plugin, stdout: String::from_utf8_lossy(&stdout).into_owned(), problem }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::testing::{attachment, call};
    use super::*;

    /// A folder with a plugin `p` that is a shell script.
    fn plugin(script: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        folder
    }

    fn ask(folder: &tempfile::TempDir, command: Command) -> Result<Option<CniResult>, Error> {
        delegate(&call(command, folder.path()), "p", command, Some(&attachment()))
    }

    fn refusal(script: &str) -> (u32, String, Option<String>) {
        let error = ask(&plugin(script), Command::Add).unwrap_err();
        (error.code(), error.to_string(), error.details())
    }

    #[test]
    fn c120_c121_environment_and_stdin_of_a_delegate() {
        let folder = plugin(
            r#"dir=$(dirname "$0"); cat >$dir/stdin; env | grep ^CNI_ | sort >$dir/env; echo '{"cniVersion": "1.0.0"}'"#,
        );
        let call = call(Command::Add, folder.path());
        for command in [Command::Add, Command::Del, Command::Check, Command::Status, Command::Gc] {
            let attachment = attachment();
            let result = delegate(&call, "p", command, Some(&attachment)).unwrap();
            assert_eq!(result.is_some(), command == Command::Add);
            assert_eq!(std::fs::read(folder.path().join("stdin")).unwrap(), call.config.text());
            let expected = format!(
                "CNI_ARGS=IgnoreUnknown=1;MAC=02:00:00:00:00:01\nCNI_COMMAND={command}\nCNI_CONTAINERID=c1\n\
                 CNI_IFNAME=eth0\nCNI_NETNS=/run/netns/x\nCNI_PATH={}\n",
                folder.path().display()
            );
            assert_eq!(std::fs::read_to_string(folder.path().join("env")).unwrap(), expected);
        }
    }

    #[test]
    fn c45_a_delegates_result_is_read_in_any_version() {
        let answers = [
            r#"{"cniVersion": "0.2.0", "ip4": {"ip": "10.0.0.2/24"}}"#,
            r#"{"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "10.0.0.2/24"}]}"#,
            r#"{"ips": [{"address": "10.0.0.2/24"}]}"#,
        ];
        for answer in answers {
            let result = ask(&plugin(&format!("echo '{answer}'")), Command::Add).unwrap().unwrap();
            assert_eq!(result.ips[0].address.to_string(), "10.0.0.2/24");
        }
        let (code, msg, _) = refusal("echo nonsense");
        assert_eq!(code, 6);
        assert!(msg.starts_with("cannot read the result of plugin /"), "{msg}");
        assert_eq!(refusal("echo '{\"cniVersion\": \"9.0.0\"}'").0, 6);
    }

    #[test]
    fn c33_a_delegates_error_is_passed_on_unchanged() {
        let script = r#"echo '{"code": 11, "msg": "try \"again\"", "details": "d"}'; echo noise >&2; exit 1"#;
        assert_eq!(refusal(script), (11, "try \"again\"".to_owned(), Some("d".to_owned())));
        let (code, msg, details) = refusal("echo 'out of \"luck\"' >&2; exit 2");
        assert_eq!((code, msg.as_str()), (5, "netplugin failed: \"out of \\\"luck\\\"\\n\""));
        assert!(details.unwrap().ends_with("/p: exit status: 2"));
        let (code, msg, _) = refusal("exit 3");
        assert_eq!((code, msg.as_str()), (5, "netplugin failed with no error message: exit status: 3"));
        let (code, msg, _) = refusal("echo nonsense; exit 1");
        assert_eq!(code, 6);
        let start = "netplugin failed but error parsing its diagnostic message \"nonsense\\n\": ";
        assert!(msg.starts_with(start), "{msg}");
        assert!(refusal("kill -9 $$").1.contains("signal: 9"));
    }

    #[test]
    fn c34_stderr_decides_nothing() {
        assert!(ask(&plugin("echo noise >&2; echo '{}'"), Command::Add).is_ok());
        assert!(ask(&plugin("echo noise >&2"), Command::Del).unwrap().is_none());
    }

    #[test]
    fn much_output_before_stdin_is_read_is_no_deadlock() {
        let noise = "head -c 300000 /dev/zero; cat >/dev/null";
        assert!(ask(&plugin(noise), Command::Del).is_ok());
    }

    #[test]
    fn c17_names_that_leave_cni_path_are_refused() {
        let folder = plugin("true");
        for name in ["../p", "/bin/true", "x/p"] {
            let error = delegate(&call(Command::Add, folder.path()), name, Command::Add, None).unwrap_err();
            assert_eq!((error.code(), error.to_string()), (7, format!("invalid plugin name: {name:?}")));
        }
    }

    #[test]
    fn c17_the_execute_bit_is_seen_when_it_is_run() {
        let folder = plugin("true");
        std::fs::set_permissions(folder.path().join("p"), PermissionsExt::from_mode(0o644)).unwrap();
        let error = ask(&folder, Command::Add).unwrap_err();
        assert_eq!(error.code(), 5);
        assert!(error.to_string().contains("/p: Permission denied"), "{error}");
    }

    #[test]
    fn c122_a_plugin_that_is_being_written_is_tried_again() {
        let folder = plugin("echo '{}'");
        let writer = std::fs::OpenOptions::new().write(true).open(folder.path().join("p")).unwrap();
        let closing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            drop(writer);
        });
        assert!(ask(&folder, Command::Add).is_ok());
        closing.join().unwrap();
    }
}
