//! This node as a member of a cluster: what a routed network has beyond the bridge of this node.

use std::cell::Cell;

use ipnet::IpNet;

use crate::ipam::config::IpamConfig;
use crate::netlink::RouteSocket;
use crate::netlink::route::MAIN;
use crate::network::leaving::Leaving;
use crate::network::names::is_ours;
use crate::network::setup::{Site, locked};
use crate::network::{self, BridgeConfig, NetworkRecord, Wanted};
use crate::protocol::{Call, CniResult};
use crate::routed::config::Node;
use crate::routed::peer_file::{self, PeerFile};
use crate::routed::resolution::Resolution;
use crate::routed::segments::Witness;
use crate::routed::{self, Plan, RoutedConfig, identity, node, segments};
use crate::{Error, Host, Route, firewall};

/// This node as a member of a cluster.
#[derive(Debug)]
pub(in crate::plugin) struct Member {
    pub(super) config: RoutedConfig,
    pub(super) plan: Plan,
    /// What the network should have, in bytes, once that was found out.
    mtu: Cell<Option<u32>>,
    /// The ways to the peers were found in place a moment ago.
    placed: Cell<bool>,
}

impl Member {
    /// By the configuration of a call, and by what is recorded. Nothing is written.
    ///
    /// # Errors
    /// The configuration cannot be used, or gives this node no segment.
    pub(in crate::plugin) fn of(call: &Call) -> Result<Self, Error> {
        let mut config = RoutedConfig::from_call(call)?;
        let plan = segments::preview(&call.host, &mut config, &Shown(&call.host))?;
        Ok(Self { config, plan, mtu: Cell::default(), placed: Cell::default() })
    }

    /// The bridge of this node, with its segments.
    pub(in crate::plugin) fn bridge(&self) -> BridgeConfig {
        self.config.bridge_with(self.plan.here().to_vec())
    }

    /// How this node gives addresses of its segments.
    ///
    /// # Errors
    /// The configuration cannot be used, or adds addresses of elsewhere: no other node would find them.
    pub(in crate::plugin) fn addresses(&self, call: &Call) -> Result<IpamConfig, Error> {
        let addresses = IpamConfig::from_call_and_subnets(call, self.plan.here())?;
        let here = |subnet: &IpNet| self.plan.here().iter().any(|segment| segment.contains(subnet));
        match addresses.sets.iter().flat_map(|set| &set.0).find(|range| !here(&range.subnet)) {
            None => Ok(addresses),
            Some(range) => {
                let (network, segments) = (self.config.name.clone(), self.plan.here().to_vec());
                Err(routed::Error::OutsideSegment { network, subnet: range.subnet, segments }.into())
            }
        }
    }

    /// Says why the network could not be set up, before anything is changed; nothing if the `bridge` is in place and the
    /// ways to the peers are. Names are looked up that never were.
    ///
    /// # Errors
    /// The cluster's network is partly somebody else's, or the kernel lacks what the tunnels are made of.
    pub(in crate::plugin) fn refuse(&self, site: &mut Site<'_>, bridge: bool) -> Result<(), Error> {
        if bridge {
            self.placed.set(self.in_place(site)?);
            return if self.placed.get() { Ok(()) } else { self.refuse_kinds(site) };
        }
        self.refuse_overlaps(site, None)?;
        self.mtu.set(Some(node::network_mtu(site.host, site.socket, &self.config, &self.plan)?));
        self.refuse_identity(site)?;
        self.refuse_kinds(site)
    }

    pub(super) fn refuse_overlaps(&self, site: &mut Site<'_>, leaving: Option<&Leaving>) -> Result<(), Error> {
        let networks: Vec<IpNet> = self.plan.networks().iter().map(|planned| planned.network).collect();
        Ok(site.refuse_whole(&self.config.name, &networks, &self.config.bridge.bridge.name, leaving)?)
    }

