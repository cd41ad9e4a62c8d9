//! `osvc-net render`: fills in a template with what is known of networks and tunnels, for programs that are configured
//! from it.
//!
//! A template sees no files and no environment. It is one file; where a value is missing it fails instead of printing
//! nothing.

use std::fs;
use std::io::Read;
use std::path::Path;

use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use osvc_cni::Host;

use crate::args::Render;
use crate::error::Error;
use crate::networks::Networks;
use crate::{document, output};
use facts::Facts;

mod facts;
mod tunnels;

/// What is wrong with a template.
#[derive(Debug, thiserror::Error)]
#[error("{place}{}: {why}", .line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct TemplateError {
    /// The template.
    place: String,
    /// Counted from 1.
    line: Option<usize>,
    /// What, and what led to it.
    why: String,
}

impl TemplateError {
    fn new(place: &str, error: &minijinja::Error) -> Self {
        let mut why = match error.detail() {
            // Said by one of our functions, in whole.
            Some(detail) if error.kind() == ErrorKind::InvalidOperation => detail.to_owned(),
            Some(detail) => format!("{}: {detail}", error.kind()),
            None => error.kind().to_string(),
        };
        let mut source = std::error::Error::source(error);
        while let Some(cause) = source {
            why += &format!(": {cause}");
            source = cause.source();
        }
        if error.kind() == ErrorKind::UndefinedError {
            why += " (a name, a field, or a function that there is not: `osvc-net render --help` lists those that there are)";
        }
        Self { place: place.to_owned(), line: error.line(), why }
    }
}

/// Prints what becomes of a template, or writes it to a file that says something else.
pub fn run(host: &Host, networks: Networks, arguments: &Render) -> Result<(), Vec<Error>> {
    let (chosen, errors) = networks.choose(&[]);
    // A template may do without what cannot be read.
    errors.iter().for_each(|error| output::complain(error));
    one(Facts::new(host, chosen), arguments).map_err(|error| vec![error])
}

fn one(facts: Facts, arguments: &Render) -> Result<(), Error> {
    let (place, source) = read(&arguments.template)?;
    let text = render(&place, &source, facts).map_err(Error::specific)?;
    let Some(file) = &arguments.file else { return output::print(&text) };
    let told = file.display();
    let is_new = !fs::read(file).is_ok_and(|known| known == text.as_bytes());
    if arguments.dry_run {
        output::complain(&format_args!("{told}: {}", if is_new { "would be written" } else { "unchanged" }));
        return output::print(&text);
    }
    if is_new {
        document::write(file, &text)?;
    }
    output::print(&format!("{told}: {}\n", if is_new { "written" } else { "unchanged" }))
}

/// The template, and how it is called.
fn read(path: &Path) -> Result<(String, String), Error> {
    if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|source| Error::Read { path: "standard input".into(), source })?;
        return Ok(("standard input".to_owned(), text));
    }
    let text = fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    Ok((path.display().to_string(), text))
}

fn render(place: &str, source: &str, facts: Facts) -> Result<String, TemplateError> {
    let fault = |error: minijinja::Error| TemplateError::new(place, &error);
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_keep_trailing_newline(true);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    facts.lend_to(&mut environment);
    environment.add_template(place, source).map_err(fault)?;
    environment.get_template(place).and_then(|template| template.render(())).map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(source: &str) -> Result<String, String> {
        let host = Host { state: "/nonexistent".into(), run: "/nonexistent".into(), boot: "boot".into() };
        render("t.j2", source, Facts::new(&host, Vec::new())).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_missing_is_told_with_its_line() {
        assert_eq!(filled("a\n{% for n in networks() %}\nx\n{% endfor %}\nb\n").unwrap(), "a\nb\n");
        let told = filled("a\n\n{{ nothing }}\n").unwrap_err();
        assert!(told.starts_with("t.j2:3: undefined value"), "{told}");
        let told = filled("{% if %}").unwrap_err();
        assert!(told.starts_with("t.j2:1: syntax error"), "{told}");
        let told = filled("\n{{ network(\"x\").name }}").unwrap_err();
        assert_eq!(told, "t.j2:2: no network \"x\": there is none on this host");
        assert!(filled("{% include \"/etc/passwd\" %}").is_err(), "no other files");
        assert!(filled("{{ env }}").is_err() && filled("{{ HOME }}").is_err(), "no environment");
    }
}
