//! The result of an ADD: what an attachment consists of.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value};

use super::error::Error;
use super::{SpecVersion, convert};
use crate::{Dns, Route};

/// The result of an ADD, in the words of specification 1.1.0 whatever version it came in.
///
/// What is not said here but was in the JSON that was read stays with it, at every level, and is
/// printed again in all versions of the same form. Make a new one with `..CniResult::default()`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CniResult {
    /// Interfaces on the host and in the container; none in the result of an IPAM plugin.
    pub interfaces: Vec<Interface>,
    /// Addresses.
    pub ips: Vec<Ip>,
    /// Routes in the container.
    pub routes: Vec<Route>,
    /// Resolver settings.
    pub dns: Dns,
    /// The JSON that this was read from.
    pub source: Source,
}

/// An interface (`interfaces[]`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its hardware address, as text. Podman fails without one on container interfaces.
    pub mac: Option<String>,
    /// Its MTU in bytes (since 1.1.0, but read and printed in 1.0.0 as well).
    pub mtu: Option<u32>,
    /// CNI_NETNS for an interface in the container; none for one on the host.
    pub sandbox: Option<String>,
    /// Keys that we do not know, and `socketPath` and `pciID`, which we do not use.
    pub extra: Map<String, Value>,
}

/// An address (`ips[]`).
#[derive(Debug, Clone, PartialEq)]
pub struct Ip {
    /// Address and prefix length, host bits included.
    pub address: IpNet,
    /// The gateway of its subnet.
    pub gateway: Option<IpAddr>,
    /// Index in `interfaces`; none in the result of an IPAM plugin.
    pub interface: Option<u32>,
    /// Keys that we do not know.
    pub extra: Map<String, Value>,
}

impl Ip {
    /// An address that belongs to no interface yet.
    pub fn new(address: IpNet, gateway: Option<IpAddr>) -> Self {
        Self { address, gateway, interface: None, extra: Map::new() }
    }
}

/// The JSON that a result was read from, if any: what we do not understand of it is not lost.
#[derive(Debug, Clone, Default)]
pub struct Source(Option<Box<Read>>);

#[derive(Debug, Clone)]
struct Read {
    version: SpecVersion,
    value: Value,
    /// What we understood of it: a part that still says the same is printed as it was read.
    result: CniResult,
}

/// Results are equal by what they say, not by where they were read.
impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// JSON that was read, to be printed again, in a version of the same form.
#[derive(Clone, Copy)]
pub(super) struct Original<'a> {
    pub value: &'a Value,
    pub result: &'a CniResult,
}

impl CniResult {
    /// A result as JSON, of its own `cniVersion` or else of the `fallback`.
    ///
    /// # Errors
    /// [`Error::ResultVersion`], [`Error::ResultValue`].
    pub fn parse(value: &Value, fallback: SpecVersion) -> Result<Self, Error> {
        let version = convert::version(value)?.unwrap_or(fallback);
        let mut result = convert::read(value, version)?;
        let read = Read { version, value: value.clone(), result: result.clone() };
        result.source = Source(Some(Box::new(read)));
        Ok(result)
    }

    /// The result as JSON of a version.
    ///
    /// # Errors
    /// What [`check_version`](Self::check_version) tells, unless the result is printed as it was read.
    pub fn print(&self, version: SpecVersion) -> Result<Value, Error> {
        let original = self.source.0.as_deref().filter(|read| read.version.is_akin_to(version));
        let original = original.map(|read| Original { value: &read.value, result: &read.result });
        if let Some(Original { value: Value::Object(object), result }) = original
            && self == result
        {
            return Ok(convert::with_version(object, version));
        }
        self.check_version(version)?;
        convert::print(self, version, original)
    }

    /// Can a result of that version say this? Before 0.3.0 there is place for one address of each
    /// family, and at least one there must be. To be asked before anything is made.
    ///
    /// # Errors
    /// [`Error::NoAddresses`], [`Error::ManyAddresses`].
    pub fn check_version(&self, version: SpecVersion) -> Result<(), Error> {
        if version >= SpecVersion::V030 {
            return Ok(());
        }
        let v4 = self.ips.iter().filter(|ip| ip.address.addr().is_ipv4()).count();
        match (v4, self.ips.len() - v4) {
            (0, 0) => Err(Error::NoAddresses(version)),
            (0 | 1, 0 | 1) => Ok(()),
            _ => Err(Error::ManyAddresses(version)),
        }
    }
}