    /// By the addresses that were looked up by now.
    fn refuse_identity(&self, site: &mut Site<'_>) -> Result<(), Error> {
        if !self.plan.is_first() {
            return Ok(());
        }
        let resolution = Resolution::load(site.host, &self.config.name)?;
        Ok(identity::refuse(&self.config, &resolution, site.socket)?)
    }

    pub(super) fn refuse_kinds(&self, site: &mut Site<'_>) -> Result<(), Error> {
        match node::missing_kind(site.host, site.socket, &self.config, &self.plan) {
            Ok(None) => Ok(()),
            Ok(Some(source)) => Err(routed::Error::NoKind { network: self.config.name.clone(), source }.into()),
            Err(error) => {
                tracing::debug!("network {}: kinds of tunnels were not tried: {error}", self.config.name);
                Ok(())
            }
        }
    }

    /// STATUS: would an ADD be able to set the network up? Nothing is looked up by name.
    ///
    /// # Errors
    /// Why not; nothing if the network is in place.
    pub(in crate::plugin) fn available(&self, site: &mut Site<'_>) -> Result<(), Error> {
        if self.in_place(site)? {
            return Ok(());
        }
        self.refuse_overlaps(site, None).map_err(|error| match error {
            Error::Network(error) => network::Error::WouldFail(Box::new(error)).into(),
            error => error,
        })?;
        self.refuse_identity(site)?;
        self.refuse_kinds(site)
    }

    pub(super) fn in_place(&self, site: &mut Site<'_>) -> Result<bool, Error> {
        Ok(node::in_place(site.host, site.netns, site.socket, &self.config, &self.plan)?)
    }

    /// Records which segment is whose, before anything is made of it.
    ///
    /// # Errors
    /// The record cannot be written, or became another one meanwhile.
    pub(in crate::plugin) fn settle(&self, host: &Host) -> Result<(), Error> {
        if !self.plan.is_new() {
            return Ok(());
        }
        let settled = segments::settle(host, &self.config, &Shown(host))?;
        if settled.here() != self.plan.here() || settled.networks() != self.plan.networks() {
            return Err(routed::Error::PlanChanged(self.config.name.clone()).into());
        }
        if self.plan.is_first() && !self.config.fixes_all_others() {
            tracing::info!(
                "network {}: this node takes {:?} by its place in `nodes`, of which not all have `subnet`: if nodes were \
                 removed or moved since the others were set up, `osvc-net conf add-node` on one of them says which one \
                 is free",
                self.config.name,
                self.plan.here()
            );
        }
        Ok(())
    }

    /// The network as wanted, with the MTU that gets through to all peers. Names are looked up that never were.
    ///
    /// # Errors
    /// The kernel does not answer, or what was looked up cannot be recorded.
    pub(in crate::plugin) fn sized(&self, site: &mut Site<'_>, wanted: &Wanted) -> Result<Wanted, Error> {
        let mtu = match self.mtu.get() {
            Some(mtu) => mtu,
            None => node::network_mtu(site.host, site.socket, &self.config, &self.plan)?,
        };
        Ok(Wanted { mtu: Some(mtu), ..wanted.clone() })
    }

    /// Routes and tunnels to the other nodes, unless they are in place. A peer for whom there are none is told in the
    /// log, and costs nobody else anything. True if something was done.
    ///
    /// # Errors
    /// The kernel does not answer, or the record cannot be written.
    pub(in crate::plugin) fn establish(&self, site: &mut Site<'_>) -> Result<bool, Error> {
        if self.placed.take() || self.in_place(site)? {
            self.republish(site.host);
            return Ok(false);
        }
        let Site { host, netns, socket } = site;
        let outcome = node::establish(host, netns, socket, &self.config, &self.plan, &firewall::apply)?;
        let Some(outcome) = outcome else { return Ok(true) };
        let network = &self.config.name;
        for change in &outcome.changes {
            tracing::info!("network {network}: {change}");
        }
        for (node, fault) in &outcome.faults {
            tracing::warn!("network {network}: {node}: {fault}");
        }
        for warning in &outcome.warnings {
            tracing::warn!("network {network}: {warning}");
        }
        Ok(true)
    }

