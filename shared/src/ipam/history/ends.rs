//! The ends of lines: the totals so far, at a fixed width, so that the next writer need not read all of a file.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};

use super::{LIMIT, Totals};

/// Between the totals of a line.
const BETWEEN: &str = ",\"conflicts\":";
/// Before them.
const BEFORE: &str = ",\"allocations\":";
/// The digits of a total, spaces in front.
const WIDTH: usize = 20;
/// The end of each line: both totals, a brace, a line feed.
pub(super) const TAIL: usize = BEFORE.len() + BETWEEN.len() + 2 * WIDTH + 2;

/// What each line of a writer ends with.
pub(super) fn tail(Totals { allocations, conflicts }: Totals) -> String {
    format!("{BEFORE}{allocations:>WIDTH$}{BETWEEN}{conflicts:>WIDTH$}}}\n")
}

/// The end of a file.
#[derive(Default)]
pub(super) struct End {
    pub(super) size: u64,
    pub(super) totals: Totals,
    /// The last line is not whole.
    pub(super) torn: bool,
}

/// Writes other totals at the end of a file, whose last line is whole.
pub(super) fn rewrite(path: &Path, size: u64, totals: Totals) -> io::Result<()> {
    // pwrite(2) appends where O_APPEND is set, whatever the offset.
    let file = OpenOptions::new().write(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path)?;
    file.write_all_at(tail(totals).as_bytes(), size.saturating_sub(TAIL as u64))
}

/// Two system calls, unless the last line is torn.
pub(super) fn read_end(file: &mut File) -> io::Result<End> {
    let back = |bytes: usize| SeekFrom::End(-i64::try_from(bytes).unwrap_or(i64::MAX));
    let start = match file.seek(back(TAIL)) {
        // Shorter than that.
        Err(error) if error.kind() == ErrorKind::InvalidInput => 0,
        start => start?,
    };
    let mut text = vec![0; TAIL];
    let read = file.read(&mut text)?;
    let size = start + read as u64;
    if let Some(totals) = text.get(..read).and_then(parse_tail) {
        return Ok(End { size, totals, torn: false });
    }
    if size == 0 {
        return Ok(End::default());
    }
    // Rare: somebody was killed, or the disk was full.
    file.rewind()?;
    let mut text = Vec::new();
    file.take(LIMIT * 2).read_to_end(&mut text)?;
    Ok(End { size, totals: last(&text), torn: text.last() != Some(&b'\n') })
}

/// The totals of the last whole line.
fn last(text: &[u8]) -> Totals {
    text.split_inclusive(|byte| *byte == b'\n').rev().find_map(parse_tail).unwrap_or_default()
}

fn parse_tail(text: &[u8]) -> Option<Totals> {
    let tail = std::str::from_utf8(text.get(text.len().checked_sub(TAIL)?..)?).ok()?;
    let (allocations, conflicts) = tail.strip_prefix(BEFORE)?.strip_suffix("}\n")?.split_once(BETWEEN)?;
    Some(Totals {
        allocations: allocations.trim_start().parse().ok()?,
        conflicts: conflicts.trim_start().parse().ok()?,
    })
}

/// The totals that a file ends with; `None` if there is none, or nothing in it.
pub(super) fn of_file(path: &Path) -> io::Result<Option<Totals>> {
    let file = OpenOptions::new().read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK).open(path);
    match file {
        Ok(mut file) => Ok(Some(read_end(&mut file)?).filter(|end| end.size > 0).map(|end| end.totals)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
