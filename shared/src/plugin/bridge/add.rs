//! ADD: everything is validated, then made, and undone in reverse if something fails.

mod pair;
mod sources;
mod undo;

use std::path::{Path, PathBuf};

use super::super::ipam;
use super::result::{default_routes, first_address, joined};
use super::{Network, Source};
use crate::ipam::Lease;
use crate::ipam::key::Key;
use crate::ipam::record::HostEnd;
use crate::netlink::{Link, Mac, Netns, RouteSocket};
use crate::network::container::{Inside, Interface as InterfaceWanted};
use crate::network::port;
use crate::network::setup::{Setup, Site};
use crate::network::{self, Wanted};
use crate::protocol::{Call, CniResult, Command, delegate};
use crate::routed::node;
use crate::{Attachment, Error, firewall, ipam as addresses, portmap};

/// The index of the container's interface in the result.
const CONTAINER: u32 = 2;

/// Attaches a container.
pub(in crate::plugin) fn add(call: &Call, attachment: &Attachment, network: &Network) -> Result<CniResult, Error> {
    let mac = network.low.mac(call.args.get("MAC"))?;
    let previous = call.config.prev_result()?;
    if matches!(network.source, Source::Nobody) {
        // A result of the oldest versions is addresses: refused before anything is made.
        CniResult::default().check_version(call.version)?;
    }
    let path = call.netns.as_deref().unwrap_or(Path::new(""));
    let home = Netns::current()?;
    let netns = Netns::open(path).map_err(network::Error::Netns)?;
    let mut inside = Inside::open(&netns, &home)?;
    if inside.interface(attachment.ifname.as_str())?.is_some() {
        let (ifname, host_end) = (attachment.ifname.to_string(), attachment.host_end());
        return Err(network::Error::InterfaceExists { ifname, host_end }.into());
    }
    let mut socket = RouteSocket::open()?;
    port::clear_leftover(&mut socket, attachment).map_err(|error| network.located(call, error))?;
    let host_netns = home.id_of_thread()?;
    let mut site = Site { host: &call.host, netns: &host_netns, socket: &mut socket };
    let mut setup = None;
    if let Some(wanted) = network.wanted() {
        setup = site.in_place(&wanted)?;
        if setup.is_none() {
            site.refuse(&wanted)?;
        }
        if let Some(member) = &network.member {
            member.refuse(&mut site, setup.is_some())?;
        }
    }
    let mut adding =
        Adding { call, attachment, network, mac, site, inside, netns: &netns, setup, made: Made::default() };
    let result = adding.attach().inspect_err(|_| adding.undo())?;
    Ok(match previous {
        Some(previous) => joined(previous, result),
        None => result,
    })
}

/// An ADD under way.
struct Adding<'a> {
    call: &'a Call,
    attachment: &'a Attachment,
    network: &'a Network,
    /// The MAC address that was asked for.
    mac: Option<Mac>,
    site: Site<'a>,
    inside: Inside<'a>,
    netns: &'a Netns,
    setup: Option<Setup>,
    made: Made,
}

/// What was made, for the way back.
#[derive(Default)]
struct Made {
    lease: Option<Lease>,
    /// The plugin that gave the addresses.
    delegated: Option<String>,
    /// Its sources are checked.
    checked: bool,
    port: Option<Link>,
}

