//! How ports are published: masquerading, who may connect, and what cannot be honoured.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};
use serde_json::Value;

use super::{ConfigError, low};
use crate::protocol::Call;
use crate::protocol::json::shown;

/// How a network's ports are published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Masquerade connections from the container's own subnet and from 127.0.0.1.
    pub snat: bool,
    /// Masquerade all translated connections; only with `snat`.
    pub masq_all: bool,
    /// Clients that may connect from elsewhere: networks without host bits, none in another; empty: all.
    pub allow_from: Vec<IpNet>,
}

impl Options {
    /// The options of a call; its ports are not looked at.
    ///
    /// # Errors
    /// [`ConfigError`]: a value of the wrong type, or one that cannot be honoured.
    pub fn from_call(call: &Call) -> Result<Self, ConfigError> {
        let low: low::Options = call.config.low()?;
        low.refuse_not_honoured()?;
        let snat = low.snat.unwrap_or(true);
        let allow_from = low.allow_from.as_deref().map(networks).transpose()?.unwrap_or_default();
        Ok(Self { snat, masq_all: snat && low.masq_all.unwrap_or(false), allow_from })
    }
}

impl low::Options {
    fn refuse_not_honoured(&self) -> Result<(), ConfigError> {
        const CONDITIONS: &str = "rules are not made of words here; allowFrom lists who may connect";
        match self.backend.as_deref() {
            None | Some("nftables") => {}
            Some("iptables") => {
                let way_out = "ports are translated by nftables, beside any iptables; remove it";
                return Err(ConfigError::NotHonoured { key: "backend", value: "\"iptables\"".to_owned(), way_out });
            }
            Some(other) => return Err(ConfigError::Backend(shown(&other.into()))),
        }
        if let Some(bit) = self.mark_masq_bit.filter(|bit| !(0..=31).contains(bit)) {
            return Err(ConfigError::MarkBit(bit));
        }
        let chain = self.external_set_mark_chain.as_deref().map(Value::from);
        let chain = chain.map(|value| ("externalSetMarkChain", value, "nothing is marked here; remove it"));
        let conditions = [("conditionsV4", &self.conditions_v4), ("conditionsV6", &self.conditions_v6)];
        let conditions = conditions.into_iter().filter_map(|(key, words)| {
            let words = words.as_ref().filter(|words| !words.is_empty())?;
            Some((key, Value::from(words.clone()), CONDITIONS))
        });
        match chain.into_iter().chain(conditions).next() {
            Some((key, value, way_out)) => Err(ConfigError::NotHonoured { key, value: shown(&value), way_out }),
            None => Ok(()),
        }
    }
}

/// Addresses and networks, in as few networks as can be. An empty list, as a program may write it, is refused:
/// whoever wrote it may have meant nobody.
fn networks(texts: &[String]) -> Result<Vec<IpNet>, ConfigError> {
    if texts.is_empty() {
        return Err(ConfigError::AllowNobody);
    }
    let read = |(index, text): (usize, &String)| {
        network(text.trim()).ok_or_else(|| ConfigError::AllowFrom { index, text: shown(&text.as_str().into()) })
    };
    let networks = texts.iter().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
    Ok(IpNet::aggregate(&networks))
}

/// A network or one address; an IPv4-mapped one is IPv4, as everywhere.
fn network(text: &str) -> Option<IpNet> {
    let network = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok()?;
    match network {
        IpNet::V6(mapped) if mapped.prefix_len() >= 96 => {
            let v4 = mapped.addr().to_ipv4_mapped();
            let v4 = v4.and_then(|addr: Ipv4Addr| Ipv4Net::new(addr, mapped.prefix_len() - 96).ok());
            Some(v4.map_or(network, IpNet::V4).trunc())
        }
        _ => Some(network.trunc()),
    }
}
