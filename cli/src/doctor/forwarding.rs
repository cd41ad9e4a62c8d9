//! A host that does not forward.

use std::collections::BTreeSet;

use osvc_cni::netlink::route::MAIN;
use osvc_cni::netlink::{self, RouteFilter, RouteSocket};
use osvc_cni::network::forwarding;
use osvc_cni::network::sysctl::Sysctl;

use super::{Report, Subject};

/// Forwarding, of the host and of the devices by which packets of networks come in.
pub fn look(report: &mut Report, subjects: &[Subject<'_>]) {
    let mut needed = false;
    for record in subjects.iter().filter_map(|subject| subject.record.as_ref()) {
        let name = &record.name;
        for v6 in [false, true] {
            if !record.gateways.iter().any(|gateway| gateway.addr().is_ipv6() == v6) {
                continue;
            }
            let all = if v6 { Sysctl::ForwardV6 } else { Sysctl::ForwardV4 };
            match forwarding::is_on(v6) {
                Ok(true) if v6 => {}
                Ok(true) => {
                    needed = true;
                    of_device(report, record.device());
                }
                Ok(false) => {
                    let what = format!("/proc/sys/{all} is 0");
                    let why = "what containers send goes no further than this host, and nothing comes back to them";
                    report.add("forwarding-off", Some(name), what, why, format!("osvc-net setup {name}"));
                }
                Err(error) => report.cannot_tell(Some(name), "whether this host forwards", &error),
            }
        }
    }
    if !needed {
        return;
    }
    match uplinks(subjects) {
        Ok(devices) => devices.iter().for_each(|device| of_device(report, device)),
        Err(error) => report.cannot_tell(None, "by which devices answers come", &error),
    }
}

/// The kernel asks the device by which a packet comes in, of IPv4 alone: that of IPv6 makes a host or a router of it.
fn of_device(report: &mut Report, device: &str) {
    let switch = Sysctl::V4(device, "forwarding");
    match switch.get() {
        Ok(Some(value)) if value == "0" => report.add(
            "forwarding-off",
            None,
            format!("/proc/sys/{switch} is 0"),
            format!("what comes in by {device} for containers, or from them, goes no further"),
            format!(
                "echo 1 > /proc/sys/{switch}   # whoever set it may do so again: systemd-networkd (IPv4Forwarding=)?"
            ),
        ),
        Ok(_) => {}
        Err(error) => report.cannot_tell(None, &format!("whether {device} forwards"), &error),
    }
}

/// The devices by which the world answers, and by which other nodes send plainly.
fn uplinks(subjects: &[Subject<'_>]) -> Result<BTreeSet<String>, netlink::Error> {
    let mut socket = RouteSocket::open()?;
    let filter = RouteFilter { v6: Some(false), table: Some(MAIN), ..RouteFilter::default() };
    let mut devices = BTreeSet::new();
    for route in socket.routes(&filter)?.iter().filter(|route| route.is_default() && route.is_unicast()) {
        for index in route.next_hops.iter().filter_map(|hop| hop.device) {
            devices.extend(socket.link_by_index(index)?.map(|link| link.name));
        }
    }
    let routed = subjects.iter().filter_map(|subject| subject.routed.as_ref());
    devices.extend(routed.flat_map(|routed| &routed.peers).flat_map(|peer| &peer.ways).map(|way| way.device.clone()));
    Ok(devices)
}
