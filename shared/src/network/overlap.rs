//! Refusing a network whose addresses are somebody else's on this host.

use ipnet::IpNet;

use super::config::overlap;
use super::leaving::Leaving;
use super::setup::Site;
use super::{Error, NetworkRecord};
use crate::NetworkName;
use crate::netlink::route::MAIN;
use crate::netlink::{PROTOCOL, RouteEntry, RouteFilter, RouteSocket};

/// Refuses subnets that another network of ours has, here or on other nodes. Records count while their bridge is there.
///
/// # Errors
/// [`Error::OverlapsNetwork`], or the kernel does not answer.
pub fn with_networks(
    socket: &mut RouteSocket,
    name: &NetworkName,
    subnets: &[IpNet],
    others: &[NetworkRecord],
) -> Result<(), Error> {
    for other in others.iter().filter(|other| other.name != *name && !other.gateways.is_empty()) {
        let beyond = other.cluster.iter().flat_map(|cluster| &cluster.networks);
        let theirs: Vec<&IpNet> = other.subnets.iter().chain(beyond).collect();
        let pairs = subnets.iter().flat_map(|mine| theirs.iter().map(move |theirs| (mine, *theirs)));
        let Some((subnet, other_subnet)) = pairs.into_iter().find(|(mine, theirs)| overlap(mine, theirs)) else {
            continue;
        };
        if socket.link_by_name(other.device())?.is_none() {
            continue;
        }
        return Err(Error::OverlapsNetwork {
            name: name.clone(),
            subnet: *subnet,
            other: other.name.clone(),
            other_subnet: *other_subnet,
            bridge: other.bridge.clone(),
        });
    }
    Ok(())
}

impl Site<'_> {
    /// Refuses networks of a cluster of which addresses are somebody else's here: another network of ours has them, or
    /// the host has a route to them. This network's own bridge, routes with our mark, and what goes with the network are
    /// no objection.
    ///
    /// # Errors
    /// [`Error::OverlapsNetwork`], [`Error::OverlapsRoute`], or the kernel does not answer.
    pub fn refuse_whole(
        &mut self,
        name: &NetworkName,
        networks: &[IpNet],
        bridge: &str,
        leaving: Option<&Leaving>,
    ) -> Result<(), Error> {
        let others = self.others(name)?;
        with_networks(self.socket, name, networks, &others)?;
        let is_own =
            |route: &RouteEntry| route.protocol == PROTOCOL || leaving.is_some_and(|leaving| leaving.takes(route));
        let overlap = with_routes(self.socket, name, networks, |device| device == bridge, is_own);
        overlap.map_err(|error| self.explained(error, bridge, leaving))
    }

    /// A network overlaps itself on the bridge that its configuration named before: that can be told better.
    pub(super) fn explained(&self, error: Error, bridge: &str, leaving: Option<&Leaving>) -> Error {
        let Error::OverlapsRoute { name, device, route, .. } = &error else { return error };
        if let Some(leaving) = leaving {
            return match leaving.device.name == *device {
                true => Error::Stays { name: name.clone(), device: device.clone(), route: *route },
                false => error,
            };
        }
        match NetworkRecord::load(self.host, name) {
            Ok(Some(here)) if here.is_of(self.host, self.netns) && here.device() == device && here.bridge != bridge => {
                Error::Moved { name: name.clone(), from: here.bridge, to: bridge.to_owned() }
            }
            _ => error,
        }
    }
}

