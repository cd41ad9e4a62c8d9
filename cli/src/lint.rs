//! `osvc-net conf lint`: what is wrong with configurations, with the place of each fault.
//!
//! Values are checked by the plugins' own functions, so that what passes here is not refused by an ADD, and what is
//! refused here is refused there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use osvc_cni::Host;
use serde::Serialize;
use serde_json::json;

use crate::args::Format;
use crate::conf::{self, Definition};
use crate::doctor::runtimes;
use crate::error::{Error, Place};
use crate::networks::{Choice, Networks};
use crate::output;

mod keys;
mod places;
mod programs;
mod values;

use places::Places;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// No container could start, or a word has no effect that was surely meant to have one.
    Error,
    /// It may be meant so.
    Warning,
}

/// Something wrong with a file.
#[derive(Debug, Serialize)]
struct Problem {
    file: PathBuf,
    line: usize,
    column: usize,
    severity: Severity,
    problem: String,
}

/// A file that is looked at, and what was found.
struct Sheet<'a> {
    file: &'a Path,
    text: &'a [u8],
    places: Places,
    problems: Vec<Problem>,
}

impl Sheet<'_> {
    /// Something wrong at a byte of the text.
    fn add(&mut self, severity: Severity, offset: usize, problem: impl Into<String>) {
        let (line, column) = crate::locate::place(self.text, offset);
        let problem = Problem { file: self.file.to_owned(), line, column, severity, problem: problem.into() };
        self.problems.push(problem);
    }
}

/// Prints what is wrong with the files, or with all that are configured. An error is a reason for a non-zero status, a
/// warning is none.
pub fn run(host: &Host, folders: &[PathBuf], files: &[PathBuf], format: Format) -> Result<(), Vec<Error>> {
    // Named files need no look at what is configured and recorded here.
    let files = match files {
        [] => configured(Networks::load(host, folders).map_err(|error| vec![error])?),
        files => files.to_vec(),
    };
    let runtimes = runtimes::found();
    let (mut problems, mut errors) = (Vec::new(), Vec::new());
    for file in &files {
        match conf::text(file) {
            Ok(text) => problems.extend(lint(host, file, &text, &runtimes)),
            Err(source) => errors.push(Error::Read { path: file.clone(), source }),
        }
    }
    let text = match format {
        Format::Table => problems.iter().map(line).collect(),
        Format::Json => format!("{:#}\n", json!(problems)),
    };
    errors.extend(output::print(&text).err());
    let is_wrong = problems.iter().any(|problem| problem.severity == Severity::Error);
    // What is wrong was printed: the status says that there is something.
    if errors.is_empty() && !is_wrong { Ok(()) } else { Err(errors) }
}

/// `/etc/cni/net.d/a.conflist:3:5: error: …`
fn line(problem: &Problem) -> String {
    let Problem { file, line, column, severity, problem } = problem;
    let severity = if *severity == Severity::Error { "error" } else { "warning" };
    let problem: String = problem.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    format!("{}:{line}:{column}: {severity}: {problem}\n", file.display())
}

/// All files of the folders.
fn configured(networks: Networks) -> Vec<PathBuf> {
    let Choice { networks, faults, .. } = networks.look(&[]);
    let definitions = networks.into_iter().filter_map(|network| network.definition);
    let mut files: BTreeSet<PathBuf> = definitions
        .flat_map(|definition| [vec![definition.file], definition.shadowed, definition.elsewhere].concat())
        .collect();
    files.extend(faults.into_iter().filter_map(|fault| match fault.error {
        Error::Json { place, .. } | Error::Name { place, .. } => Some(place.file),
        Error::Read { path, .. } => Some(path),
        _ => None,
    }));
    files.into_iter().collect()
}

fn lint(host: &Host, file: &Path, text: &[u8], runtimes: &[runtimes::Runtime]) -> Vec<Problem> {
    let mut sheet = Sheet { file, text, places: Places::of(text), problems: Vec::new() };
    let definition = match conf::parse(file, text) {
        Ok(definition) => definition,
        Err(error) => {
            refused(&mut sheet, &error);
            return sheet.problems;
        }
    };
    keys::look(&mut sheet);
    values::look(&mut sheet, host, &definition);
    programs::look(&mut sheet, &definition);
    versions(&mut sheet, &definition, runtimes);
    sheet.problems.sort_by_key(|problem| (problem.line, problem.column));
    sheet.problems
}

/// What is no configuration at all.
fn refused(sheet: &mut Sheet<'_>, error: &Error) {
    let key = |key: &str| sheet.places.key(&[key.into()]);
    let (place, problem) = match error {
        Error::Json { place, problem } => (place, problem.clone()),
        Error::Name { place, name, source } => (place, format!("network name {name:?}: {source}")),
        other => return sheet.add(Severity::Error, 0, other.to_string()),
    };
    let Place { line, column, .. } = *place;
    let better = match error {
        Error::Name { .. } => key("name"),
        _ if problem.contains("CNI versions") => key("cniVersion").or_else(|| key("cniVersions")),
        _ if problem.contains("no plugins") => key("plugins"),
        _ => None,
    };
    match better.filter(|_| (line, column) == (1, 1)) {
        Some(offset) => sheet.add(Severity::Error, offset, problem),
        None => {
            let file = sheet.file.to_owned();
            sheet.problems.push(Problem { file, line, column, severity: Severity::Error, problem });
        }
    }
}

/// A version that a runtime of this host does not know.
fn versions(sheet: &mut Sheet<'_>, definition: &Definition, runtimes: &[runtimes::Runtime]) {
    let Some(version) = runtimes::version_of(sheet.text) else { return };
    for runtime in runtimes.iter().filter(|runtime| runtime.reads(&definition.file) && version > runtime.newest) {
        let at = sheet.places.key(&["cniVersion".into()]).unwrap_or_default();
        let (name, newest) = (runtime.name, runtime.newest.as_str());
        let said =
            format!("cniVersion {}: {name} {} of this host reads {newest} at most", version.as_str(), runtime.version);
        sheet.add(Severity::Warning, at, said);
    }
}
