//! What follows from a result and its configuration, without the kernel.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::Route;
use crate::netlink::route::MAIN;
use crate::protocol::{CniResult, Ip};

/// The first address of a subnet: base + 1.
pub(super) fn first_address(net: &IpNet) -> Option<IpAddr> {
    match net.network() {
        IpAddr::V4(base) => u32::from(base).checked_add(1).map(|first| IpAddr::V4(first.into())),
        IpAddr::V6(base) => u128::from(base).checked_add(1).map(|first| IpAddr::V6(first.into())),
    }
}

/// A default route for each family that has a gateway, and no default route yet.
pub(super) fn default_routes(result: &CniResult) -> Vec<Route> {
    let any = [IpAddr::from([0; 4]), IpAddr::from([0; 16])];
    any.into_iter()
        .filter_map(|any| {
            let is_of_family = |ip: &IpAddr| ip.is_ipv6() == any.is_ipv6();
            let dst = IpNet::new(any, 0).ok()?;
            let gateway = result.ips.iter().find_map(|ip| ip.gateway.filter(is_of_family))?;
            // One in a table of its own is for what a rule sends there.
            let is_main = |route: &&Route| matches!(route.table, None | Some(0 | MAIN));
            let has_one = result.routes.iter().filter(is_main).any(|route| route.dst.trunc() == dst);
            (!has_one).then(|| Route::new(dst, Some(gateway)))
        })
        .collect()
}

/// Our result behind that of the plugins before us in the chain (CNI spec 1.1.0, "Passing results between plugins").
pub(super) fn joined(mut previous: CniResult, ours: CniResult) -> CniResult {
    let before = u32::try_from(previous.interfaces.len()).unwrap_or(u32::MAX);
    let moved = |ip: Ip| Ip { interface: ip.interface.map(|index| index.saturating_add(before)), ..ip };
    previous.interfaces.extend(ours.interfaces);
    previous.ips.extend(ours.ips.into_iter().map(moved));
    previous.routes.extend(ours.routes);
    if !ours.dns.is_empty() {
        previous.dns = ours.dns;
    }
    previous
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(ips: &[(&str, &str)], routes: &[&str]) -> CniResult {
        CniResult {
            ips: ips.iter().map(|(address, gateway)| Ip::new(address.parse().unwrap(), gateway.parse().ok())).collect(),
            routes: routes.iter().map(|dst| Route::new(dst.parse().unwrap(), None)).collect(),
            ..CniResult::default()
        }
    }

    #[test]
    fn the_first_address_is_base_plus_one() {
        let first = |net: &str| first_address(&net.parse().unwrap()).unwrap().to_string();
        assert_eq!(first("10.22.7.9/16"), "10.22.0.1");
        assert_eq!(first("10.22.0.254/24"), "10.22.0.1");
        assert_eq!(first("fd77::9/64"), "fd77::1");
    }

    #[test]
    fn br3_a_default_route_for_each_family_by_its_first_gateway() {
        let ips = [("10.0.0.5/24", "10.0.0.1"), ("fd77::5/64", "fd77::1"), ("fd88::5/64", "fd88::1")];
        let routes = default_routes(&result(&ips, &["1.0.0.0/8"]));
        let shown: Vec<_> = routes.iter().map(|route| format!("{} {}", route.dst, route.gw.unwrap())).collect();
        assert_eq!(shown, ["0.0.0.0/0 10.0.0.1", "::/0 fd77::1"]);
    }

    #[test]
    fn b4_2_a_default_route_of_ipam_is_enough_with_or_without_gateway() {
        let ips = [("10.0.0.5/24", "10.0.0.1"), ("fd77::5/64", "")];
        assert_eq!(default_routes(&result(&ips, &["0.0.0.0/0"])), []);
        assert_eq!(default_routes(&result(&ips[1..], &[])), []);
        let mut other = result(&ips, &["0.0.0.0/0"]);
        other.routes[0].table = Some(100);
        assert_eq!(default_routes(&other).len(), 1, "one of another table is no default route of the container");
    }

    #[test]
    fn c114_ours_comes_behind_the_previous_result_and_points_at_its_own_interface() {
        use crate::protocol::Interface;
        let named = |name: &str| Interface { name: name.to_owned(), ..Interface::default() };
        let previous = CniResult { interfaces: vec![named("lo")], ..result(&[("127.0.0.1/8", "")], &["1.0.0.0/8"]) };
        let mut ours = result(&[("10.0.0.5/24", "10.0.0.1")], &["0.0.0.0/0"]);
        ours.interfaces = ["br", "ov", "eth0"].map(named).to_vec();
        ours.ips[0].interface = Some(2);
        let both = joined(previous, ours);
        assert_eq!(
            both.interfaces.iter().map(|interface| interface.name.as_str()).collect::<Vec<_>>(),
            ["lo", "br", "ov", "eth0"]
        );
        assert_eq!(both.ips.iter().map(|ip| ip.interface).collect::<Vec<_>>(), [None, Some(3)]);
        assert_eq!(both.routes.len(), 2);
    }
}
