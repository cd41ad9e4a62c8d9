//! Range sets, out of all the places where they can be written.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::Value;

use super::{ConfigError, address, cidr, exclude, low};
use crate::ipam::range::{Range, RangeError, RangeSet};
use crate::protocol::{JsonError, json};

/// A set as it is written: the path of its key, and its pools with theirs.
struct List {
    at: String,
    pools: Vec<(String, low::Range)>,
}

/// The range sets, in host-local's order.
pub(super) fn range_sets(
    ipam: &low::Ipam,
    ip_ranges: Vec<Value>,
    subnets: &[IpNet],
) -> Result<Vec<RangeSet>, ConfigError> {
    let mut lists = runtime(ip_ranges)?;
    lists.extend(if subnets.is_empty() { flat(ipam) } else { one_line(ipam, subnets)? });
    lists.extend(ipam.ranges.iter().flatten().enumerate().map(|(outer, list)| {
        let at = format!("ipam.ranges[{outer}]");
        let pools = list.iter().enumerate().map(|(inner, range)| (format!("{at}[{inner}]"), range.clone()));
        List { pools: pools.collect(), at }
    }));
    if lists.is_empty() {
        return Err(ConfigError::NoRanges);
    }

    let excluded = exclude::spans(ipam.exclude.as_deref().unwrap_or_default())?;
    let mut sets: Vec<RangeSet> = Vec::with_capacity(lists.len());
    for (index, List { at, pools }) in lists.into_iter().enumerate() {
        let pools = pools.iter().map(|(at, low)| Ok(range(index, at, low)?.excluding(&excluded)));
        let pools = pools.collect::<Result<_, ConfigError>>()?;
        sets.push(RangeSet::new(pools).map_err(refused(index, &at))?);
    }
    // Pools may share a subnet: the gateway of one of them is nobody's address in the others either.
    let gateways: Vec<IpAddr> = sets.iter().flat_map(|set| &set.0).filter_map(|pool| pool.gateway).collect();
    for pool in sets.iter_mut().flat_map(|set| &mut set.0) {
        let others = gateways.iter().filter(|gateway| pool.gateway != Some(**gateway));
        let others: Vec<_> = others.map(|gateway| (*gateway, *gateway)).collect();
        *pool = pool.clone().excluding(&others);
    }
    for (first, set) in sets.iter().enumerate() {
        if let Some(offset) = sets[first + 1..].iter().position(|other| set.overlaps(other)) {
            let second = first + 1 + offset;
            let (first_set, second_set) = (set.clone(), sets[second].clone());
            return Err(ConfigError::SetsOverlap { first, second, first_set, second_set });
        }
    }
    Ok(sets)
}

/// `runtimeConfig.ipRanges`: a list of lists by the CNI conventions. go-cni can only send one flat list; it is
/// taken as a set for each family, in the order in which they come.
fn runtime(ip_ranges: Vec<Value>) -> Result<Vec<List>, ConfigError> {
    let mut lists: Vec<List> = Vec::new();
    let (mut flat_v4, mut flat_v6) = (None, None);
    for (index, value) in ip_ranges.iter().enumerate() {
        let at = format!("runtimeConfig.ipRanges[{index}]");
        let fault = |error: JsonError| ConfigError::Part(error.at(index).under("ipRanges").under("runtimeConfig"));
        if value.is_object() {
            let pool: low::Range = json::from_value(value).map_err(fault)?;
            let is_v6 = pool.subnet.as_deref().is_some_and(|subnet| subnet.contains(':'));
            let position = *(if is_v6 { &mut flat_v6 } else { &mut flat_v4 }).get_or_insert_with(|| {
                lists.push(List { at: at.clone(), pools: Vec::new() });
                lists.len() - 1
            });
            lists[position].pools.push((at, pool));
        } else {
            let pools: Vec<low::Range> = json::from_value(value).map_err(fault)?;
            let pools = pools.into_iter().enumerate().map(|(inner, pool)| (format!("{at}[{inner}]"), pool));
            lists.push(List { pools: pools.collect(), at });
        }
    }
    Ok(lists)
}

