//! Which of the nodes this one is.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::{Contradiction, Node, Places, Reason};
use crate::routed::Error;

/// The most names that a message lists.
const LISTED: usize = 8;

/// The index of this node: by the key `node`, else by the name in `/etc/osvc-cni/node`, else by the host name, of which
/// either the list or the host may have the short form.
pub(super) fn here(key: Option<&str>, nodes: &[Node], places: &Places) -> Result<usize, Error> {
    let (name, from, loose) = match key {
        Some(name) => (name.to_owned(), "`node`".to_owned(), false),
        None => match file(&places.node)? {
            Some(name) => (name, places.node.display().to_string(), false),
            None => (host_name(&places.host_name)?, "the host name".to_owned(), true),
        },
    };
    let lower = name.to_lowercase();
    let mut found: Vec<usize> = matching(nodes, |known| known == lower);
    if found.is_empty() && loose {
        found = matching(nodes, |known| known == short(&lower) || short(known) == lower);
    }
    let name = name.escape_debug().to_string();
    match found[..] {
        [here] if nodes[here].retired => Err(Contradiction::Retired(nodes[here].name.clone()).into()),
        [here] => Ok(here),
        [] => Err(Contradiction::NotListed { name, from, known: names(nodes.iter()) }.into()),
        _ => {
            let known = names(found.iter().map(|index| &nodes[*index]));
            Err(Contradiction::Ambiguous { name, from, known }.into())
        }
    }
}

fn matching(nodes: &[Node], is: impl Fn(&str) -> bool) -> Vec<usize> {
    nodes.iter().enumerate().filter(|(_, node)| is(&node.name)).map(|(index, _)| index).collect()
}

fn short(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

fn names<'a>(nodes: impl Iterator<Item = &'a Node>) -> String {
    let names: Vec<&str> = nodes.map(|node| node.name.as_str()).collect();
    match names.len().checked_sub(LISTED) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..LISTED].join(", ")),
    }
}

/// The name in a file; none if there is no file.
fn file(path: &Path) -> Result<Option<String>, Error> {
    let text = match fs::read_to_string(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        text => text.map_err(|error| Error::file("read", path, error))?,
    };
    let name = text.trim();
    if name.is_empty() || name.contains(char::is_whitespace) {
        let what = "one word: write this node's name to it, or remove the file";
        return Err(super::unsupported(path.display().to_string(), text.as_str(), Reason::MustBe(what)));
    }
    Ok(Some(name.to_owned()))
}

fn host_name(path: &Path) -> Result<String, Error> {
    let text = fs::read_to_string(path).map_err(|error| Error::file("read", path, error))?;
    Ok(text.trim().trim_end_matches('.').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(names: &[&str]) -> Vec<Node> {
        let node = |name: &&str| Node {
            name: (*name).to_owned(),
            addresses: Vec::new(),
            subnets: Vec::new(),
            retired: *name == "gone",
            public_key: None,
        };
        names.iter().map(node).collect()
    }

    /// Who this host is, with this host name and this content of the file.
    fn who(key: Option<&str>, file: Option<&str>, host: &str, names: &[&str]) -> Result<usize, (u32, String)> {
        let folder = tempfile::tempdir().unwrap();
        let path = |name| folder.path().join(name);
        let places = Places { node: path("node"), host_name: path("hostname"), tables: Vec::new() };
        fs::write(&places.host_name, format!("{host}\n")).unwrap();
        if let Some(text) = file {
            fs::write(&places.node, text).unwrap();
        }
        here(key, &nodes(names), &places).map_err(|error| {
            (error.code() as u32, error.to_string().replace(&format!("{}", folder.path().display()), "/etc"))
        })
    }

    #[test]
    fn the_key_then_the_file_then_the_host_name() {
        let names = ["n1", "n2", "n3"];
        assert_eq!(who(Some("N2"), Some("n3\n"), "n1", &names), Ok(1));
        assert_eq!(who(None, Some(" n3 \n"), "n1", &names), Ok(2));
        assert_eq!(who(None, None, "N1", &names), Ok(0));
    }

    #[test]
    fn a_host_name_is_short_or_full() {
        assert_eq!(who(None, None, "n1.example.com", &["n2", "n1"]), Ok(1));
        assert_eq!(who(None, None, "n1", &["n2.example.com", "n1.example.com"]), Ok(1));
        assert_eq!(who(None, None, "n1.example.com.", &["n1", "n1.example.com"]), Ok(1), "the exact one");
        assert!(who(None, None, "n1.a.com", &["n1.b.com"]).is_err(), "two domains are two hosts");
        assert!(who(Some("n1"), None, "x", &["n1.a.com"]).is_err(), "the key is a name of the list");
        let (code, text) = who(None, None, "n1", &["n1.a", "n1.b"]).unwrap_err();
        assert!(code == 7 && text.contains("n1 (the host name), may be any of n1.a, n1.b: set `node`"), "{text}");
    }

    #[test]
    fn who_is_nobody_is_told_where_it_was_looked_up() {
        let (code, text) = who(Some("n9"), None, "n1", &["n1", "n2"]).unwrap_err();
        assert_eq!(code, 7);
        assert!(text.starts_with("this node, n9 (`node`), is not one of `nodes` (n1, n2): add it"), "{text}");
        let (_, text) = who(None, Some("n9"), "n1", &["n1", "n2"]).unwrap_err();
        assert!(text.contains("n9 (/etc/node)"), "{text}");
        let many: Vec<String> = (0..20).map(|index| format!("m{index}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(who(None, None, "n1", &many).unwrap_err().1.contains("m7 and 12 more"));
        assert_eq!(who(None, None, "gone", &["gone"]).unwrap_err().0, 7);
        for bad in ["", "\n", "n1 n2", "n1\nn2"] {
            let (code, text) = who(None, Some(bad), "n1", &["n1"]).unwrap_err();
            assert!(code == 2 && text.starts_with("cannot honour /etc/node "), "{text}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_no_absent_one() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places { node: folder.path().into(), ..Places::default() };
        assert_eq!(here(None, &nodes(&["n1"]), &places).unwrap_err().code(), crate::Code::Io);
    }
}
