//! Where host ports lead: the container's addresses, out of the result of the plugins before.

use ipnet::IpNet;

use super::ConfigError;
use crate::attachment::Attachment;
use crate::protocol::{CniResult, Interface};

/// The container's addresses with the prefix length of their subnets: the first IPv4 and the first IPv6 one that
/// belongs to the attachment's interface, or to none (results of 0.2.0 have no interfaces).
///
/// # Errors
/// [`ConfigError::InterfaceIndex`], [`ConfigError::NoAddress`]: code 7.
pub fn targets(result: &CniResult, attachment: &Attachment) -> Result<Vec<IpNet>, ConfigError> {
    let (mut v4, mut v6) = (None, None);
    for (index, ip) in result.ips.iter().enumerate() {
        if let Some(interface) = ip.interface {
            let Some(of) = usize::try_from(interface).ok().and_then(|at| result.interfaces.get(at)) else {
                let (address, count) = (ip.address, result.interfaces.len());
                return Err(ConfigError::InterfaceIndex { index, address, interface, count });
            };
            if of.name != attachment.ifname.as_str() || is_of_host(of) {
                continue;
            }
        }
        (if ip.address.addr().is_ipv4() { &mut v4 } else { &mut v6 }).get_or_insert(ip.address);
    }
    let targets: Vec<IpNet> = [v4, v6].into_iter().flatten().collect();
    if targets.is_empty() { Err(ConfigError::NoAddress { attachment: attachment.clone() }) } else { Ok(targets) }
}

/// The name of the host end of the container's pair, if osvc-bridge made it.
pub fn host_end(result: &CniResult, attachment: &Attachment) -> Option<String> {
    let name = attachment.host_end();
    result.interfaces.iter().any(|interface| interface.name == name && is_of_host(interface)).then_some(name)
}

fn is_of_host(interface: &Interface) -> bool {
    interface.sandbox.as_deref().is_none_or(str::is_empty)
}