/// The range written directly in `ipam`.
fn flat(ipam: &low::Ipam) -> Vec<List> {
    let pool = low::Range {
        subnet: ipam.subnet.clone(),
        range_start: ipam.range_start.clone(),
        range_end: ipam.range_end.clone(),
        gateway: ipam.gateway.clone(),
    };
    if pool.subnet.is_some() {
        return vec![List { at: "ipam".to_owned(), pools: vec![("ipam".to_owned(), pool)] }];
    }
    if pool.range_start.is_some() || pool.range_end.is_some() || pool.gateway.is_some() {
        // host-local ignores them without a word.
        tracing::warn!("ipam.rangeStart, ipam.rangeEnd and ipam.gateway mean nothing without ipam.subnet");
    }
    Vec::new()
}

/// The subnets of the one-line form, a set each. `rangeStart`, `rangeEnd` and `gateway` of `ipam` belong to the
/// subnet that holds them, or else to the first one of their family.
fn one_line(ipam: &low::Ipam, subnets: &[IpNet]) -> Result<Vec<List>, ConfigError> {
    let place = |key: &str, text: &Option<String>| -> Result<Option<(usize, String)>, ConfigError> {
        let Some(text) = text else { return Ok(None) };
        let ip: IpAddr = address(&format!("ipam.{key}"), text)?;
        let owner = subnets.iter().position(|subnet| subnet.contains(&ip));
        let relative = || subnets.iter().position(|subnet| subnet.addr().is_ipv4() == ip.is_ipv4());
        Ok(Some((owner.or_else(relative).unwrap_or(0), text.clone())))
    };
    let start = place("rangeStart", &ipam.range_start)?;
    let end = place("rangeEnd", &ipam.range_end)?;
    let gateway = place("gateway", &ipam.gateway)?;
    let here = |index: usize, placed: &Option<(usize, String)>| {
        placed.as_ref().filter(|(owner, _)| *owner == index).map(|(_, text)| text.clone())
    };
    let lists = subnets.iter().enumerate().map(|(index, subnet)| {
        let at = format!("network {subnet}");
        let pool = low::Range {
            subnet: Some(subnet.to_string()),
            range_start: here(index, &start),
            range_end: here(index, &end),
            gateway: here(index, &gateway),
        };
        List { pools: vec![(at.clone(), pool)], at }
    });
    let mut lists: Vec<List> = lists.collect();
    // Beside `network`, the flat form is one more set, and refused if it overlaps.
    if ipam.subnet.is_some() {
        let plain = low::Ipam { subnet: ipam.subnet.clone(), ..low::Ipam::default() };
        lists.extend(flat(&plain));
    }
    Ok(lists)
}

/// A pool, checked.
fn range(index: usize, at: &str, low: &low::Range) -> Result<Range, ConfigError> {
    let Some(subnet) = &low.subnet else {
        return Err(ConfigError::NoSubnet { index, at: at.to_owned() });
    };
    let subnet = cidr(&format!("{at}.subnet"), subnet)?;
    let optional =
        |key: &str, text: &Option<String>| text.as_ref().map(|text| address(&format!("{at}.{key}"), text)).transpose();
    let start = optional("rangeStart", &low.range_start)?;
    let end = optional("rangeEnd", &low.range_end)?;
    let gateway = optional("gateway", &low.gateway)?;
    Range::new(subnet, start, end, gateway).map_err(refused(index, at))
}

/// A fault of a set, with its position and the path of its key.
fn refused(index: usize, at: &str) -> impl FnOnce(RangeError) -> ConfigError {
    move |source| ConfigError::RangeSet { index, at: at.to_owned(), source: Box::new(source) }
}
