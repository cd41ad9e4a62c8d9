//! Manual pages and completions: from the command line's own definition.

use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::args::Arguments;
use crate::document;
use crate::error::Error;
use crate::output;

/// Prints the script that completes the command's words.
pub fn completion(shell: Shell) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "osvc-net", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

/// Prints the manual page, or writes that of each command into a folder; with `dry_run`, says which those are.
pub fn pages(folder: Option<&Path>, dry_run: bool) -> Result<(), Error> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    match folder {
        None => output::print(&page(&command, "osvc-net")?),
        Some(folder) if dry_run => output::print(&would_write(&command, "osvc-net", folder)),
        Some(folder) => {
            std::fs::create_dir_all(folder).map_err(|source| Error::Write { path: folder.to_owned(), source })?;
            write(&command, "osvc-net", folder)
        }
    }
}

/// Writes the page of a command and those of its subcommands.
fn write(command: &Command, name: &str, folder: &Path) -> Result<(), Error> {
    document::write(&file(folder, name), &page(command, name)?)?;
    command.get_subcommands().try_for_each(|sub| write(sub, &format!("{name}-{}", sub.get_name()), folder))
}

fn would_write(command: &Command, name: &str, folder: &Path) -> String {
    let this = format!("would write {}\n", file(folder, name).display());
    let rest = command.get_subcommands();
    rest.fold(this, |text, sub| text + &would_write(sub, &format!("{name}-{}", sub.get_name()), folder))
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.8"))
}

fn page(command: &Command, name: &str) -> Result<String, Error> {
    let example = command.get_after_long_help().map(ToString::to_string);
    let mut page = Vec::new();
    let man = Man::new(command.clone().after_long_help(None::<&str>)).title(name).section("8").source("osvc-cni");
    man.render(&mut page).map_err(Error::Print)?;
    Ok(String::from_utf8_lossy(&page).into_owned() + &example.map_or_else(String::new, |text| section(&text)))
}

/// Examples: indented lines as they are, for tables would not survive being filled.
fn section(text: &str) -> String {
    let mut roff = ".SH EXAMPLES\n".to_owned();
    let mut verbatim = false;
    for line in text.trim_end().lines() {
        let is_verbatim = line.starts_with("  ") || (verbatim && line.is_empty());
        if is_verbatim != verbatim {
            roff += if is_verbatim { ".nf\n" } else { ".fi\n" };
            verbatim = is_verbatim;
        }
        match line {
            "" => roff += ".PP\n",
            line => roff += &format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-")),
        }
    }
    roff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stay_as_they_are() {
        let page =
            page(&Command::new("x").about("y").after_long_help("Example:\n\n  A-1  B\n  .c\n\nText."), "osvc-net-x")
                .unwrap();
        assert!(page.starts_with(".ie") && page.contains(".TH osvc-net-x 8"), "{page}");
        let expected = ".SH EXAMPLES\n\\&Example:\n.PP\n.nf\n\\&  A\\-1  B\n\\&  .c\n.PP\n.fi\n\\&Text.\n";
        assert!(page.ends_with(expected), "{page}");
    }
}
