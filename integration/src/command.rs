//! One command, with an end: what it printed, how it ended, how long it took.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How a command ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// What was run, for messages.
    pub what: String,
    /// Exit status; 128 + signal when a signal ended it.
    pub rc: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Wall time, the way into the namespaces included.
    pub elapsed: Duration,
}

impl Output {
    /// The command's standard output.
    ///
    /// # Panics
    /// The command failed.
    #[track_caller]
    pub fn ok(self) -> String {
        assert!(self.rc == 0, "{self} failed");
        self.stdout
    }

    /// What it wrote on both, when it was to fail.
    ///
    /// # Panics
    /// The command succeeded.
    #[track_caller]
    pub fn failed(self) -> String {
        assert!(self.rc != 0, "{self} should have failed");
        format!("{}{}", self.stdout, self.stderr)
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, rc, stdout, stderr, .. } = self;
        write!(f, "`{what}` (exit status {rc})\nstdout: {stdout}\nstderr: {stderr}\n")
    }
}

/// Runs a command to its end. `too_long` is called when it takes longer than `limit`; it must end the command.
pub(crate) fn run(mut command: Command, stdin: &[u8], limit: Duration, too_long: impl FnOnce()) -> Output {
    use std::os::unix::process::ExitStatusExt;
    let what = describe(&command);
    let start = Instant::now();
    let mut child: Child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("`{what}` could not be started: {error}"));
    let mut input = child.stdin.take().expect("stdin is piped");
    let text = stdin.to_owned();
    // A plugin that does not read its stdin is no error here: EPIPE is ignored.
    let writer = thread::spawn(move || drop(input.write_all(&text)));
    let (send, receive) = channel();
    let waiter = thread::spawn(move || drop(send.send((child.wait_with_output(), Instant::now()))));
    let mut late = false;
    let (result, end) = match receive.recv_timeout(limit) {
        Ok(ended) => ended,
        Err(RecvTimeoutError::Timeout) => {
            late = true;
            too_long();
            receive.recv().expect("the waiting thread sends once")
        }
        Err(RecvTimeoutError::Disconnected) => panic!("nobody waits for `{what}` any more"),
    };
    waiter.join().expect("the waiting thread ends");
    writer.join().expect("the writing thread ends");
    let output = result.unwrap_or_else(|error| panic!("`{what}` could not be waited for: {error}"));
    let status = output.status;
    let output = Output {
        what,
        rc: status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        elapsed: end - start,
    };
    assert!(!late, "{output} did not end within {limit:?}");
    output
}

fn describe(command: &Command) -> String {
    let mut text: Vec<_> = command
        .get_envs()
        .filter(|(name, _)| name.to_string_lossy().starts_with("CNI_"))
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), value?.to_string_lossy())))
        .collect();
    text.push(command.get_program().to_string_lossy().into_owned());
    text.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    text.join(" ")
}
