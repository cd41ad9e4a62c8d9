//! What is told besides the result: to stderr, and errors to the system's log as well, since runtimes
//! throw stderr away.

use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// Where syslogd or journald listens (syslog(3)).
const SYSLOG: &str = "/dev/log";

/// The most that is sent to the system's log at once, in bytes.
const SYSLOG_MESSAGE: usize = 8 << 10;

/// Starts logging. `level` is OSVC_LOG: error, warn, info, debug or trace; anything else means warn.
pub(super) fn start(name: &'static str, level: Option<&str>) {
    let level = match level.map(str::to_ascii_lowercase).as_deref() {
        Some("error") => Level::ERROR,
        Some("info") => Level::INFO,
        Some("debug") => Level::DEBUG,
        Some("trace") => Level::TRACE,
        _ => Level::WARN,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(Log { name })
        .with_target(false)
        .with_ansi(false)
        .without_time()
        .finish();
    // Somebody else's subscriber is as good.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

struct Log {
    name: &'static str,
}

struct Line {
    name: &'static str,
    error: bool,
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { name: self.name, error: false }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Line {
        Line { name: self.name, error: *meta.level() == Level::ERROR }
    }
}

impl Write for Line {
    /// One event, which comes in one piece. Logging never fails.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = text.trim();
        stderr(self.name, text);
        if self.error {
            syslog(Path::new(SYSLOG), self.name, text.strip_prefix("ERROR").unwrap_or(text).trim_start());
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The last words of a process: to both, without anything that could panic in turn.
pub(super) fn last_words(name: &str, text: &str) {
    stderr(name, text);
    syslog(Path::new(SYSLOG), name, text);
}

fn stderr(name: &str, text: &str) {
    let _ = io::stderr().write_all(format!("{name}: {text}\n").as_bytes());
}

/// One datagram as RFC 3164 has it: facility daemon (3), severity error (3). Never waits, never fails.
fn syslog(socket: &Path, name: &str, text: &str) {
    let mut message = format!("<27>{name}[{}]: {}", std::process::id(), text.replace(['\n', '\0'], " "));
    if message.len() > SYSLOG_MESSAGE {
        let end = (0..=SYSLOG_MESSAGE).rev().find(|end| message.is_char_boundary(*end)).unwrap_or_default();
        message.truncate(end);
    }
    let send = || {
        let sender = UnixDatagram::unbound()?;
        sender.set_nonblocking(true)?;
        sender.send_to(message.as_bytes(), socket)
    };
    let _: io::Result<usize> = send();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_reach_the_systems_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        syslog(&path, "osvc-ipam", "nobody listens: no matter");
        let socket = UnixDatagram::bind(&path).unwrap();
        syslog(&path, "osvc-ipam", "address\n10.0.0.2");
        let mut buffer = [0; 1 << 14];
        let length = socket.recv(&mut buffer).unwrap();
        let expected = format!("<27>osvc-ipam[{}]: address 10.0.0.2", std::process::id());
        assert_eq!(String::from_utf8_lossy(&buffer[..length]), expected);
        syslog(&path, "osvc-ipam", &"é".repeat(SYSLOG_MESSAGE));
        assert!(socket.recv(&mut buffer).unwrap() <= SYSLOG_MESSAGE);
    }
}
