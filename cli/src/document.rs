//! A network's configuration as a file that is edited: keys that nobody here knows stay, and so does their order.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use fd_lock::RwLock;
use serde_json::{Map, Value};

use crate::error::Error;

/// How long a line may be that holds a whole list or object, in characters.
const WIDTH: usize = 110;

/// Writes a document where it was, or where it should be: whole or not at all, with the owner and the permissions that
/// it had.
///
/// # Errors
/// It cannot be written: the old one is still there.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Of no ending by which runtimes know configurations.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fresh: PathBuf = folder.join(format!(".{name}.{}.new", std::process::id()));
    let known = fs::metadata(&path).ok();
    let mode = known.as_ref().map_or(0o644, |meta| meta.permissions().mode() & 0o7777);
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&fresh)?;
        if let Some(known) = &known {
            let made = file.metadata()?;
            if (made.uid(), made.gid()) != (known.uid(), known.gid()) {
                fchown(&file, Some(known.uid()), Some(known.gid()))?;
            }
        }
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, &path)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|source| {
        let _ = fs::remove_file(&fresh);
        Error::Write { path: path.clone(), source }
    })
}

/// Runs `act` as the only one on this host that edits files of a folder.
///
/// # Errors
/// The folder cannot be locked, or what `act` reports.
pub fn exclusively<T>(folder: &Path, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let fault = |source| Error::Read { path: folder.to_owned(), source };
    let mut lock = RwLock::new(File::open(folder).map_err(fault)?);
    let _held = lock.write().map_err(fault)?;
    act()
}

/// A document as people write it: what fits on a line is on a line.
pub fn text(document: &Value) -> String {
    let mut text = String::new();
    lines(&mut text, document, 0, 0);
    text.push('\n');
    text
}

/// Appends a value that begins after `taken` characters of a line which is indented by `depth`.
fn lines(text: &mut String, value: &Value, depth: usize, taken: usize) {
    let short = inline(value);
    let fits = depth * 2 + taken + short.chars().count() <= WIDTH;
    // The document and its plugins are always spread out: that is where people look for them.
    let spread = depth == 0 || value.get("type").is_some_and(|_| depth <= 2 && value.get("nodes").is_some());
    match value {
        Value::Object(object) if !object.is_empty() && (spread || !fits) => {
            let entries = object.iter().map(|(key, value)| (format!("{}: ", Value::from(key.as_str())), value));
            block(text, ['{', '}'], entries, depth);
        }
        Value::Array(list) if !list.is_empty() && (holds_plugins(list) || !fits) => {
            block(text, ['[', ']'], list.iter().map(|value| (String::new(), value)), depth);
        }
        _ => *text += &short,
    }
}

fn holds_plugins(list: &[Value]) -> bool {
    list.iter().any(|value| value.get("type").is_some() || value.get("name").is_some())
}

fn block<'a>(
    text: &mut String,
    [open, close]: [char; 2],
    entries: impl ExactSizeIterator<Item = (String, &'a Value)>,
    depth: usize,
) {
    let last = entries.len() - 1;
    text.push(open);
    for (index, (key, value)) in entries.enumerate() {
        *text += &format!("\n{:indent$}{key}", "", indent = (depth + 1) * 2);
        lines(text, value, depth + 1, key.chars().count() + 1);
        if index != last {
            text.push(',');
        }
    }
    *text += &format!("\n{:indent$}{close}", "", indent = depth * 2);
}

/// `{"a": 1, "b": [2, 3]}`
pub fn inline(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let entries = object.iter().map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), inline(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => format!("[{}]", list.iter().map(inline).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

/// The value of a key, whatever its case, as plugins read it.
pub fn get<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a Value> {
    object.iter().find(|(known, _)| known.eq_ignore_ascii_case(key)).map(|(_, value)| value)
}

/// As [`get`], to change it.
pub fn get_mut<'a>(object: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Value> {
    object.iter_mut().find(|(known, _)| known.eq_ignore_ascii_case(key)).map(|(_, value)| value)
}

/// Sets a key, whatever its case.
pub fn set(object: &mut Map<String, Value>, key: &str, value: Value) {
    match get_mut(object, key) {
        Some(known) => *known = value,
        None => _ = object.insert(key.to_owned(), value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_on_a_line_is_on_a_line() {
        let nodes: Vec<Value> = (1..4).map(|n| json!({"name": format!("node{n}"), "addr": "192.168.1.1"})).collect();
        let document = json!({"cniVersion": "1.0.0", "name": "prod", "plugins": [
            {"type": "osvc-routed", "network": "10.11.0.0/16", "maskPerNode": 22, "nodes": nodes},
            {"type": "osvc-portmap", "capabilities": {"portMappings": true}}
        ]});
        let text = text(&document);
        assert_eq!(
            text,
            r#"{
  "cniVersion": "1.0.0",
  "name": "prod",
  "plugins": [
    {
      "type": "osvc-routed",
      "network": "10.11.0.0/16",
      "maskPerNode": 22,
      "nodes": [
        {"name": "node1", "addr": "192.168.1.1"},
        {"name": "node2", "addr": "192.168.1.1"},
        {"name": "node3", "addr": "192.168.1.1"}
      ]
    },
    {"type": "osvc-portmap", "capabilities": {"portMappings": true}}
  ]
}
"#
        );
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), document);
        let odd = json!({"a\"b": [], "c": {}, "d": ["x".repeat(200), null, 1.5]});
        assert_eq!(serde_json::from_str::<Value>(&super::text(&odd)).unwrap(), odd);
    }

    #[test]
    fn a_file_keeps_its_permissions_and_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.conflist");
        write(&path, "{\n  \"a\": 1\n}\n").unwrap();
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(), 0o644);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        // Root alone can do that.
        let _ = std::os::unix::fs::chown(&path, Some(1000), Some(1001));
        let owner = || fs::metadata(&path).map(|meta| (meta.uid(), meta.gid())).unwrap();
        let before = owner();
        write(&path, "{}").unwrap();
        assert_eq!((mode(), fs::read_to_string(&path).unwrap().as_str()), (0o600, "{}"));
        assert_eq!(owner(), before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = write(&folder.path().join("absent/a.conflist"), "{}").unwrap_err().to_string();
        assert!(error.contains("absent/a.conflist"), "{error}");
    }
}
