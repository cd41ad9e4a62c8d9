//! The life of a plugin process, from its environment to the one document on stdout.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};

use super::environment::{Lookup, Variables};
use super::{CniArgs, CniResult, Command, Config, Error, PluginPath, SpecVersion, config, log};
use crate::{Attachment, Host, NetworkName};

/// Code of a panic: libcni's code for what has no name. It is a defect of ours.
const INTERNAL: u32 = 999;

/// Where state lies that outlives a reboot. The one place that rootless podman leaves writable.
const STATE: &str = "/var/lib/cni/osvc";

/// Where the rest lies.
const RUN: &str = "/run/osvc-cni";

/// One call of a plugin, validated as far as that is the same for all plugins.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is asked for.
    pub command: Command,
    /// The configuration's version, in which the result is printed.
    pub version: SpecVersion,
    /// The network.
    pub network: NetworkName,
    /// CNI_NETNS; `None` if it is unset or empty.
    pub netns: Option<PathBuf>,
    /// CNI_ARGS.
    pub args: CniArgs,
    /// CNI_PATH.
    pub path: PluginPath,
    /// The network configuration.
    pub config: Config,
    /// This machine.
    pub host: Host,
}

/// What a plugin does for each verb. VERSION is answered for it.
pub trait Plugin {
    /// The name of its binary.
    fn name(&self) -> &'static str;

    /// Attaches the container. What cannot be done whole is undone.
    ///
    /// # Errors
    /// Whatever keeps the attachment from being made.
    fn add(&self, call: &Call, attachment: &Attachment) -> Result<CniResult, crate::Error>;

    /// Undoes [`add`](Self::add), whatever of it is there.
    ///
    /// # Errors
    /// State could not be read or written; the runtime may try again.
    fn del(&self, call: &Call, attachment: &Attachment) -> Result<(), crate::Error>;

    /// Is everything there that [`add`](Self::add) made? Repairs nothing.
    ///
    /// # Errors
    /// What is missing.
    fn check(&self, call: &Call, attachment: &Attachment) -> Result<(), crate::Error>;

    /// Could an ADD be served?
    ///
    /// # Errors
    /// Why not, with code 50 or 51.
    fn status(&self, call: &Call) -> Result<(), crate::Error>;

    /// Frees what no valid attachment of this network holds.
    ///
    /// # Errors
    /// All that went wrong, after everything was tried.
    fn gc(&self, call: &Call) -> Result<(), crate::Error>;

    /// What is left to be done when the answer is printed and no lock is held. It can fail for nobody.
    fn answered(&self, _call: &Call) {}
}

/// What a process was started for.
enum Task {
    /// Somebody ran us by hand, or to learn our version.
    Banner,
    Version,
    Call(Box<Call>, Job),
}

/// A verb with what it is about.
enum Job {
    Add(Attachment),
    Del(Attachment),
    Check(Attachment),
    Status,
    Gc,
}

/// An error before the call is known, with the version to print it in, if that is.
struct Refusal {
    version: Option<SpecVersion>,
    error: Error,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { version: None, error }
    }
}

/// Runs a plugin: the whole of its `main`.
///
/// Prints one JSON document on stdout, or nothing where the verb has no answer. Success is 0; any
/// failure is 1, a panic included.
pub fn run(plugin: &dyn Plugin) -> ExitCode {
    let environment = |name: &str| std::env::var_os(name);
    print_panics(plugin.name());
    let level = environment("OSVC_LOG").and_then(|level| level.into_string().ok());
    log::start(plugin.name(), level.as_deref());
    match prepare(&environment, &mut std::io::stdin().lock()) {
        Ok(Task::Banner) => {
            let _ = std::io::stderr().write_all(banner(plugin.name()).as_bytes());
            ExitCode::SUCCESS
        }
        Ok(Task::Version) => print(&versions(), ExitCode::SUCCESS),
        Ok(Task::Call(call, job)) => {
            let _ = VERSION.set(call.version);
            let code = match serve(plugin, &call, &job) {
                Ok(Some(result)) => print(&result, ExitCode::SUCCESS),
                Ok(None) => ExitCode::SUCCESS,
                Err(error) => fail(Some(call.version), error.code(), &error.to_string(), error.details()),
            };
            plugin.answered(&call);
            code
        }
        Err(Refusal { version, error }) => fail(version, error.code(), &error.to_string(), error.details()),
    }
}

/// Reads environment and stdin and validates both.
fn prepare(lookup: Lookup<'_>, stdin: &mut dyn Read) -> Result<Task, Refusal> {
    let verb = match lookup("CNI_COMMAND").filter(|verb| !verb.is_empty()) {
        Some(verb) => verb.to_string_lossy().into_owned(),
        None => return Ok(Task::Banner),
    };
    let command = verb.parse();
    if let Ok(Command::Version) = command {
        return Ok(Task::Version);
    }
    let variables = Variables::read(command.as_ref().ok().copied(), lookup)?;
    let config = Config::parse(config::read(stdin)?)?;
    let text = config.version();
    let version = match text.as_deref() {
        Ok("") => Some(SpecVersion::V010),
        Ok(text) => text.parse().ok(),
        Err(_) => None,
    };
    prepare_call(command, variables, config, text, lookup).map_err(|error| Refusal { version, error })
}

