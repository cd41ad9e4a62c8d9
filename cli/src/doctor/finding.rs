//! What was found, as it is told.

use std::fmt::{Display, Write};

use osvc_cni::NetworkName;
use serde::Serialize;

/// Something that keeps containers from their network, or will.
#[derive(Debug, Serialize)]
pub struct Finding {
    /// Which fault it is, for programs.
    pub id: &'static str,
    /// The network, if it concerns one alone.
    pub network: Option<NetworkName>,
    /// What is wrong, with the name of the file, device, address or value.
    pub what: String,
    /// Why that matters for containers.
    pub why: String,
    /// The command or the edit that helps.
    pub help: String,
}

/// All that was found.
#[derive(Debug, Default)]
pub struct Report {
    /// In the order in which it is told.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Something about a network, or about the host.
    pub fn add(
        &mut self,
        id: &'static str,
        network: Option<&NetworkName>,
        what: impl Into<String>,
        why: impl Into<String>,
        help: impl Into<String>,
    ) {
        let (what, why, help) = (what.into(), why.into(), help.into());
        self.findings.push(Finding { id, network: network.cloned(), what, why, help });
    }

    /// What could not be found out: it may be well, and may not.
    pub fn cannot_tell(&mut self, network: Option<&NetworkName>, what: &str, error: &dyn Display) {
        let help = match nix::unistd::Uid::effective().is_root() {
            true => "put right what the message names, and run osvc-net doctor again",
            false => "sudo osvc-net doctor",
        };
        let why = "without it nobody knows whether this part is in order";
        self.add("cannot-tell", network, format!("cannot find out {what}: {error}"), why, help);
    }

    /// True if this was found, of a network or of the whole host.
    pub fn has(&self, id: &str, network: &NetworkName) -> bool {
        self.about(network).any(|finding| finding.id == id)
    }

    /// True if this was found of a network alone, and this helps.
    pub fn offers(&self, id: &str, network: &NetworkName, help: &str) -> bool {
        let is_it = |finding: &Finding| finding.id == id && finding.network.as_ref() == Some(network);
        self.findings.iter().any(|finding| is_it(finding) && finding.help == help)
    }

    /// What concerns a network.
    pub fn about<'a>(&'a self, network: &'a NetworkName) -> impl Iterator<Item = &'a Finding> {
        self.findings.iter().filter(move |finding| finding.network.as_ref().is_none_or(|name| name == network))
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Finding { id, network, what, why, help } in &self.findings {
            let network = network.as_ref().map(|name| format!("network {name}: ")).unwrap_or_default();
            let _ = writeln!(text, "{id}: {}", printable(&format!("{network}{what}")));
            let _ = writeln!(text, "  why:  {}", printable(why));
            for (index, line) in help.lines().enumerate() {
                let _ = writeln!(text, "  {} {}", if index == 0 { "help:" } else { "     " }, printable(line));
            }
        }
        text
    }
}

/// Names of files and what files say may hold anything.
fn printable(text: &str) -> String {
    text.chars().fold(String::new(), |mut printable, character| {
        if character.is_control() {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
        printable
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_readable_and_obeys_nobody() {
        let mut report = Report::default();
        let name: NetworkName = "podnet".parse().unwrap();
        report.add("some-id", Some(&name), "a\u{1b}[2J", "because", "one\ntwo");
        report.add("other", None, "b", "why not", "help");
        assert_eq!(
            report.text(),
            "some-id: network podnet: a\\u{1b}[2J\n  why:  because\n  help: one\n        two\n\
             other: b\n  why:  why not\n  help: help\n"
        );
        assert!(report.has("other", &name) && report.has("some-id", &name));
        assert!(!report.has("some-id", &"else".parse().unwrap()));
    }
}
