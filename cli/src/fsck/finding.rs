//! One thing that is wrong.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use osvc_cni::{NetworkName, ipam, spoof};
use serde_json::{Value, json};

/// One thing that is wrong, and what helps.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    network: Option<NetworkName>,
    /// A path or the name of a device.
    subject: String,
    /// To be read after the subject.
    what: String,
    /// What helps.
    pub help: Help,
    /// What tells it from the same with the next container of that name.
    mark: String,
    /// Of this attachment.
    after: Option<String>,
    /// It was seen while nobody wrote; else half of an ADD or DEL may look like it.
    pub certain: bool,
}

/// What helps.
#[derive(Debug, Clone, PartialEq)]
pub enum Help {
    /// A folder of addresses is mended: something is set aside, or made again.
    Folder(PathBuf, &'static str),
    /// The record of a host end's addresses is made again in a folder.
    Record(PathBuf, String),
    /// A link that leads nowhere is removed.
    Link(ipam::fsck::Fault),
    /// The records of host ports are mended.
    Ports,
    /// A record of source checks is set aside.
    Checks(spoof::fsck::Fault),
    /// Somebody has to decide.
    Other(String),
}

impl Finding {
    /// Something is wrong with a path or a device.
    pub fn new(network: Option<&NetworkName>, subject: impl Into<String>, what: impl Into<String>, help: Help) -> Self {
        Self {
            network: network.cloned(),
            subject: subject.into(),
            what: what.into(),
            help,
            mark: String::new(),
            after: None,
            certain: false,
        }
    }

    /// … of a record of this time, or of a device of this number.
    #[must_use]
    pub fn marked(self, mark: impl ToString) -> Self {
        Self { mark: mark.to_string(), ..self }
    }

    /// … and that is so, whatever somebody else is at.
    #[must_use]
    pub fn for_certain(self) -> Self {
        Self { certain: true, ..self }
    }

    /// What is wrong with a file or folder of a network's addresses.
    pub fn of_fault(network: &NetworkName, folder: &Path, fault: ipam::fsck::Fault) -> Self {
        let help = match fault.cure {
            ipam::fsck::Cure::SetAside => Help::Folder(folder.to_owned(), "set aside"),
            ipam::fsck::Cure::MakeAgain => Help::Folder(folder.to_owned(), "made again"),
            ipam::fsck::Cure::Remove => Help::Link(fault.clone()),
            ipam::fsck::Cure::Upgrade => Help::Other("install the version that wrote it".to_owned()),
        };
        Self::new(Some(network), fault.path.display().to_string(), fault.what, help).for_certain()
    }

    /// … of something that is as the record of this host end will say again, should it be lost.
    #[must_use]
    pub fn after(self, tag: String) -> Self {
        Self { after: Some(tag), ..self }
    }

    /// The tag of the attachment whose record is lost.
    pub fn lost(&self) -> Option<String> {
        match &self.help {
            Help::Record(_, end) => end.strip_prefix("ov").map(str::to_owned),
            _ => None,
        }
    }

    /// True if it only follows from one of these records being lost.
    pub fn follows(&self, lost: &BTreeSet<String>) -> bool {
        self.after.as_ref().is_some_and(|tag| lost.contains(tag))
    }

    /// Whose it is, if that can be told.
    pub fn network(&self) -> Option<&NetworkName> {
        self.network.as_ref()
    }

    /// True if `--repair` puts it right.
    pub fn is_mendable(&self) -> bool {
        !matches!(self.help, Help::Other(_))
    }

    /// What `--repair` does.
    fn done(&self) -> &str {
        match &self.help {
            Help::Folder(_, done) => done,
            Help::Record(..) => "its record is made again",
            Help::Link(_) => "removed",
            Help::Ports => "mended from the records",
            Help::Checks(_) => "set aside",
            Help::Other(command) => command,
        }
    }

    /// `net1: PATH is no address record: …; set aside`
    pub fn line(&self, repair: bool, repaired: bool) -> String {
        let network = self.network.as_ref().map_or("-", |network| network.as_str());
        let end = match (self.is_mendable(), repaired, repair) {
            (false, ..) | (_, true, _) => self.done().to_owned(),
            (true, false, true) => format!("to be {}", self.done().trim_start_matches("its record is ")),
            (true, false, false) => format!("--repair: {}", self.done()),
        };
        format!("{network}: {} {}; {end}\n", printable(&self.subject), printable(&self.what))
    }

    /// All that is known of it.
    pub fn json(&self, repaired: bool) -> Value {
        json!({
            "network": self.network, "subject": self.subject, "what": self.what, "mendable": self.is_mendable(),
            "help": self.done(), "repaired": repaired,
        })
    }
}

/// Findings, to be asked whether one is among them.
pub struct Known<'a>(HashMap<(&'a str, &'a str), Vec<&'a Finding>>);

impl<'a> Known<'a> {
    /// These.
    pub fn of(findings: &'a [Finding]) -> Self {
        let mut known: HashMap<_, Vec<_>> = HashMap::with_capacity(findings.len());
        for finding in findings {
            known.entry((finding.subject.as_str(), finding.what.as_str())).or_default().push(finding);
        }
        Self(known)
    }

    /// True if it is one of them.
    pub fn has(&self, finding: &Finding) -> bool {
        let alike = self.0.get(&(finding.subject.as_str(), finding.what.as_str()));
        alike.is_some_and(|alike| alike.contains(&finding))
    }
}

/// The text without what a terminal would obey.
fn printable(text: &str) -> String {
    let show = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    text.chars().map(show).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tens_of_thousands_are_compared_in_no_time() {
        let finding = |n: u32| Finding::new(None, format!("/a/{n}"), "is wrong", Help::Ports).marked(n);
        let first: Vec<Finding> = (0..40_000).map(finding).collect();
        let second: Vec<Finding> = (20_000..60_000).rev().map(finding).collect();
        let begin = std::time::Instant::now();
        let known = Known::of(&second);
        assert_eq!(first.iter().filter(|finding| known.has(finding)).count(), 20_000);
        assert!(begin.elapsed().as_secs() < 2, "{:?}", begin.elapsed());
        assert!(!known.has(&finding(30_000).marked("another")), "of another time");
    }
}
