//! `tables`: the routing tables that get the routes, by number or by the name that iproute2 has for it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Reason, unsupported};
use crate::protocol::json;
use crate::routed::Error;

/// The table that lookups use as a rule (`RT_TABLE_MAIN`, linux/rtnetlink.h).
pub const MAIN: u32 = 254;
/// `RT_TABLE_DEFAULT`.
const DEFAULT: u32 = 253;
/// `RT_TABLE_LOCAL`: what the kernel itself puts there.
const LOCAL: u32 = 255;
/// `RT_TABLE_UNSPEC`.
const NONE: u32 = 0;

/// [`MAIN`], and the tables of the configuration, each once.
pub(super) fn tables(list: &[Value], folders: &[PathBuf]) -> Result<Vec<u32>, Error> {
    let mut tables = vec![MAIN];
    for (index, value) in list.iter().enumerate() {
        let table = match value {
            Value::String(text) => number(text).map_or_else(|| named(index, text, folders), Ok)?,
            other => json::from_value(other).map_err(|error| error.at(index).under("tables"))?,
        };
        if matches!(table, NONE | LOCAL) {
            return Err(unsupported(format!("tables[{index}]"), value.clone(), Reason::KernelTable));
        }
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    Ok(tables)
}

/// Decimal, or hexadecimal behind `0x`, as iproute2 reads it.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_hexdigit()) => u32::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

fn named(index: usize, name: &str, folders: &[PathBuf]) -> Result<u32, Error> {
    match name {
        "main" => return Ok(MAIN),
        "default" => return Ok(DEFAULT),
        "local" => return Ok(LOCAL),
        _ => {}
    }
    for folder in folders {
        for file in files(folder)? {
            if let Some(table) = read(&file)?.and_then(|text| find(&text, name)) {
                return Ok(table);
            }
        }
    }
    let searched = folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ");
    Err(unsupported(format!("tables[{index}]"), name, Reason::NoTable(searched)))
}

/// `rt_tables`, and the `.conf` files of `rt_tables.d` in the order of their names.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let more = folder.join("rt_tables.d");
    let mut files = Vec::new();
    match fs::read_dir(&more) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
        entries => {
            for entry in entries.map_err(|error| Error::file("read", &more, error))? {
                let path = entry.map_err(|error| Error::file("read", &more, error))?.path();
                if path.extension().is_some_and(|extension| extension == "conf") {
                    files.push(path);
                }
            }
        }
    }
    crate::order::sort(&mut files);
    files.insert(0, folder.join("rt_tables"));
    Ok(files)
}

fn read(path: &Path) -> Result<Option<String>, Error> {
    match fs::read(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        text => text
            .map(|text| Some(String::from_utf8_lossy(&text).into_owned()))
            .map_err(|error| Error::file("read", path, error)),
    }
}

/// The number of a name: lines of `NUMBER NAME`, with comments behind `#`.
fn find(text: &str, name: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        let table = number(words.next()?)?;
        (words.next() == Some(name)).then_some(table)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Vec<Value> {
        serde_json::from_str(text).unwrap()
    }

    fn folders() -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("etc"), folder.path().join("share"));
        fs::create_dir_all(first.join("rt_tables.d")).unwrap();
        fs::create_dir_all(&second).unwrap();
        fs::write(first.join("rt_tables"), "#\n255\tlocal\n\n 100 storage # fast\n0x65 hex\nbad line\n7\n").unwrap();
        fs::write(first.join("rt_tables.d/b.conf"), "300 backup\n").unwrap();
        fs::write(first.join("rt_tables.d/README"), "301 readme\n").unwrap();
        fs::write(second.join("rt_tables"), "900 storage\n400 vendor\n").unwrap();
        let places = vec![first, second, folder.path().join("none")];
        (folder, places)
    }

    #[test]
    fn numbers_and_names_from_all_files_and_main_always() {
        let (_folder, places) = folders();
        assert_eq!(tables(&[], &places).unwrap(), [MAIN]);
        let list = json(r#"["main", 100, "storage", "hex", "backup", "vendor", "0x10", "17", "default", 4294967295]"#);
        assert_eq!(tables(&list, &places).unwrap(), [254, 100, 101, 300, 400, 16, 17, 253, u32::MAX]);
    }

    #[test]
    fn what_is_no_table_is_refused_with_its_place() {
        let (_folder, places) = folders();
        let refused = |list: &str| {
            let error = tables(&json(list), &places).unwrap_err();
            (error.code() as u32, error.to_string())
        };
        let (code, text) = refused(r#"[7, "readme"]"#);
        assert!(code == 2 && text.starts_with(r#"cannot honour tables[1] "readme": no file of /"#), "{text}");
        for bad in ["[0]", "[255]", r#"["local"]"#, r#"["0"]"#] {
            let (code, text) = refused(bad);
            assert!(code == 2 && text.contains("the kernel's own table"), "{text}");
        }
        for bad in [r#""""#, r#""4294967296""#, r#""0x""#, r#""0x+1""#, r#""+5""#, r#""stor age""#] {
            assert_eq!(refused(&format!("[{bad}]")).0, 2, "{bad}");
        }
        for bad in ["-1", "1.5", "4294967296", "{}", "null", "true"] {
            let (code, text) = refused(&format!("[{bad}]"));
            assert!(code == 6 && text.contains("tables[0]"), "{text}");
        }
    }
}
