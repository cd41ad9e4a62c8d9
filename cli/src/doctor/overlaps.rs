//! Networks whose addresses are somebody else's here as well.

use osvc_cni::netlink::{PROTOCOL, RouteEntry, RouteSocket};
use osvc_cni::network::Error;
use osvc_cni::network::overlap::with_routes;

use super::{Report, Subject};
use crate::conf::BRIDGE;
use crate::nodes::ROUTED;

/// Routes of the host to addresses of a network, and networks that share addresses.
pub fn look(report: &mut Report, subjects: &[Subject<'_>]) {
    // Of other plugins, the addresses may be those of the host's own neighbourhood.
    let is_set_up_here =
        |subject: &&Subject<'_>| [BRIDGE, ROUTED].iter().any(|kind| subject.network.plugin(kind).is_some());
    let shapes = || {
        let ours = subjects.iter().filter(is_set_up_here);
        ours.filter_map(|subject| Some((&subject.network.name, subject.shape.as_ref()?)))
    };
    for (index, (name, shape)) in shapes().enumerate() {
        for (other, theirs) in shapes().skip(index + 1) {
            let pairs = shape.networks.iter().flat_map(|mine| theirs.networks.iter().map(move |theirs| (mine, theirs)));
            let Some((mine, theirs)) = pairs.into_iter().find(|(a, b)| a.contains(*b) || b.contains(*a)) else {
                continue;
            };
            report.add(
                "networks-overlap",
                Some(name),
                format!("subnet {mine} overlaps {theirs} of network {other}"),
                "only one of the two can be set up on a host: containers of the other do not start",
                format!("change the subnet of network {name} or of network {other}, then osvc-net setup"),
            );
        }
    }
    let mut socket = match RouteSocket::open() {
        Ok(socket) => socket,
        Err(error) => return report.cannot_tell(None, "the host's routes", &error),
    };
    // Without a gateway here, the host has no part in the addresses. What is not set up is refused by setup: see there.
    for subject in subjects {
        let (Some(shape), Some(record)) = (&subject.shape, &subject.record) else { continue };
        if record.gateways.is_empty() {
            continue;
        }
        let name = &subject.network.name;
        let is_own_device = |device: &str| record.device() == device;
        let is_own = |route: &RouteEntry| route.protocol == PROTOCOL;
        match with_routes(&mut socket, name, &shape.networks, is_own_device, is_own) {
            Ok(()) => {}
            Err(Error::OverlapsRoute { subnet, route, device, .. }) => report.add(
                "route-overlap",
                Some(name),
                format!("subnet {subnet} overlaps the host's route {route} on {device}"),
                "addresses of containers and of that route are the same: packets go to the wrong one",
                format!("ip route show {route}   # whose is it? remove it there, or choose another subnet"),
            ),
            Err(error) => report.cannot_tell(Some(name), "whether the host's routes overlap it", &error),
        }
    }
}
