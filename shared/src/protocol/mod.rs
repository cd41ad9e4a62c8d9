//! CNI as plugins speak it: environment, configuration, verbs, versions, results, errors, delegation.
//!
//! Versions 0.1.0 to 1.1.0 of the specification. A plugin implements [`Plugin`] and its `main` is
//! [`run`], which sees to it that exactly one JSON document leaves on stdout, whatever happens.

mod args;
mod config;
mod convert;
mod delegate;
mod environment;
mod error;
pub mod json;
mod log;
mod result;
mod run;
mod version;

pub use args::CniArgs;
pub use config::{Config, ValidAttachments};
pub use delegate::delegate;
pub use environment::{Command, PluginPath};
pub use error::Error;
pub use json::JsonError;
pub use result::{CniResult, Interface, Ip, Source};
pub use run::{Call, Plugin, operator, run};
pub use version::SpecVersion;

#[cfg(test)]
mod testing;
