//! The configuration of addresses, checked: range sets, routes, resolver, folders, key.
//!
//! Any configuration of the reference host-local plugin is one of ours. The order of the sets is host-local's:
//! `runtimeConfig.ipRanges`, then the flat form (or the subnets of the one-line form), then `ranges`.

use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;

pub use self::error::ConfigError;
pub use self::folders::{Folders, RESULTS};
use super::claims::Claims;
use super::key::KeyTemplate;
use super::range::RangeSet;
use super::{Error, resolv_conf};
use crate::protocol::{Call, SpecVersion};
use crate::{Dns, Host, NetworkName, Route};

mod error;
mod exclude;
mod folders;
pub mod low;
mod sets;

/// How a network allocates addresses.
#[derive(Debug, Clone)]
pub struct IpamConfig {
    /// The network.
    pub network: NetworkName,
    /// One address out of each: never empty, disjoint.
    pub sets: Vec<RangeSet>,
    /// Routes for the containers, as configured.
    pub routes: Vec<Route>,
    /// Where [`Self::load_dns`] reads.
    pub resolv_conf: Option<PathBuf>,
    /// The folder of our records.
    pub folder: PathBuf,
    /// The folder of host-local's records of this network.
    pub host_local: PathBuf,
    /// The folder of OpenSVC's records of this network.
    pub opensvc: PathBuf,
    /// What makes the allocation key, in place of the usual order.
    pub key_template: Option<KeyTemplate>,
    /// The most addresses that each namespace may hold.
    pub claims: Claims,
    /// STATUS fails when a set is full.
    pub status_when_full: bool,
}

impl IpamConfig {
    /// The configuration in a call's `ipam`; `None` if there is none or it has no `type`.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn from_call(call: &Call) -> Result<Option<Self>, Error> {
        let network: low::Network = call.config.low().map_err(ConfigError::from)?;
        if network.ipam.as_ref().is_none_or(|ipam| ipam.kind.is_none()) {
            return Ok(None);
        }
        Ok(Some(Self::check(&call.network, &call.host, Some(call.version), &[], network)?))
    }

    /// The configuration of the one-line form: an address out of each of these subnets, with `runtimeConfig` and
    /// `ipam` (`exclude`, `key`, `routes`, `rangeStart`…), when there are any, applied to them.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn from_call_and_subnets(call: &Call, subnets: &[IpNet]) -> Result<Self, Error> {
        let network: low::Network = call.config.low().map_err(ConfigError::from)?;
        Ok(Self::check(&call.network, &call.host, Some(call.version), subnets, network)?)
    }

    /// The configuration of the one-line form and nothing else.
    ///
    /// # Errors
    /// [`ConfigError`]: host bits, too small, overlapping, none at all.
    pub fn from_subnets(network: &NetworkName, subnets: &[IpNet], host: &Host) -> Result<Self, Error> {
        Ok(Self::check(network, host, None, subnets, low::Network::default())?)
    }

    /// Reads `resolvConf`. Only for ADD: the file may be gone when a container is deleted.
    ///
    /// # Errors
    /// [`ConfigError::ResolvConf`].
    pub fn load_dns(&self) -> Result<Dns, Error> {
        let Some(path) = &self.resolv_conf else {
            return Ok(Dns::default());
        };
        resolv_conf::read(path).map_err(|source| {
            ConfigError::ResolvConf { path: path.clone(), network: self.network.clone(), source }.into()
        })
    }

    fn check(
        network: &NetworkName,
        host: &Host,
        version: Option<SpecVersion>,
        subnets: &[IpNet],
        low: low::Network,
    ) -> Result<Self, ConfigError> {
        let ipam = low.ipam.unwrap_or_default();
        let ip_ranges = low.runtime_config.and_then(|runtime| runtime.ip_ranges).unwrap_or_default();
        let claims = ipam.claims.as_ref().map(Claims::check).transpose()?.unwrap_or_default();
        let sets = sets::range_sets(&ipam, ip_ranges, subnets)?;
        let v4 = sets.iter().filter(|set| set.is_ipv4()).count();
        if let Some(version) = version
            && version < SpecVersion::V030
            && (v4 > 1 || sets.len() - v4 > 1)
        {
            return Err(ConfigError::OnePerFamily(version));
        }
        let routes = ipam.routes.iter().flatten().enumerate().map(|(index, low)| route(index, low));
        let routes = routes.collect::<Result<_, _>>()?;
        let key_template = match &ipam.key {
            None => None,
            Some(text) => Some(
                text.parse::<KeyTemplate>().map_err(|source| ConfigError::Template { text: text.clone(), source })?,
            ),
        };
        let Folders { ours: folder, host_local, opensvc } = Folders::checked(&ipam, network, host)?;
        Ok(Self {
            network: network.clone(),
            sets,
            routes,
            resolv_conf: ipam.resolv_conf.map(PathBuf::from),
            folder,
            host_local,
            opensvc,
            key_template,
            claims,
            status_when_full: ipam.status_when_full.unwrap_or(true),
        })
    }
}

/// A route as configured: the destination keeps its host bits, zero is unset as in the reference.
fn route(index: usize, low: &low::Route) -> Result<Route, ConfigError> {
    let nonzero = |value: Option<u32>| value.filter(|value| *value != 0);
    let dst = low.dst.as_deref().unwrap_or_default();
    Ok(Route {
        dst: cidr(&format!("ipam.routes[{index}].dst"), dst)?,
        gw: low.gw.as_deref().map(|gw| address(&format!("ipam.routes[{index}].gw"), gw)).transpose()?,
        mtu: nonzero(low.mtu),
        advmss: nonzero(low.advmss),
        priority: nonzero(low.priority),
        table: low.table,
        scope: low.scope,
    })
}

/// A prefix, host bits included.
fn cidr(at: &str, text: &str) -> Result<IpNet, ConfigError> {
    text.trim().parse().map_err(|_| ConfigError::Cidr { text: text.to_owned(), at: at.to_owned() })
}

/// An address; an IPv4-mapped one is IPv4, as in the reference.
fn address(at: &str, text: &str) -> Result<IpAddr, ConfigError> {
    let parsed = text.trim().parse::<IpAddr>();
    let address = parsed.map_err(|_| ConfigError::Address { text: text.to_owned(), at: at.to_owned() })?;
    Ok(address.to_canonical())
}

#[cfg(test)]
mod tests;
