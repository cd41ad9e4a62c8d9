//! Addresses that somebody asked for: an operator, an orchestrator, `podman run --ip`.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::config::{ConfigError, low};
use super::range::{Range, RangeSet};
use crate::Code;
use crate::protocol::{Call, JsonError, json};

/// A request that cannot be granted, whoever holds the addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// No address.
    #[error("invalid IP address {text} ({at})")]
    Invalid {
        /// As requested.
        text: String,
        /// Where: a configuration key, or `CNI_ARGS IP`.
        at: &'static str,
    },
    /// The next hop of all the others.
    #[error("requested ip {0} is subnet's gateway")]
    Gateway(IpAddr),
    /// Network, broadcast or subnet-router anycast address.
    #[error("requested ip {ip} is the network or the broadcast address of {subnet}")]
    Unusable {
        /// As requested.
        ip: IpAddr,
        /// Its subnet.
        subnet: IpNet,
    },
    /// More addresses than sets, or in none of them.
    #[error("failed to allocate all requested IPs: {}; {}", Joined(.left, " "), Joined(.sets, " and "))]
    Left {
        /// What no set took.
        left: Vec<IpAddr>,
        /// What there is.
        sets: Vec<OneOf>,
    },
}

impl RequestError {
    /// The CNI error code.
    pub fn code(&self) -> Code {
        match self {
            Self::Invalid { at: CNI_ARGS, .. } => Code::InvalidEnvironment,
            _ => Code::InvalidConfig,
        }
    }
}

const CNI_ARGS: &str = "CNI_ARGS IP";

/// A range set in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneOf(RangeSet);

impl fmt::Display for OneOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is one address out of {}", self.0)
    }
}

struct Joined<'a, T>(&'a [T], &'static str);

impl<T: fmt::Display> fmt::Display for Joined<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if index == 0 { "" } else { self.1 })?;
        }
        Ok(())
    }
}

/// The addresses asked for, each once, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requested(pub Vec<IpAddr>);

impl Requested {
    /// What a call asks for. `runtimeConfig.ips` wins over `args.cni.ips`, and that over CNI_ARGS `IP`: runtimes
    /// send one request in several of these places, and CNI_ARGS is deprecated (CNI spec 1.1.0, "CNI_ARGS").
    ///
    /// # Errors
    /// The text that is no address, and where it is.
    pub fn from_call(call: &Call) -> Result<Self, ConfigError> {
        let network: low::Network = call.config.low()?;
        let runtime = network.runtime_config.and_then(|runtime| runtime.ips).unwrap_or_default();
        let cni = network.args.and_then(|args| args.cni);
        Self::choose(&runtime, cni.as_ref(), call.args.get("IP"))
    }

    fn choose(runtime: &[String], cni: Option<&Value>, argument: Option<&str>) -> Result<Self, ConfigError> {
        let requested = Self::parse("runtimeConfig.ips", runtime.iter().map(String::as_str))?;
        if !requested.0.is_empty() {
            return Ok(requested);
        }
        if let Some(cni) = cni {
            let fault = |error: JsonError| ConfigError::Part(error.under("cni").under("args"));
            let cni: low::CniArgs = json::from_value(cni).map_err(fault)?;
            let requested = Self::parse("args.cni.ips", cni.ips.iter().flatten().map(String::as_str))?;
            if !requested.0.is_empty() {
                return Ok(requested);
            }
        }
        Ok(Self::parse(CNI_ARGS, argument.into_iter())?)
    }

    /// Comma lists of addresses with or without prefix length, which is that of the range in any case.
    fn parse<'a>(at: &'static str, texts: impl Iterator<Item = &'a str>) -> Result<Self, RequestError> {
        let mut found = Vec::new();
        for text in texts.flat_map(|texts| texts.split(',')).map(str::trim).filter(|text| !text.is_empty()) {
            let address = match text.contains('/') {
                true => text.parse::<IpNet>().ok().map(|net| net.addr()),
                false => text.parse::<IpAddr>().ok(),
            };
            let address = address.ok_or_else(|| RequestError::Invalid { text: text.to_owned(), at })?.to_canonical();
            if !found.contains(&address) {
                found.push(address);
            }
        }
        Ok(Self(found))
    }
}

