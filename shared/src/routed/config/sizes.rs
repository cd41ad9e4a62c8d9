//! `maskPerNode` and `ipsPerNode`: how large a node's segment is.

use ipnet::IpNet;
use serde_json::Value;

use super::{Contradiction, Low, Reason, is_v6, unsupported};
use crate::protocol::json;
use crate::routed::Error;

/// Host bits of the smallest segment: network, gateway, a container, broadcast.
pub(super) const LEAST_BITS: u8 = 2;
/// What OpenSVC takes when neither key is given: 1024 addresses, of IPv4.
const DEFAULT_V4: u8 = 22;
/// What IPv6 networks usually are; never taken, only named.
const USUAL_V6: u8 = 64;

/// The prefix length of a node's segment, for each network.
pub(super) fn prefixes(low: &Low, networks: &[IpNet]) -> Result<Vec<u8>, Error> {
    match (&low.mask_per_node, &low.ips_per_node) {
        (Some(masks), ips) => {
            if ips.is_some() {
                tracing::debug!("ipsPerNode is not used: maskPerNode is given");
            }
            let masks = numbers(masks, "maskPerNode", networks.len())?;
            networks.iter().zip(masks).map(|(network, mask)| checked(*network, mask, "maskPerNode", mask)).collect()
        }
        (None, Some(Value::Array(list))) => {
            let counts = numbers(&list.clone().into(), "ipsPerNode", networks.len())?;
            networks.iter().zip(counts).map(|(network, count)| of_count(*network, count)).collect()
        }
        // A number of addresses means the same in both families.
        (None, Some(one)) => {
            let count = json::from_value(one).map_err(|error| error.under("ipsPerNode"))?;
            networks.iter().map(|network| of_count(*network, count)).collect()
        }
        (None, None) => networks.iter().map(default).collect(),
    }
}

fn numbers(value: &Value, key: &'static str, networks: usize) -> Result<Vec<i64>, Error> {
    let numbers = match value {
        list @ Value::Array(_) => json::from_value::<Vec<i64>>(list),
        one => json::from_value(one).map(|one| vec![one]),
    };
    let numbers = numbers.map_err(|error| error.under(key))?;
    if numbers.len() != networks {
        return Err(Contradiction::Sizes { key, given: numbers.len(), networks }.into());
    }
    Ok(numbers)
}

fn default(network: &IpNet) -> Result<u8, Error> {
    if is_v6(network) {
        let such_as = if network.prefix_len() < USUAL_V6 { USUAL_V6 } else { longest(network) };
        return Err(Contradiction::NoSize(*network, such_as).into());
    }
    if network.prefix_len() > DEFAULT_V4 {
        let such_as = longest(network).min(network.prefix_len() + LEAST_BITS);
        return Err(Contradiction::NoSize(*network, such_as).into());
    }
    Ok(DEFAULT_V4)
}

/// A power of two of addresses, as a prefix length.
fn of_count(network: IpNet, count: i64) -> Result<u8, Error> {
    match u64::try_from(count) {
        Ok(size) if size.is_power_of_two() && size >= 1 << LEAST_BITS => {
            checked(network, i64::from(network.max_prefix_len()) - i64::from(size.ilog2()), "ipsPerNode", count)
        }
        _ => Err(unsupported("ipsPerNode", count, Reason::PowerOfTwo)),
    }
}

fn checked(network: IpNet, prefix: i64, key: &'static str, value: i64) -> Result<u8, Error> {
    let (least, most) = (network.prefix_len(), longest(&network));
    match u8::try_from(prefix) {
        Ok(prefix) if (least..=most).contains(&prefix) => Ok(prefix),
        _ if key == "maskPerNode" => Err(unsupported(key, value, Reason::Prefix { network, least, most })),
        _ => Err(unsupported(key, value, Reason::Larger(network))),
    }
}

fn longest(network: &IpNet) -> u8 {
    network.max_prefix_len() - LEAST_BITS
}
