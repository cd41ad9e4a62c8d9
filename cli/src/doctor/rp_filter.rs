//! Devices that drop what comes by another way than it would be answered.

use std::collections::BTreeMap;

use osvc_cni::network::sysctl::Sysctl;

use super::{Report, Subject};

/// The devices by which other nodes of routed networks send, each with a tunnel or directly.
pub fn look(report: &mut Report, subjects: &[Subject<'_>]) {
    for subject in subjects {
        let Some(routed) = &subject.routed else { continue };
        // While nodes disagree about the way, packets come by one and are answered by the other.
        let tunnels = routed.tunnels.iter().map(|tunnel| (tunnel.name.as_str(), "tunnel"));
        let direct = routed.peers.iter().flat_map(|peer| &peer.ways).filter(|way| !way.tunnel);
        let devices: BTreeMap<&str, &str> =
            direct.map(|way| (way.device.as_str(), "direct way")).chain(tunnels).collect();
        for (device, kind) in devices {
            match strict(device) {
                Ok(false) => {}
                Ok(true) => report.add(
                    "rp-filter",
                    Some(&routed.name),
                    format!(
                        "net.ipv4.conf.{device}.rp_filter is 1 in effect (its own or that of `all`), on a {kind} to \
                         other nodes"
                    ),
                    "what another node sends by this device is dropped whenever this node would answer by another one, \
                     as while `tunnel` or the mode is changed node by node",
                    format!("echo 2 > /proc/sys/net/ipv4/conf/{device}/rp_filter   # and in /etc/sysctl.d, to stay"),
                ),
                Err(error) => report.cannot_tell(Some(&routed.name), &format!("rp_filter of {device}"), &error),
            }
        }
    }
}

/// The kernel takes the larger one of the device's own and that of all.
fn strict(device: &str) -> Result<bool, osvc_cni::netlink::Error> {
    let value = |device| {
        let text = Sysctl::V4(device, "rp_filter").get()?;
        Ok(text.and_then(|text| text.parse::<u8>().ok()).unwrap_or(0))
    };
    Ok(value(device)?.max(value("all")?) == 1)
}
