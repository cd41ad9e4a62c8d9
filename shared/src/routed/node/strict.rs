//! Underlays on which a peer is not heard while it sends plainly and this node by a tunnel.

use std::collections::BTreeSet;

use crate::network::sysctl::Sysctl;
use crate::routed::wanted::Wanted;

/// What is to be known of the devices by which peers send plainly, where the kernel drops what has its way back by
/// another device. It is nobody's fault as long as all nodes agree, and the host's to change.
pub(super) fn strict(wanted: &Wanted<'_>) -> Vec<String> {
    let devices: BTreeSet<&str> = wanted.plain_devices().collect();
    let strict = devices.into_iter().filter(|device| is_strict(device));
    let warning = |device: &str| {
        format!(
            "net.ipv4.conf.{device}.rp_filter is 1 in effect: while a peer there sends without a tunnel and this node \
             by one, as during a change of `tunnel`, what comes from it is dropped; 2 would let it in"
        )
    };
    strict.map(warning).collect()
}

/// The kernel takes the larger one of the device's own and that of all.
fn is_strict(device: &str) -> bool {
    let of = |device| {
        let text = Sysctl::V4(device, "rp_filter").get().ok().flatten();
        text.and_then(|text| text.parse::<u8>().ok()).unwrap_or(0)
    };
    of(device).max(of("all")) == 1
}
