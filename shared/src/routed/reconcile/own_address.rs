//! This node's address in the network, on its tunnels.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use super::{Kernel, Verb};
use crate::netlink::{Error, Link};

impl Kernel<'_> {
    /// Gives a tunnel this node's address in the network, beside the bridge that has it.
    ///
    /// Without any address `rp_filter` 2 is as strict as 1: what comes in by the tunnel, with a way back that leads
    /// elsewhere, is dropped (`no_addr` in `__fib_validate_source`). That is so while nodes disagree whether there is a
    /// tunnel between them.
    pub(super) fn own_address(&mut self, link: &Link, address: Ipv4Addr) -> Result<(), Error> {
        let bare = IpNet::from(IpAddr::V4(address));
        if self.socket.addresses(link)?.iter().any(|found| found.address == bare) {
            return Ok(());
        }
        let what = format_args!("address {address} of {}", link.name);
        self.step(Verb::Make, what, |socket| socket.add_bare_address(link, address)).map(drop)
    }
}
