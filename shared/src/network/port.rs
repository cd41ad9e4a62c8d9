//! The pair that joins a container to the bridge, seen from the host.

use std::time::{Duration, Instant};

use nix::errno::Errno;

use super::names::is_ours;
use super::sysctl::Sysctl;
use super::{Error, Vlans, vlan};
use crate::Attachment;
use crate::netlink::{Link, Mac, Netns, NewPair, RouteSocket};

mod sweep;

pub use sweep::{is_host_end, leftovers, sweep};

/// How long a port may take to forward, and how often it is asked.
const FORWARDING: Duration = Duration::from_millis(200);
/// See above.
const PAUSE: Duration = Duration::from_micros(300);

/// How long a pair may outlive its container's namespace, before it counts as a living container's.
const DYING: Duration = Duration::from_millis(500);

/// A pair to be made.
#[derive(Debug)]
pub struct NewPort<'a> {
    /// Whose it is.
    pub attachment: &'a Attachment,
    /// Where the container is.
    pub netns: &'a Netns,
    /// The bridge.
    pub bridge: &'a Link,
    /// MTU of both ends, in bytes.
    pub mtu: u32,
    /// MAC address of the container's end.
    pub mac: Mac,
    /// MAC address of the host end.
    pub host_mac: Mac,
    /// Hairpin mode.
    pub hairpin: bool,
    /// It is isolated from others that are.
    pub isolated: bool,
    /// Its VLANs.
    pub vlans: &'a Vlans,
    /// The description of the host end.
    pub alias: &'a str,
}

/// Makes the pair: the host end up, in the bridge and marked as ours, the container's end down. If
/// something fails, nothing is left.
///
/// # Errors
/// [`Error::Attached`], [`Error::HostEndTaken`], [`Error::InterfaceExists`], [`Error::Mac`]; the kernel refuses.
pub fn create(socket: &mut RouteSocket, new: &NewPort<'_>) -> Result<Link, Error> {
    let made = make(socket, new).and_then(|link| dress(socket, &link, new).map(|()| link));
    match &made {
        // Those of others are left alone. (Our own is gone: the kernel makes both ends or none.)
        Ok(_) | Err(Error::Attached { .. } | Error::HostEndTaken { .. } | Error::InterfaceExists { .. }) => {}
        // A lost answer says nothing of what the kernel did.
        Err(_) => {
            if let Err(error) = delete(socket, new.attachment) {
                tracing::error!("{}: not undone: {error}", new.attachment);
            }
        }
    }
    made
}

fn make(socket: &mut RouteSocket, new: &NewPort<'_>) -> Result<Link, Error> {
    let (host, ifname) = (new.attachment.host_end(), new.attachment.ifname.as_str());
    let pair = NewPair {
        host: &host,
        host_mac: new.host_mac,
        master: new.bridge.index,
        peer: ifname,
        peer_mac: new.mac,
        netns: new.netns,
        mtu: new.mtu,
    };
    match socket.create_pair(&pair) {
        Err(error) if error.is(Errno::EEXIST) => {
            if socket.link_by_name(&host)?.is_none() {
                return Err(Error::InterfaceExists { ifname: ifname.to_owned(), host_end: host });
            }
            clear_leftover(socket, new.attachment)?;
            socket.create_pair(&pair)?;
        }
        Err(source) if source.is(Errno::EADDRNOTAVAIL) => return Err(Error::Mac { mac: new.mac, source }),
        made => made?,
    }
    // Its number is needed, and the peer's: before 6.18 or so the request that makes them does not tell (NLM_F_ECHO).
    socket.link_by_name(&host)?.ok_or(Error::Vanished(host))
}

fn dress(socket: &mut RouteSocket, link: &Link, new: &NewPort<'_>) -> Result<(), Error> {
    socket.set_alias(link, new.alias)?;
    if new.hairpin {
        socket.set_hairpin(link, true)?;
    }
    // The other end is still down: nothing has passed in the default VLAN.
    if new.vlans.filter()
        && let Some(want) = vlan::of_port(new.vlans, false, new.bridge)
    {
        vlan::settle(socket, link, &vlan::of_new_port(new.bridge), &want)?;
    }
    if new.isolated {
        socket.set_isolated(link, true)?;
    }
    // As the reference plugin: a container is no router of the host.
    Sysctl::V6(&link.name, "accept_ra").prefer("0");
    Ok(())
}

