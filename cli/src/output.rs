//! Printing, to somebody who may have stopped reading.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::Write;

use crate::error::Error;

/// Prints on stdout: all that was to be done is done by then.
///
/// # Errors
/// It cannot be printed, or nobody reads on (`osvc-net ip ls | head`).
pub fn print(text: &str) -> Result<(), Error> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(Error::Print)
}

/// Prints an error, or anything else that is no result, on stderr.
pub fn complain(what: &dyn Display) {
    // There is nobody left to tell that nobody listens.
    let _ = writeln!(std::io::stderr(), "osvc-net: {what}");
}

/// Columns as wide as their widest cell, two spaces apart.
pub fn table<const N: usize, S: AsRef<str>>(header: [&str; N], rows: &[[S; N]]) -> String {
    let mut widths = header.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(length(&printable(cell.as_ref())));
        }
    }
    let mut text = String::with_capacity((widths.iter().sum::<usize>() + 2 * N) * (rows.len() + 1));
    let mut line = |cells: [&str; N]| {
        for (cell, width) in cells.into_iter().zip(widths) {
            let cell = printable(cell);
            text.push_str(&cell);
            text.extend(std::iter::repeat_n(' ', width - length(&cell) + 2));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    };
    line(header);
    for row in rows {
        line(row.each_ref().map(AsRef::as_ref));
    }
    text
}

fn length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// The text without what a terminal would obey; an empty cell is `-`.
fn printable(text: &str) -> Cow<'_, str> {
    if text.is_empty() {
        return Cow::Borrowed("-");
    }
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().fold(String::new(), |mut printable, character| {
        if character.is_control() {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
        printable
    }))
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
        assert_eq!(table::<1, String>(["A"], &[]), "A\n");
    }
}