    /// The peer file, and those who are told of it. For packets it makes no difference.
    fn republish(&self, host: &Host) {
        if let Err(error) = peer_file::look_after(host, &self.config) {
            tracing::error!("network {}: {error}", self.config.name);
        }
    }

    /// Removes routes and tunnels of a network that was set up in vain, unless somebody has set it up since.
    ///
    /// # Errors
    /// What could not be removed; the rest was.
    pub(in crate::plugin) fn remove(&self, site: &mut Site<'_>) -> Result<(), Error> {
        let name = &self.config.name;
        // Whoever sets it up makes the record first, under this lock, and then routes and tunnels.
        let removed = locked(site.host, || match NetworkRecord::load(site.host, name)? {
            Some(_) => Ok(None),
            None => Ok(Some(
                PeerFile::remove(site.host, name).and_then(|()| node::remove(site.host, site.netns, site.socket, name)),
            )),
        })?;
        Ok(removed.transpose().map(drop)?)
    }

    /// CHECK: routes and tunnels are there, each peer can be reached, and the configuration agrees with the record.
    ///
    /// # Errors
    /// What is missing, or what the configuration would change.
    pub(in crate::plugin) fn check(&self, site: &mut Site<'_>) -> Result<(), Error> {
        let looked = node::look(site.host, site.netns, site.socket, &self.config, &self.plan)?;
        let missing: Vec<String> = looked.all().collect();
        if !missing.is_empty() {
            return Err(routed::Error::Missing { network: self.config.name.clone(), missing }.into());
        }
        self.agrees(site.host)
    }

    /// For STATUS and CHECK, after all else is in order.
    ///
    /// # Errors
    /// The changes of the plan that the configuration asks for, and that are refused.
    pub(in crate::plugin) fn agrees(&self, host: &Host) -> Result<(), Error> {
        Ok(self.plan.agrees(host)?)
    }

    /// The whole network by way of the segment's gateway: a container keeps it when its default route is another
    /// network's.
    pub(in crate::plugin) fn container_routes(&self, result: &CniResult) -> Vec<Route> {
        let has = |dst: IpNet| {
            let is_main = |route: &&Route| matches!(route.table, None | Some(0 | MAIN));
            result.routes.iter().filter(is_main).any(|route| route.dst.trunc() == dst)
        };
        let each = self.plan.networks().iter().zip(self.plan.here()).filter(|(planned, segment)| {
            // One segment that is all of it is on the link.
            planned.network != **segment && !has(planned.network)
        });
        each.filter_map(|(planned, segment)| {
            let ip = result.ips.iter().find(|ip| segment.contains(&ip.address.addr()))?;
            Some(Route::new(planned.network, Some(ip.gateway?)))
        })
        .collect()
    }
}

/// What this host shows of itself.
struct Shown<'a>(&'a Host);

impl Witness for Shown<'_> {
    /// By the record of its own part, else by the addresses of the bridge.
    fn segments(&self, config: &RoutedConfig) -> Vec<IpNet> {
        if let Ok(Some(record)) = NetworkRecord::load(self.0, &config.name) {
            return record.subnets;
        }
        let of_bridge = || {
            let mut socket = RouteSocket::open().ok()?;
            let bridge = socket.link_by_name(&config.bridge.bridge.name).ok()?.filter(is_ours)?;
            Some(socket.addresses(&bridge).ok()?.into_iter().map(|address| address.address).collect())
        };
        of_bridge().unwrap_or_default()
    }

    fn is_now(&self, config: &RoutedConfig, former: &Node) -> bool {
        let ask = || {
            let resolution = Resolution::load(self.0, &config.name)?;
            identity::is_now(config, former, &resolution, &mut RouteSocket::open()?)
        };
        ask().unwrap_or_else(|error: routed::Error| {
            tracing::warn!("network {}: which node this host is cannot be told by its addresses: {error}", config.name);
            false
        })
    }
}
