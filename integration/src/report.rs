//! What ran with which runtime: `make test` prints it at the end.

use std::io::Write;
use std::path::PathBuf;

/// Notes that a case was run with a runtime, or a figure to be shown.
pub fn ran(with: &str, what: &str) {
    let line = format!("{with}: {what}\n");
    print!("{line}");
    // One write of less than a page in append mode: lines of parallel tests do not mix.
    let written = std::fs::OpenOptions::new().create(true).append(true).open(path());
    if let Ok(mut file) = written {
        let _ = file.write_all(line.as_bytes());
    }
}

/// Where it is noted.
pub(crate) fn path() -> PathBuf {
    let default = || crate::sandbox::workspace().join("target/integration-report");
    std::env::var_os("OSVC_REPORT").map_or_else(default, PathBuf::from)
}

/// The running kernel.
pub fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("kernel {}", release.trim())
}