/// The part of the validation whose errors are printed in the configuration's version.
fn prepare_call(
    command: Result<Command, Error>,
    variables: Variables,
    config: Config,
    version: Result<String, Error>,
    lookup: Lookup<'_>,
) -> Result<Task, Error> {
    let network = config.name()?;
    let command = command?;
    let version = SpecVersion::of_config(&version?, command)?;
    let config = config.of_version(version);
    if matches!(command, Command::Add | Command::Check) {
        variables.refuse_own_netns()?;
    }
    let Variables { container, ifname, netns, args, path, .. } = variables;
    let attachment = match (container, ifname) {
        (Some(container), Some(ifname)) => Some(Attachment { network: network.clone(), container, ifname }),
        _ => None,
    };
    let job = match (command, attachment) {
        (Command::Add, Some(attachment)) => Job::Add(attachment),
        (Command::Del, Some(attachment)) => Job::Del(attachment),
        (Command::Check, Some(attachment)) => Job::Check(attachment),
        (Command::Status, _) => Job::Status,
        (Command::Gc, _) => Job::Gc,
        (Command::Version, _) => return Ok(Task::Version),
        (_, None) => return Err(Error::MissingVariables { command, names: vec!["CNI_CONTAINERID", "CNI_IFNAME"] }),
    };
    let host = host(lookup)?;
    Ok(Task::Call(Box::new(Call { command, version, network, netns, args, path, config, host }), job))
}

/// What a command of the operator takes from the environment: the log, and the folders of this machine.
///
/// # Errors
/// [`Error::BootId`].
pub fn operator(name: &'static str) -> Result<Host, Error> {
    let environment = |name: &str| std::env::var_os(name);
    let level = environment("OSVC_LOG").and_then(|level| level.into_string().ok());
    log::start(name, level.as_deref());
    host(&environment)
}

fn host(lookup: Lookup<'_>) -> Result<Host, Error> {
    let folder = |variable, default| match lookup(variable).filter(|folder| !folder.is_empty()) {
        Some(folder) => {
            tracing::warn!("{variable} is set: using {} instead of {default}", folder.display());
            PathBuf::from(folder)
        }
        None => PathBuf::from(default),
    };
    Host::new(folder("OSVC_STATE_DIR", STATE), folder("OSVC_RUN_DIR", RUN)).map_err(Error::BootId)
}

/// Has the plugin do it. The answer is the document to print, if the verb has one.
fn serve(plugin: &dyn Plugin, call: &Call, job: &Job) -> Result<Option<Value>, crate::Error> {
    match job {
        Job::Add(attachment) => {
            let result = plugin.add(call, attachment)?;
            match result.print(call.version) {
                Ok(document) => Ok(Some(document)),
                Err(error) => {
                    // The runtime will never know what was made: nothing may be left of it.
                    if let Err(undo) = plugin.del(call, attachment) {
                        tracing::error!("{attachment}: not undone: {undo}");
                    }
                    Err(error.into())
                }
            }
        }
        Job::Del(attachment) => plugin.del(call, attachment).map(|()| None),
        Job::Check(attachment) => plugin.check(call, attachment).map(|()| None),
        Job::Status => plugin.status(call).map(|()| None),
        Job::Gc => plugin.gc(call).map(|()| None),
    }
}

fn banner(name: &str) -> String {
    let versions = SpecVersion::ALL.map(SpecVersion::as_str).join(", ");
    format!("CNI {name} plugin v{}\nCNI protocol versions supported: {versions}\n", env!("CARGO_PKG_VERSION"))
}

/// The answer to VERSION.
fn versions() -> Value {
    let mut document = Map::new();
    document.insert("cniVersion".to_owned(), SpecVersion::LATEST.as_str().into());
    document.insert("supportedVersions".to_owned(), SpecVersion::ALL.map(|version| version.as_str()).to_vec().into());
    document.into()
}

/// The error document. Its version is the configuration's, or the latest where that is not known.
fn refusal(version: Option<SpecVersion>, code: u32, msg: &str, details: Option<String>) -> Value {
    let mut document = Map::new();
    document.insert("cniVersion".to_owned(), version.unwrap_or(SpecVersion::LATEST).as_str().into());
    document.insert("code".to_owned(), code.into());
    document.insert("msg".to_owned(), msg.into());
    if let Some(details) = details {
        document.insert("details".to_owned(), details.into());
    }
    document.into()
}

fn fail(version: Option<SpecVersion>, code: u32, msg: &str, details: Option<String>) -> ExitCode {
    match &details {
        Some(details) => tracing::error!("{msg} ({details})"),
        None => tracing::error!("{msg}"),
    }
    print(&refusal(version, code, msg, details), ExitCode::FAILURE)
}

/// Set as soon as a document is on its way to stdout.
static PRINTED: AtomicBool = AtomicBool::new(false);

/// The version in which a panic would be printed.
static VERSION: OnceLock<SpecVersion> = OnceLock::new();

/// Prints a document, if none was printed yet. A runtime that closed our stdout learns from the exit
/// code that it has no answer.
fn print(document: &Value, code: ExitCode) -> ExitCode {
    if PRINTED.swap(true, Ordering::SeqCst) {
        return ExitCode::FAILURE;
    }
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(format!("{document}\n").as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => code,
        Err(error) => {
            tracing::error!("cannot write to stdout: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A panic is an error like any other to the runtime: one document, exit code 1. Without this a plugin
/// that aborts says nothing at all.
fn print_panics(name: &'static str) {
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let what = payload.downcast_ref::<&str>().copied();
        let what = what.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("panic");
        let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
        let msg = format!("internal error in {name}: {what}{place}");
        log::last_words(name, &msg);
        let details = "a defect of the plugin: please report it; DEL removes what was made".to_owned();
        print(&refusal(VERSION.get().copied(), INTERNAL, &msg, Some(details)), ExitCode::FAILURE);
        // Not abort(): a signal is no exit code, and a core file helps nobody here.
        std::process::exit(1);
    }));
}

#[cfg(test)]
mod tests;