/// Gives each set the requested address that lies in it, at most one; `None` for a set of which nothing is asked.
///
/// # Errors
/// An address that no container may have, or that no set can take.
pub fn assign(sets: &[RangeSet], requested: &[IpAddr]) -> Result<Vec<Option<IpAddr>>, ConfigError> {
    let mut left = requested.to_vec();
    let taken = sets.iter().map(|set| {
        let position = left.iter().position(|ip| set.contains(*ip));
        position.map(|position| left.remove(position))
    });
    let taken: Vec<Option<IpAddr>> = taken.collect();
    let pools = || sets.iter().flat_map(|set| &set.0);
    // An address just outside of a pool has a better reason than being in none.
    for ip in taken.iter().flatten().chain(&left) {
        pools().filter(|pool| pool.subnet.contains(ip)).try_for_each(|pool| check(pool, *ip))?;
    }
    if left.is_empty() {
        Ok(taken)
    } else {
        Err(RequestError::Left { left, sets: sets.iter().cloned().map(OneOf).collect() }.into())
    }
}

/// Refuses what is no container's in any pool of this subnet.
fn check(pool: &Range, ip: IpAddr) -> Result<(), RequestError> {
    if pool.gateway == Some(ip) {
        return Err(RequestError::Gateway(ip));
    }
    let whole = Range { start: pool.subnet.network(), end: pool.subnet.broadcast(), ..pool.clone() };
    if whole.requestable(ip) { Ok(()) } else { Err(RequestError::Unusable { ip, subnet: pool.subnet }) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn set(subnets: &[&str]) -> RangeSet {
        let pool = |subnet: &&str| Range::new(subnet.parse().unwrap(), None, None, None).unwrap();
        RangeSet::new(subnets.iter().map(pool).collect()).unwrap()
    }

    fn choose(runtime: &[&str], cni: Value, argument: Option<&str>) -> Result<Vec<IpAddr>, ConfigError> {
        let runtime: Vec<String> = runtime.iter().map(|text| text.to_string()).collect();
        Requested::choose(&runtime, Some(&cni), argument).map(|requested| requested.0)
    }

    #[test]
    fn c15_c16_f10_only_the_highest_place_counts() {
        let cni = json!({"ips": ["10.5.0.5"]});
        assert_eq!(choose(&["10.5.0.4"], cni.clone(), Some("10.5.0.6")).unwrap(), ips(&["10.5.0.4"]));
        assert_eq!(choose(&[], cni, Some("10.5.0.6")).unwrap(), ips(&["10.5.0.5"]));
        assert_eq!(choose(&[], json!({}), Some("10.5.0.6")).unwrap(), ips(&["10.5.0.6"]));
        assert_eq!(choose(&[], json!({"ips": []}), None).unwrap(), ips(&[]));
        // What is overruled is not even read.
        assert_eq!(choose(&["10.5.0.4"], json!({"ips": 5}), Some("banana")).unwrap(), ips(&["10.5.0.4"]));
    }

    #[test]
    fn cf4_cf5_cf6_ip2_with_and_without_prefix() {
        assert_eq!(choose(&[], json!({}), Some("10.1.2.3/24")).unwrap(), ips(&["10.1.2.3"]));
        let both = ["10.1.2.3/24", "2001:db8::7/64", "2001:db8::8", " "];
        assert_eq!(choose(&both, json!({}), None).unwrap(), ips(&["10.1.2.3", "2001:db8::7", "2001:db8::8"]));
        assert_eq!(choose(&[], json!({"ips": both}), None).unwrap().len(), 3);
    }

    #[test]
    fn comma_lists_and_repeats() {
        // multus sends lists; `podman network reload` repeats an address.
        assert_eq!(choose(&[], json!({}), Some("10.0.0.5, fd00::5/64,")).unwrap(), ips(&["10.0.0.5", "fd00::5"]));
        let repeated = ["10.0.0.5", "10.0.0.5/24", "::ffff:10.0.0.5"];
        assert_eq!(choose(&repeated, json!({}), None).unwrap(), ips(&["10.0.0.5"]));
    }

    #[test]
    fn b1_11_what_is_no_address_is_named() {
        let error = choose(&[], json!({}), Some("10.0.0.5,banana")).unwrap_err();
        assert_eq!(error.to_string(), "invalid IP address banana (CNI_ARGS IP)");
        assert_eq!(error.code(), Code::InvalidEnvironment);
        let error = choose(&["10.0.0.5/99"], json!({}), None).unwrap_err();
        assert_eq!(error.to_string(), "invalid IP address 10.0.0.5/99 (runtimeConfig.ips)");
        assert_eq!(error.code(), Code::InvalidConfig);
        assert!(choose(&[], json!({"ips": 5}), None).is_err());
    }

    #[test]
    fn hl10_hl11_hl12_each_set_takes_its_own() {
        let sets = [set(&["10.1.2.0/24"]), set(&["10.1.3.0/24"])];
        assert_eq!(assign(&sets, &ips(&["10.1.2.88"])).unwrap(), [Some("10.1.2.88".parse().unwrap()), None]);
        assert_eq!(
            assign(&sets, &ips(&["10.1.3.77", "10.1.2.88"])).unwrap(),
            [Some("10.1.2.88".parse().unwrap()), Some("10.1.3.77".parse().unwrap())]
        );
        let sets = [set(&["172.16.1.0/24", "10.1.2.0/24"]), set(&["2001:db8:1::/48"])];
        assert_eq!(
            assign(&sets, &ips(&["10.1.2.88", "2001:db8:1::999"])).unwrap(),
            [Some("10.1.2.88".parse().unwrap()), Some("2001:db8:1::999".parse().unwrap())]
        );
        assert_eq!(assign(&sets, &[]).unwrap(), [None, None]);
    }

    #[test]
    fn hl13_two_of_one_set() {
        let error = assign(&[set(&["10.1.2.0/24"])], &ips(&["10.1.2.88", "10.1.2.77"])).unwrap_err().to_string();
        assert!(error.starts_with("failed to allocate all requested IPs: 10.1.2."), "{error}");
        assert_eq!(
            error,
            "failed to allocate all requested IPs: 10.1.2.77; there is one address out of 10.1.2.1-10.1.2.254"
        );
    }

    #[test]
    fn al5_outside_of_the_pool() {
        let pool = Range::new(
            "192.168.1.0/24".parse().unwrap(),
            Some("192.168.1.10".parse().unwrap()),
            Some("192.168.1.20".parse().unwrap()),
            None,
        );
        let sets = [RangeSet::new(vec![pool.unwrap()]).unwrap()];
        for outside in ["192.168.1.9", "192.168.1.21", "10.0.0.1", "fd00::1"] {
            let error = assign(&sets, &ips(&[outside])).unwrap_err().to_string();
            assert!(error.starts_with(&format!("failed to allocate all requested IPs: {outside};")), "{error}");
        }
    }

    #[test]
    fn b1_8_pools_of_one_subnet_share_their_gateways() {
        let pool = |start: &str, end: &str, gateway: &str| {
            let [start, end, gateway] = [start, end, gateway].map(|text| Some(text.parse().unwrap()));
            RangeSet(vec![Range::new("10.0.0.0/24".parse().unwrap(), start, end, gateway).unwrap()])
        };
        let sets = [pool("10.0.0.10", "10.0.0.20", "10.0.0.1"), pool("10.0.0.30", "10.0.0.40", "10.0.0.15")];
        for gateway in ["10.0.0.15", "10.0.0.1"] {
            let error = assign(&sets, &ips(&[gateway])).unwrap_err().to_string();
            assert_eq!(error, format!("requested ip {gateway} is subnet's gateway"));
        }
    }

    #[test]
    fn b1_9_what_is_nobodys_is_refused_and_what_is_excluded_is_not() {
        let mut sets = [set(&["10.0.0.0/24"])];
        assert_eq!(
            assign(&sets, &ips(&["10.0.0.1"])).unwrap_err().to_string(),
            "requested ip 10.0.0.1 is subnet's gateway"
        );
        for unusable in ["10.0.0.0", "10.0.0.255"] {
            let error = assign(&sets, &ips(&[unusable])).unwrap_err();
            assert!(matches!(error, ConfigError::Request(RequestError::Unusable { .. })), "{error}");
            assert_eq!(error.code(), Code::InvalidConfig);
        }
        let five = "10.0.0.5".parse().unwrap();
        sets[0].0[0] = sets[0].0[0].clone().excluding(&[(five, five)]);
        assert_eq!(assign(&sets, &[five]).unwrap(), [Some(five)]);
    }
}