/// Waits until frames pass the port. The kernel does that behind the back of whoever sets the other end up
/// (`linkwatch`), in a moment; a foreign bridge with spanning tree takes half a minute, which is not waited for.
///
/// # Errors
/// The kernel does not answer.
pub fn await_forwarding(socket: &mut RouteSocket, port: &Link) -> Result<(), Error> {
    let deadline = Instant::now() + FORWARDING;
    loop {
        match socket.link_by_index(port.index)? {
            Some(link) if !link.forwarding && Instant::now() < deadline => std::thread::sleep(PAUSE),
            Some(link) => {
                if !link.forwarding {
                    tracing::info!("{} does not forward yet: is there a spanning tree on its bridge?", port.name);
                }
                return Ok(());
            }
            None => return Ok(()),
        }
    }
}

/// Deletes the host end of this attachment if it is left over: ours, and its other end dead or dying.
///
/// # Errors
/// [`Error::Attached`] if it lives, [`Error::HostEndTaken`] if it is not ours.
pub fn clear_leftover(socket: &mut RouteSocket, attachment: &Attachment) -> Result<(), Error> {
    let host_end = attachment.host_end();
    let Some(link) = socket.link_by_name(&host_end)? else { return Ok(()) };
    if !(link.is_a("veth") && is_ours(&link)) {
        return Err(Error::HostEndTaken { attachment: attachment.clone(), host_end });
    }
    if !is_ending(socket, &link)? {
        return Err(Error::Attached { attachment: Box::new(attachment.clone()), host_end, netns: None });
    }
    tracing::warn!("{host_end} is left over from a container that is gone: deleted");
    Ok(socket.delete_link(&link)?)
}

/// True if the other end of a pair is gone, or goes within [`DYING`]: a namespace that was deleted a moment ago is cleared
/// away in the background.
fn is_ending(socket: &mut RouteSocket, link: &Link) -> Result<bool, Error> {
    let deadline = Instant::now() + DYING;
    while socket.peer_is_alive(link)? {
        if Instant::now() > deadline {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(true)
}

/// Deletes the pair of an attachment by its host end, whatever became of the container. True if there
/// was one.
///
/// # Errors
/// The kernel refuses.
pub fn delete(socket: &mut RouteSocket, attachment: &Attachment) -> Result<bool, Error> {
    match socket.link_by_name(&attachment.host_end())? {
        Some(link) if link.is_a("veth") && is_ours(&link) => {
            socket.delete_link(&link)?;
            Ok(true)
        }
        Some(link) => {
            tracing::warn!("{} is not ours: left alone", link.name);
            Ok(false)
        }
        None => Ok(false),
    }
}

/// The host end of an interface that the reference plugin made: the other end of `ifname` in the
/// container's namespace, if that is a port of the bridge.
///
/// # Errors
/// The kernel does not answer.
pub fn reference_host_end(
    socket: &mut RouteSocket,
    inside: &mut RouteSocket,
    ifname: &str,
    bridge: u32,
) -> Result<Option<Link>, Error> {
    let Some(peer) = inside.link_by_name(ifname)?.filter(|link| link.is_a("veth")).and_then(|link| link.peer) else {
        return Ok(None);
    };
    let there = inside.link_by_name(ifname)?.map(|link| link.index);
    let host = socket.link_by_index(peer)?.filter(|link| is_reference_port(link, bridge));
    // The numbers must fit both ways: the other end may be in a third namespace.
    Ok(host.filter(|host| host.peer.is_some() && host.peer == there))
}

/// True for a veth that is a port of the bridge and not one of ours.
pub fn is_reference_port(link: &Link, bridge: u32) -> bool {
    link.is_a("veth") && link.master == Some(bridge) && !is_ours(link)
}

#[cfg(test)]
#[path = "port_tests.rs"]
mod tests;
