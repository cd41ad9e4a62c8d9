//! The routes of a network.

use super::{Kernel, Verb};
use crate::netlink::{Error, RouteEntry, RouteSocket};
use crate::routed::wanted::WantedRoute;

impl Kernel<'_> {
    /// Has a route; `ours` are all routes of our protocol.
    pub fn route(&mut self, wanted: &WantedRoute, ours: &[RouteEntry]) -> Result<(), Error> {
        let WantedRoute { peer, route } = wanted;
        if ours.iter().any(|found| route.is(found)) {
            return Ok(());
        }
        let in_place = ours.iter().any(|found| route.is_in_place_of(found));
        let verb = if in_place { Verb::Change } else { Verb::Make };
        let put = |socket: &mut RouteSocket| socket.put_route(route, ours).map(drop);
        match peer {
            Some(peer) => self.step(verb, format_args!("route {route} to {peer}"), put),
            None => self.step(verb, format_args!("route {route}"), put),
        }
        .map(drop)
    }
}
