//! Printing, to somebody who may have stopped reading.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use crate::error::Error;

/// Prints on stdout. A closed pipe (`osvc-net ip ls | head`) is no failure.
pub fn print(text: &str) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Error::Print(error)),
        _ => Ok(()),
    }
}

/// Prints an error, or anything else that is no result, on stderr.
pub fn complain(what: &dyn Display) {
    // There is nobody left to tell that nobody listens.
    let _ = writeln!(std::io::stderr(), "osvc-net: {what}");
}

/// Columns as wide as their widest cell, two spaces apart.
pub fn table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let rows: Vec<[String; N]> = rows.iter().map(|row| row.each_ref().map(|cell| printable(cell))).collect();
    let mut widths = header.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in std::iter::once(header.map(str::to_owned)).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line += &format!("{cell:<width$}  ");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The text without what a terminal would obey; an empty cell is `-`.
fn printable(text: &str) -> String {
    if text.is_empty() {
        return "-".to_owned();
    }
    text.chars().fold(String::new(), |mut printable, character| {
        if character.is_control() {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
        printable
    })
}

/// The first 12 digits of an id that is a hash, as the runtimes' own lists show it.
pub fn short(container: &str) -> &str {
    let is_hash = container.len() >= 32 && container.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { &container[..12] } else { container }
}

/// A time of RFC 3339 without its fraction.
pub fn seconds(since: &str) -> String {
    match since.split_once('.') {
        Some((seconds, _)) => format!("{seconds}Z"),
        None => since.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_line_up_and_obey_nobody() {
        let row = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        assert_eq!(
            table(["A", "LONGER"], &[row("one", "1"), row("\u{1b}[2Jé", "")]),
            "A           LONGER\none         1\n\\u{1b}[2Jé  -\n"
        );
        assert_eq!(table(["A"], &[]), "A\n");
    }
}
