//! What can be wrong with a call itself, with the codes of the specification and the reference's words.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use super::json::JsonError;
use super::{Command, PluginPath, SpecVersion};
use crate::Code;
use crate::attachment::NameError;

/// An error of the protocol layer: environment, stdin, versions, results, delegation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Variables that the verb needs are unset or empty.
    #[error("required env variables [{}] missing", .names.join(","))]
    MissingVariables {
        /// The verb.
        command: Command,
        /// The variables, in the order of the specification.
        names: Vec<&'static str>,
    },
    /// A variable's value is no name that CNI or the kernel allows.
    #[error("{source}")]
    Variable {
        /// The variable.
        variable: &'static str,
        /// Its value.
        value: String,
        /// What is wrong with it.
        source: NameError,
    },
    /// CNI_COMMAND is none of the six verbs.
    #[error("unknown CNI_COMMAND: {0}")]
    UnknownCommand(String),
    /// stdin could not be read.
    #[error("error reading from stdin: {0}")]
    Stdin(#[source] io::Error),
    /// stdin is longer than any network configuration.
    #[error("error unmarshall network config: more than {limit} bytes on stdin")]
    TooLong {
        /// The most bytes that are read.
        limit: u64,
    },
    /// stdin is not JSON.
    #[error("error unmarshall network config: {0}")]
    Syntax(#[source] serde_json::Error),
    /// stdin starts with a byte order mark, which JSON does not allow (RFC 8259, 8.1).
    #[error("error unmarshall network config: it starts with a byte order mark, at line 1 column 1")]
    ByteOrderMark,
    /// stdin is JSON, but no object.
    #[error("error unmarshall network config: {0} instead of an object, at line 1 column 1")]
    NotAnObject(&'static str),
    /// A key's value is of the wrong type.
    #[error("error unmarshall network config: {0}")]
    Value(#[source] JsonError),
    /// No `name`.
    #[error("missing network name")]
    MissingName,
    /// `name` is no name that CNI allows, or none that we can keep records of.
    #[error("{0}")]
    NetworkName(#[source] NameError),
    /// `cniVersion` is none of ours.
    #[error("incompatible CNI versions")]
    IncompatibleVersion(String),
    /// `cniVersion` is older than the verb.
    #[error("config version does not allow {command}")]
    ConfigTooOld {
        /// The verb.
        command: Command,
        /// The first version that has it.
        first: SpecVersion,
        /// The configuration's version.
        version: String,
    },
    /// `cniVersion` is newer than we are.
    #[error("plugin version does not allow {command}")]
    ConfigTooNew {
        /// The verb.
        command: Command,
        /// The configuration's version.
        version: String,
    },
    /// `cniVersion` is no version, so whether it has the verb cannot be told.
    #[error("invalid version {0:?}: not three numbers with dots between them")]
    VersionNumber(String),
    /// CNI_NETNS is the namespace of the plugin itself.
    #[error("plugin's netns and netns from CNI_NETNS should not be the same")]
    OwnNetns(PathBuf),
    /// The boot id could not be read.
    #[error("cannot read the kernel's boot id from {path}: {0}", path = crate::host::BOOT_ID)]
    BootId(#[source] io::Error),
    /// CHECK without `prevResult` (CNI spec 1.1.0, "CHECK: Check container's networking is as expected").
    #[error("Required prevResult missing")]
    PrevResultMissing,
    /// `prevResult` is not the result that it should be.
    #[error("could not parse prevResult: {0}")]
    PrevResult(#[source] JsonError),
    /// `prevResult` is in a version of another form than the configuration's.
    #[error("could not parse prevResult: result type supports [{}] but unmarshalled CNIVersion is {found:?}", family(.config))]
    PrevResultVersion {
        /// The configuration's version.
        config: SpecVersion,
        /// `prevResult.cniVersion`.
        found: String,
    },
    /// A result in a version that nobody knows.
    #[error("unsupported CNI result version {0:?}")]
    ResultVersion(String),
    /// A result that is not what its version says.
    #[error("cannot read the result: {0}")]
    ResultValue(#[source] JsonError),
    /// Results before 0.3.0 consist of addresses.
    #[error("cannot convert: no valid IP addresses")]
    NoAddresses(SpecVersion),
    /// Results before 0.3.0 have one place for each family.
    #[error("CNI version {0} does not support more than 1 address per family")]
    ManyAddresses(SpecVersion),
    /// Our own result could not be written as JSON.
    #[error("cannot write the result as JSON: {0}")]
    Encode(#[source] serde_json::Error),
    /// The list of valid attachments is not one.
    #[error("error unmarshall network config: {0}")]
    ValidAttachments(#[source] JsonError),
    /// A plugin's name that would leave CNI_PATH.
    #[error("invalid plugin name: {0:?}")]
    PluginName(String),
    /// A plugin that is in no folder of CNI_PATH.
    #[error("failed to find plugin {plugin:?} in path {path}")]
    PluginNotFound {
        /// The plugin's type.
        plugin: String,
        /// CNI_PATH.
        path: PluginPath,
    },
    /// STATUS: an ADD would meet this.
    #[error("{0}")]
    WouldFail(#[source] Box<Error>),
    /// A delegated plugin could not be run.
    #[error("cannot run plugin {}: {source}", .plugin.display())]
    PluginStart {
        /// Its file.
        plugin: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A delegated plugin's own error, word by word.
    #[error("{msg}")]
    Delegate {
        /// Its code.
        code: u32,
        /// Its message.
        msg: String,
        /// Its details.
        details: Option<String>,
    },
    /// A delegated plugin failed and told why on stderr only.
    #[error("netplugin failed: {stderr:?}")]
    DelegateStderr {
        /// Its file.
        plugin: PathBuf,
        /// How it ended.
        status: ExitStatus,
        /// What it wrote.
        stderr: String,
    },
    /// A delegated plugin failed without a word.
    #[error("netplugin failed with no error message: {status}")]
    DelegateSilent {
        /// Its file.
        plugin: PathBuf,
        /// How it ended.
        status: ExitStatus,
    },
    /// A delegated plugin failed with something else than an error document.
    #[error("netplugin failed but error parsing its diagnostic message {stdout:?}: {problem}")]
    DelegateGarbled {
        /// Its file.
        plugin: PathBuf,
        /// What it wrote.
        stdout: String,
        /// Why that is no error document.
        problem: JsonError,
    },
    /// A delegated plugin succeeded with something else than a result.
    #[error("cannot read the result of plugin {}: {problem}", .plugin.display())]
    DelegateResult {
        /// Its file.
        plugin: PathBuf,
        /// What is wrong with it.
        problem: Box<Error>,
    },
}

fn family(version: &SpecVersion) -> String {
    version.family().iter().map(|version| version.as_str()).collect::<Vec<_>>().join(" ")
}

impl Error {
    /// The code printed to the runtime: [`Code`], or the delegate's own.
    pub fn code(&self) -> u32 {
        let code = match self {
            Self::MissingVariables { .. } | Self::Variable { .. } | Self::UnknownCommand(_) => Code::InvalidEnvironment,
            Self::Stdin(_) | Self::BootId(_) | Self::PluginStart { .. } | Self::Encode(_) => Code::Io,
            Self::DelegateStderr { .. } | Self::DelegateSilent { .. } => Code::Io,
            Self::TooLong { .. } | Self::Syntax(_) | Self::ByteOrderMark | Self::NotAnObject(_) => Code::Decode,
            Self::Value(_) | Self::VersionNumber(_) | Self::PrevResult(_) | Self::PrevResultVersion { .. } => {
                Code::Decode
            }
            Self::ResultValue(_) | Self::ValidAttachments(_) => Code::Decode,
            Self::DelegateGarbled { .. } | Self::DelegateResult { .. } => Code::Decode,
            Self::MissingName
            | Self::NetworkName(_)
            | Self::PluginName(_)
            | Self::PluginNotFound { .. }
            | Self::PrevResultMissing => Code::InvalidConfig,
            Self::IncompatibleVersion(_) | Self::ConfigTooOld { .. } | Self::ConfigTooNew { .. } => {
                Code::IncompatibleVersion
            }
            Self::ResultVersion(_) | Self::NoAddresses(_) | Self::ManyAddresses(_) => Code::IncompatibleVersion,
            Self::OwnNetns(_) => Code::InvalidNetns,
            Self::WouldFail(_) => Code::NotAvailable,
            Self::Delegate { code, .. } => return *code,
        };
        code as u32
    }

    /// `details` of the error document: the value at fault, or the way out.
    pub fn details(&self) -> Option<String> {
        Some(match self {
            Self::MissingVariables { command, .. } => format!("the runtime has to set them for {command}"),
            Self::Variable { source: NameError::InterfaceLength(_), .. } => {
                "interface name should be less than 16 characters".to_owned()
            }
            Self::Variable { value, .. } => value.clone(),
            Self::UnknownCommand(_) => format!("one of {}", Command::ALL.map(Command::as_str).join(", ")),
            Self::TooLong { .. } | Self::Syntax(_) | Self::ByteOrderMark | Self::NotAnObject(_) => {
                "stdin has to be one JSON object, the network configuration".to_owned()
            }
            Self::MissingName => "the network configuration needs a \"name\"".to_owned(),
            Self::NetworkName(NameError::NetworkCharacters(name)) => name.clone(),
            Self::IncompatibleVersion(version) => {
                let known: Vec<_> = SpecVersion::ALL.iter().map(|version| format!("{:?}", version.as_str())).collect();
                format!("config is {version:?}, plugin supports [{}]", known.join(" "))
            }
            Self::ConfigTooOld { command, first, version } => {
                format!("config is {version:?}, {command} is known since \"{first}\"")
            }
            Self::ConfigTooNew { version, .. } => {
                format!("config is {version:?}, plugin supports up to \"{}\"", SpecVersion::LATEST)
            }
            Self::OwnNetns(path) => format!("{} is the namespace that the plugin runs in", path.display()),
            Self::NoAddresses(version) => {
                format!("a result of CNI version {version} is addresses: set cniVersion to 0.3.0 or later")
            }
            Self::ManyAddresses(_) => "set cniVersion to 0.3.0 or later".to_owned(),
            Self::PluginName(_) => "a plugin's type is the name of a file in a folder of CNI_PATH".to_owned(),
            Self::PluginNotFound { .. } => "install the plugin there, or correct ipam.type or CNI_PATH".to_owned(),
            Self::WouldFail(error) => return error.details(),
            Self::Delegate { details, .. } => return details.clone().filter(|details| !details.is_empty()),
            Self::DelegateStderr { plugin, status, .. } => format!("plugin {}: {status}", plugin.display()),
            Self::DelegateSilent { plugin, .. } | Self::DelegateGarbled { plugin, .. } => {
                format!("plugin {}", plugin.display())
            }
            _ => return None,
        })
    }
}