/// Refuses subnets to which the host has a route already, except by a device of its own, or one that is its own.
/// Default routes, and those that lead nowhere (unreachable, blackhole), are no objection.
///
/// # Errors
/// [`Error::OverlapsRoute`], or the kernel does not answer.
pub fn with_routes(
    socket: &mut RouteSocket,
    name: &NetworkName,
    subnets: &[IpNet],
    is_own_device: impl Fn(&str) -> bool,
    is_own: impl Fn(&RouteEntry) -> bool,
) -> Result<(), Error> {
    let counts = |route: &RouteEntry| !route.is_default() && route.is_unicast() && !is_own(route);
    for v6 in [false, true] {
        let mine: Vec<_> = subnets.iter().filter(|subnet| subnet.addr().is_ipv6() == v6).collect();
        if mine.is_empty() {
            continue;
        }
        let filter = RouteFilter { v6: Some(v6), table: Some(MAIN), ..RouteFilter::default() };
        for route in socket.routes(&filter)?.iter().filter(|route| counts(route)) {
            let Some(subnet) = mine.iter().find(|subnet| overlap(subnet, &route.dst)) else { continue };
            // By name: the bridge may have been made after the routes were listed, by another ADD.
            let device = route.next_hops.first().and_then(|hop| hop.device);
            let link = device.map(|index| socket.link_by_index(index)).transpose()?.flatten();
            let device = link.map_or_else(|| "a device that is gone".to_owned(), |link| link.name);
            if !is_own_device(&device) {
                return Err(Error::OverlapsRoute { name: name.clone(), subnet: **subnet, route: route.dst, device });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;
    use crate::netlink::testing::in_new_netns;
    use crate::netlink::{Link, Mac, NewBridge};

    fn bridge(socket: &mut RouteSocket, name: &str, addresses: &[&str]) -> Link {
        socket.create_bridge(&NewBridge { name, mac: Mac([2; 6]), mtu: 1500 }).unwrap();
        let link = socket.link_by_name(name).unwrap().unwrap();
        socket.set_up(&link, true).unwrap();
        for address in addresses {
            socket.add_address(&link, address.parse().unwrap(), false).unwrap();
        }
        link
    }

    fn subnets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn routes_of_the_host_are_named_but_not_the_bridges_own() {
        in_new_netns(|| {
            let mut socket = RouteSocket::open().unwrap();
            let name: NetworkName = "net".parse().unwrap();
            let lan = bridge(&mut socket, "lan0", &["10.22.4.1/24", "fd22::1/64"]);
            let mut check = |wanted: &[&str], own: &str| {
                with_routes(&mut socket, &name, &subnets(wanted), |device| device == own, |_| false)
                    .map_err(|error| error.to_string())
            };
            assert_eq!(
                check(&["10.22.0.0/16"], "obr_net").unwrap_err(),
                "network net: subnet 10.22.0.0/16 overlaps the host's route 10.22.4.0/24 on lan0: choose another subnet"
            );
            assert!(check(&["10.23.0.0/16", "fd22::/48"], "obr_net").unwrap_err().contains("fd22::/64 on lan0"));
            assert_eq!(check(&["10.22.0.0/16", "fd22::/64"], &lan.name), Ok(()));
            assert_eq!(check(&["10.23.0.0/16"], "obr_net"), Ok(()));
        });
    }

    #[test]
    fn networks_of_ours_are_named_while_their_bridge_is_there() {
        in_new_netns(|| {
            let mut socket = RouteSocket::open().unwrap();
            let name: NetworkName = "net".parse().unwrap();
            let mut other = record("other", &["10.22.0.0/16"]);
            other.gateways = vec!["10.22.0.1/16".parse().unwrap()];
            let mine = subnets(&["fd00::/64", "10.22.7.0/24"]);
            let others = [other];
            with_networks(&mut socket, &name, &mine, &others).unwrap();
            bridge(&mut socket, "obr_other", &[]);
            let error = with_networks(&mut socket, &name, &mine, &others).unwrap_err();
            assert_eq!(error.code(), crate::Code::InvalidConfig);
            assert!(error.to_string().contains("10.22.7.0/24 overlaps 10.22.0.0/16 of network other"), "{error}");
            with_networks(&mut socket, &others[0].name, &mine, &others).unwrap();
            with_networks(&mut socket, &name, &subnets(&["10.23.0.0/16"]), &others).unwrap();
        });
    }
}