impl Adding<'_> {
    fn attach(&mut self) -> Result<CniResult, Error> {
        if let Some(member) = &self.network.member {
            member.settle(&self.call.host)?;
        }
        let (mut result, key) = self.addresses()?;
        result.check_version(self.call.version)?;
        self.fill(&mut result);
        let wanted = self.network.wanted().unwrap_or_else(|| self.wanted_by(&result));
        self.establish(&wanted)?;
        let mac = self.container_mac(&result);
        let host = self.make_port(&result, key.as_ref(), mac, &wanted)?;
        let link =
            Link { index: host.peer.unwrap_or_default(), name: self.attachment.ifname.to_string(), ..Link::default() };
        let addresses: Vec<_> = result.ips.iter().map(|ip| (ip.address, ip.gateway)).collect();
        let config = &self.network.config;
        result.routes = self.inside.configure(
            &link,
            &InterfaceWanted {
                addresses: &addresses,
                routes: &result.routes,
                detect_duplicates: config.detect_duplicates,
                up: config.up,
            },
        )?;
        if config.up {
            port::await_forwarding(self.site.socket, &host)?;
            self.inside.announce(&link, mac)?;
        }
        self.describe(&mut result, &host, mac);
        Ok(result)
    }

    /// Addresses, routes and resolver settings, from whoever gives them.
    fn addresses(&mut self) -> Result<(CniResult, Option<Key>), Error> {
        match &self.network.source {
            Source::Nobody => Ok((CniResult::default(), None)),
            Source::Ours(config) => {
                let mut result =
                    CniResult { dns: config.load_dns()?, routes: config.routes.clone(), ..CniResult::default() };
                let host_end = HostEnd { ifname: self.attachment.host_end(), netns: self.site.netns.clone() };
                let netns: (PathBuf, _) = (self.netns.path().to_owned(), Some(self.inside.id.clone()));
                let (lease, key) = ipam::allocate(self.call, config, self.attachment, Some(netns), Some(host_end))?;
                result.ips = ipam::ips(&lease);
                self.made.lease = Some(lease);
                Ok((result, Some(key)))
            }
            Source::Delegate(plugin) => {
                // Also when it fails: what it has taken by then is known to it alone.
                self.made.delegated = Some(plugin.clone());
                let given = delegate(self.call, plugin, Command::Add, Some(self.attachment))?.unwrap_or_default();
                if given.ips.is_empty() {
                    return Err(network::Error::NoAddress(self.call.network.clone()).into());
                }
                // Its interfaces are nobody's here, and the JSON that it printed is not ours to print.
                Ok((CniResult { ips: given.ips, routes: given.routes, dns: given.dns, ..CniResult::default() }, None))
            }
        }
    }

    /// What follows from the configuration: gateways, default routes, resolver settings.
    fn fill(&self, result: &mut CniResult) {
        let config = &self.network.config;
        for ip in &mut result.ips {
            ip.interface = Some(CONTAINER);
            if config.is_gateway && ip.gateway.is_none() {
                ip.gateway = first_address(&ip.address);
            }
        }
        if config.is_default_gateway {
            result.routes.extend(default_routes(result));
        }
        if let Some(member) = &self.network.member {
            result.routes.extend(member.container_routes(result));
        }
        if let Some(dns) = &config.dns {
            result.dns = dns.clone();
        }
    }

    fn wanted_by(&self, result: &CniResult) -> Wanted {
        Wanted::new(&self.network.config, result.ips.iter().map(|ip| (ip.address, ip.gateway)), None)
    }

    /// The network itself and its rules. In place as a rule; then nothing is done.
    fn establish(&mut self, wanted: &Wanted) -> Result<(), Error> {
        if self.network.member.is_none() {
            self.leave_cluster();
        }
        let setup = match self.setup.take() {
            Some(setup) => setup,
            None => match &self.network.member {
                Some(member) => {
                    let wanted = member.sized(&mut self.site, wanted)?;
                    self.site.establish(&wanted)?
                }
                None => self.site.establish(wanted)?,
            },
        };
        let setup = self.setup.insert(setup);
        let is_new = setup.is_new();
        let changed = match &self.network.member {
            Some(member) => member.establish(&mut self.site)?,
            None => false,
        };
        // A new one is not looked up first: somebody may be about to remove what an undone ADD of before had made.
        if is_new || changed || !firewall::in_place(&self.call.host, &setup.record)? {
            firewall::apply(&self.call.host)?;
        }
        self.restore_ports(is_new);
        Ok(())
    }

    /// What the network had when it was a routed one goes. No reason for the ADD to fail: it needs none of that.
    fn leave_cluster(&mut self) {
        let Site { host, netns, socket } = &mut self.site;
        match node::leave(host, netns, socket, &self.call.network) {
            Ok(changes) => changes.iter().for_each(|change| tracing::info!("network {}: {change}", self.call.network)),
            Err(error) => tracing::warn!("network {}: {error}", self.call.network),
        }
    }

    /// Published ports that somebody flushed come back with whatever container starts next. No reason for it to fail.
    fn restore_ports(&self, bridge_is_new: bool) {
        let host = &self.call.host;
        // A bridge that was deleted and made again has lost what lets 127.0.0.1 through. The tables first: they keep it to
        // this host.
        let reopen = || if bridge_is_new { portmap::reopen(host, &self.call.network) } else { Ok(()) };
        if let Err(error) = portmap::restore(host).and_then(|_| reopen()) {
            tracing::warn!("published ports were not looked after: {error}");
        }
    }
}

impl Network {
    /// An attachment that lives, with the namespace where it does: what an operator has to look at.
    fn located(&self, call: &Call, error: network::Error) -> network::Error {
        match (error, &self.source) {
            (network::Error::Attached { attachment, host_end, .. }, Source::Ours(config)) => {
                let netns = addresses::netns_of(&call.host, config, &attachment).ok().flatten();
                network::Error::Attached { attachment, host_end, netns }
            }
            (error, _) => error,
        }
    }
}
