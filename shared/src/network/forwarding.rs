//! Switching forwarding on, without harm to the host's own connection.
//!
//! It is never switched off again: by then others may count on it.

use super::Error;
use super::sysctl::Sysctl;
use crate::netlink::{RouteFilter, RouteSocket};

/// RTPROT_RA: the kernel's own routes from router advertisements, and those of daemons that handle them.
const ROUTER_ADVERTISEMENT: u8 = 9;

/// True if the host forwards packets of the family.
///
/// # Errors
/// The parameter cannot be read.
pub fn is_on(v6: bool) -> Result<bool, Error> {
    let switch = if v6 { Sysctl::ForwardV6 } else { Sysctl::ForwardV4 };
    Ok(switch.get()?.is_some_and(|value| value != "0"))
}

/// Switches forwarding of a family on, if it is off.
///
/// # Errors
/// The parameter cannot be set; [`Error::RouterAdvertisements`].
pub fn switch_on(socket: &mut RouteSocket, v6: bool) -> Result<(), Error> {
    if is_on(v6)? {
        return Ok(());
    }
    if !v6 {
        return Ok(Sysctl::ForwardV4.set("1")?);
    }
    keep_default_routes(socket)?;
    Ok(Sysctl::ForwardV6.set("1")?)
}

/// A host that forwards takes itself for a router, and drops the default routes that other routers
/// advertise (`rt6_purge_dflt_routers`), unless `accept_ra` of the device is 2.
fn keep_default_routes(socket: &mut RouteSocket) -> Result<(), Error> {
    let filter = RouteFilter { v6: Some(true), protocol: Some(ROUTER_ADVERTISEMENT), ..RouteFilter::default() };
    let routes = socket.routes(&filter)?;
    let hops = routes.iter().filter(|route| route.is_default()).flat_map(|route| &route.next_hops);
    let mut devices: Vec<u32> = hops.filter_map(|hop| hop.device).collect();
    devices.sort_unstable();
    devices.dedup();
    for index in devices {
        let Some(device) = socket.link_by_index(index)? else { continue };
        let accept = Sysctl::V6(&device.name, "accept_ra");
        let failed = |source| Error::RouterAdvertisements { device: device.name.clone(), source };
        // 0: a daemon handles the advertisements, and the kernel's switch does not concern it.
        if accept.get().map_err(failed)?.as_deref() == Some("1") {
            accept.set("2").map_err(failed)?;
            tracing::warn!(
                "{accept} is 2 now: {} keeps its router-advertised default route though IPv6 forwarding goes on",
                device.name
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::testing::in_new_netns;

    #[test]
    fn ln9_forwarding_goes_on_for_each_family() {
        in_new_netns(|| {
            let mut socket = RouteSocket::open().unwrap();
            Sysctl::ForwardV4.set("0").unwrap();
            Sysctl::ForwardV6.set("0").unwrap();
            for v6 in [false, true] {
                assert!(!is_on(v6).unwrap());
                switch_on(&mut socket, v6).unwrap();
                assert!(is_on(v6).unwrap());
                switch_on(&mut socket, v6).unwrap();
            }
        });
    }
}
