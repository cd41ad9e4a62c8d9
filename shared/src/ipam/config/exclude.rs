//! `ipam.exclude`: addresses that are given only when asked for.

use std::net::IpAddr;

use ipnet::IpNet;

use super::ConfigError;
use crate::ipam::range::compare;

/// Addresses, subnets and spans `first-last` as inclusive spans.
pub(super) fn spans(texts: &[String]) -> Result<Vec<(IpAddr, IpAddr)>, ConfigError> {
    let span = |(index, text): (usize, &String)| {
        span(text).map_err(|reason| ConfigError::Exclude {
            text: text.clone(),
            reason,
            at: format!("ipam.exclude[{index}]"),
        })
    };
    texts.iter().enumerate().map(span).collect()
}

fn span(text: &str) -> Result<(IpAddr, IpAddr), &'static str> {
    const FORMS: &str = "it is no address, no subnet and no span `first-last`";
    let address = |text: &str| text.trim().parse::<IpAddr>().map(|ip| ip.to_canonical()).map_err(|_| FORMS);
    if let Some((first, last)) = text.split_once('-') {
        let (first, last) = (address(first)?, address(last)?);
        return match compare(first, last) {
            None => Err("its ends are of two address families"),
            Some(std::cmp::Ordering::Greater) => Err("its first address is behind its last"),
            Some(_) => Ok((first, last)),
        };
    }
    if text.contains('/') {
        let subnet: IpNet = text.trim().parse().map_err(|_| FORMS)?;
        // Whoever writes 10.0.0.5/24 may mean the one address.
        return if subnet.trunc() == subnet {
            Ok((subnet.network(), subnet.broadcast()))
        } else {
            Err("it has host bits set: write the address alone, or the network address of the subnet")
        };
    }
    address(text).map(|ip| (ip, ip))
}
