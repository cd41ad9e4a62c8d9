//! The variables that a runtime sets, and which of them each verb needs.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::CniArgs;
use super::error::Error;
use crate::{ContainerId, InterfaceName};

/// CNI_COMMAND: what the runtime wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// Attach a container to a network.
    Add,
    /// Undo ADD, as far as possible.
    Del,
    /// Is all there that ADD made?
    Check,
    /// Could an ADD be served?
    Status,
    /// Free what no valid attachment holds.
    Gc,
    /// Which versions are spoken?
    Version,
}

impl Command {
    /// All verbs.
    pub const ALL: [Self; 6] = [Self::Add, Self::Del, Self::Check, Self::Status, Self::Gc, Self::Version];

    /// The value of CNI_COMMAND.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Del => "DEL",
            Self::Check => "CHECK",
            Self::Status => "STATUS",
            Self::Gc => "GC",
            Self::Version => "VERSION",
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Command {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|command| command.as_str() == text)
            .ok_or_else(|| Error::UnknownCommand(text.to_owned()))
    }
}

/// CNI_PATH: the folders in which plugins are looked for, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginPath(OsString);

impl PluginPath {
    /// The path in the text of the variable: folders separated by `:`.
    pub fn new(text: impl Into<OsString>) -> Self {
        Self(text.into())
    }

    /// The folders.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> {
        std::env::split_paths(&self.0).filter(|folder| !folder.as_os_str().is_empty())
    }

    /// The variable as received.
    pub fn text(&self) -> &std::ffi::OsStr {
        &self.0
    }

    /// The first regular file of that name. Whether it may be executed is seen when it is.
    ///
    /// # Errors
    /// [`Error::PluginName`] for a name that would leave the folders, [`Error::PluginNotFound`].
    pub fn find(&self, plugin: &str) -> Result<PathBuf, Error> {
        if plugin.is_empty() || plugin.contains('/') || matches!(plugin, "." | "..") {
            return Err(Error::PluginName(plugin.to_owned()));
        }
        self.folders()
            .map(|folder| folder.join(plugin))
            .find(|path| path.is_file())
            .ok_or_else(|| Error::PluginNotFound { plugin: plugin.to_owned(), path: self.clone() })
    }
}

impl fmt::Display for PluginPath {
    /// The folders as Go prints a list: `[/opt/cni/bin /usr/lib/cni]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let folders: Vec<_> = self.folders().map(|folder| folder.display().to_string()).collect();
        write!(f, "[{}]", folders.join(" "))
    }
}

/// A look-up of environment variables; an empty value is a missing one.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The variables that concern one call.
#[derive(Debug, Clone)]
pub(super) struct Variables {
    pub container: Option<ContainerId>,
    pub ifname: Option<InterfaceName>,
    pub netns: Option<PathBuf>,
    pub args: CniArgs,
    pub path: PluginPath,
    /// CNI_NETNS_OVERRIDE: CNI_NETNS may be the plugin's own namespace.
    pub own_netns_allowed: bool,
}

impl Variables {
    /// The variables for a verb; `None` is a verb that we do not know, which needs none.
    ///
    /// As Go's skel: the first invalid value wins, then all missing ones are named at once. The
    /// specification asks for CNI_PATH on GC only; every reference plugin asks for it always.
    ///
    /// # Errors
    /// [`Error::Variable`] and [`Error::MissingVariables`].
    pub fn read(command: Option<Command>, lookup: Lookup<'_>) -> Result<Self, Error> {
        use Command::{Add, Check, Del};
        let text = |name| lookup(name).filter(|value| !value.is_empty());
        let attachment = matches!(command, Some(Add | Del | Check));
        let mut missing = Vec::new();
        let mut need = |name, needed: bool| {
            let value = text(name);
            if needed && value.is_none() {
                missing.push(name);
            }
            value.filter(|_| needed)
        };
        let container = name("CNI_CONTAINERID", need("CNI_CONTAINERID", attachment))?;
        need("CNI_NETNS", matches!(command, Some(Add | Check)));
        let ifname = name("CNI_IFNAME", need("CNI_IFNAME", attachment))?;
        need("CNI_PATH", command.is_some());
        if let (Some(command), false) = (command, missing.is_empty()) {
            return Err(Error::MissingVariables { command, names: missing });
        }
        Ok(Self {
            container,
            ifname,
            netns: text("CNI_NETNS").map(PathBuf::from),
            args: text("CNI_ARGS").map(|text| CniArgs::parse(&text.to_string_lossy())).unwrap_or_default(),
            path: text("CNI_PATH").map(PluginPath::new).unwrap_or_default(),
            own_netns_allowed: text("CNI_NETNS_OVERRIDE")
                .is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true")),
        })
    }

    /// Refuses CNI_NETNS if it is the namespace that the plugin itself runs in: the container's
    /// interface and routes would be made on the host. A path that cannot be opened is no matter here.
    ///
    /// # Errors
    /// [`Error::OwnNetns`].
    pub fn refuse_own_netns(&self) -> Result<(), Error> {
        match &self.netns {
            Some(path) if !self.own_netns_allowed && is_own_netns(path) => Err(Error::OwnNetns(path.clone())),
            _ => Ok(()),
        }
    }
}

/// A name out of a variable. What is not Unicode becomes U+FFFD, which no name may hold.
fn name<T: FromStr<Err = crate::attachment::NameError>>(
    variable: &'static str,
    value: Option<OsString>,
) -> Result<Option<T>, Error> {
    let Some(value) = value else { return Ok(None) };
    let value = value.to_string_lossy();
    value.parse().map(Some).map_err(|source| Error::Variable { variable, value: value.into_owned(), source })
}

/// Two paths to one namespace lead to one inode of nsfs (namespaces(7)).
fn is_own_netns(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (std::fs::metadata(path), std::fs::metadata("/proc/self/ns/net")) {
        (Ok(theirs), Ok(own)) => (theirs.dev(), theirs.ino()) == (own.dev(), own.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
