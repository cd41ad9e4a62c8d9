//! Setting a network up on this host, once in a boot: bridge, gateway addresses, forwarding, record.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::net::IpAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};

use super::config::overlap;
use super::mac::{Machine, of_addresses};
use super::names::{BridgeName, is_ours};
use super::record::{FORMAT, ForwardAccept};
use super::sysctl::Sysctl;
use super::{BridgeConfig, Error, NetworkRecord, forwarding, mtu, overlap as overlaps};
use crate::lock::{LockError, exclusively};
use crate::netlink::{Link, Mac, NetnsId, NewBridge, RouteSocket};
use crate::{Host, NetworkName};

/// What a network should look like on this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The network.
    pub name: NetworkName,
    /// Its bridge.
    pub bridge: BridgeName,
    /// The addresses that the bridge should have, with prefix length.
    pub gateways: Vec<IpNet>,
    /// The subnets, without host bits.
    pub subnets: Vec<IpNet>,
    /// Masquerade IPv4.
    pub masquerade_v4: bool,
    /// Masquerade IPv6.
    pub masquerade_v6: bool,
    /// What to do about foreign rule sets that drop.
    pub forward_accept: ForwardAccept,
    /// MTU in bytes, if configured.
    pub mtu: Option<u32>,
    /// Replace a clashing address of the bridge.
    pub force_address: bool,
    /// The bridge's IPv6 addresses wait for duplicate address detection.
    pub detect_duplicates: bool,
    /// The folder of the address records, when osvc-ipam allocates.
    pub ipam: Option<PathBuf>,
}

impl Wanted {
    /// What a configuration asks for. `subnets` come with the gateway that they have, if any.
    pub fn new(
        config: &BridgeConfig,
        subnets: impl IntoIterator<Item = (IpNet, Option<IpAddr>)>,
        ipam: Option<PathBuf>,
    ) -> Self {
        let mut wanted = Self {
            name: config.network.clone(),
            bridge: config.bridge.clone(),
            gateways: Vec::new(),
            subnets: Vec::new(),
            masquerade_v4: config.masquerade_v4,
            masquerade_v6: config.masquerade_v6,
            forward_accept: config.forward_accept,
            mtu: config.mtu,
            force_address: config.force_address,
            detect_duplicates: config.detect_duplicates,
            ipam,
        };
        for (subnet, gateway) in subnets {
            let gateway = gateway.filter(|_| config.is_gateway).and_then(|ip| IpNet::new(ip, subnet.prefix_len()).ok());
            add_new(&mut wanted.subnets, [subnet.trunc()]);
            add_new(&mut wanted.gateways, gateway);
        }
        wanted
    }

    /// True if the record is that of this network as it should be. The MTU is decided at setup.
    fn is_met_by(&self, record: &NetworkRecord) -> bool {
        record.bridge == self.bridge.name
            && self.gateways.iter().all(|gateway| record.gateways.contains(gateway))
            && self.subnets.iter().all(|subnet| record.subnets.contains(subnet))
            && (record.masquerade_v4, record.masquerade_v6) == (self.masquerade_v4, self.masquerade_v6)
            && record.forward_accept == self.forward_accept
            && record.ipam == self.ipam
    }
}

/// A network that is set up.
#[derive(Debug)]
pub struct Setup {
    /// Its bridge.
    pub bridge: Link,
    /// Its record.
    pub record: NetworkRecord,
    steps: Vec<Step>,
}

/// Something that a setup did, for the way back.
#[derive(Debug)]
enum Step {
    MadeBridge(Link),
    AddedAddress(Link, IpNet),
    RemovedAddress(Link, IpNet),
    WroteRecord(NetworkName, Option<Box<NetworkRecord>>),
}

/// Where networks are set up: this host, by this socket.
#[derive(Debug)]
pub struct Site<'a> {
    /// The machine.
    pub host: &'a Host,
    /// Its network namespace.
    pub netns: &'a NetnsId,
    /// A socket there.
    pub socket: &'a mut RouteSocket,
}

impl Site<'_> {
    /// The network as it is, if nothing has to be done for it: asked by a few netlink requests.
    ///
    /// # Errors
    /// The record cannot be read, or the kernel does not answer.
    pub fn in_place(&mut self, wanted: &Wanted) -> Result<Option<Setup>, Error> {
        let record = NetworkRecord::load(self.host, &wanted.name)?;
        match record.filter(|record| record.is_of(self.host, self.netns) && wanted.is_met_by(record)) {
            Some(record) => self.verified(record),
            None => Ok(None),
        }
    }

    fn verified(&mut self, record: NetworkRecord) -> Result<Option<Setup>, Error> {
        let bridge = self.socket.link_by_name(&record.bridge)?;
        let Some(bridge) = bridge.filter(|bridge| bridge.is_a("bridge") && bridge.up) else { return Ok(None) };
        if !record.gateways.is_empty() {
            let there: BTreeSet<IpNet> = self.socket.addresses(&bridge)?.into_iter().map(|have| have.address).collect();
            if !record.gateways.iter().all(|gateway| there.contains(gateway)) {
                return Ok(None);
            }
        }
        for v6 in families(&record.gateways) {
            if !forwarding::is_on(v6)? {
                return Ok(None);
            }
        }
        Ok(Some(Setup { bridge, record, steps: Vec::new() }))
    }

    /// Says why the network could not be set up, before anything is changed.
    ///
    /// # Errors
    /// The name is another kind of device's, the subnets or the gateways are somebody else's.
    pub fn refuse(&mut self, wanted: &Wanted) -> Result<(), Error> {
        let bridge = self.bridge(&wanted.bridge.name)?;
        let others = self.others(&wanted.name)?;
        self.refuse_overlaps(wanted, bridge.as_ref(), &others)?;
        match &bridge {
            Some(bridge) => self.clashes(wanted, bridge, &others).map(drop),
            None => Ok(()),
        }
    }

    fn refuse_overlaps(
        &mut self,
        wanted: &Wanted,
        bridge: Option<&Link>,
        others: &[NetworkRecord],
    ) -> Result<(), Error> {
        // Without a gateway here the host has no route to these addresses, and no part in them.
        if wanted.gateways.is_empty() {
            return Ok(());
        }
        overlaps::with_networks(self.socket, &wanted.name, &wanted.subnets, others)?;
        overlaps::with_routes(self.socket, &wanted.name, &wanted.subnets, bridge)
    }

    /// Sets the network up, or finds that it is.
    ///
    /// # Errors
    /// As [`refuse`](Self::refuse); the kernel refuses; the record cannot be written. What was done is
    /// undone.
    pub fn establish(&mut self, wanted: &Wanted) -> Result<Setup, Error> {
        locked(self.host, || {
            if let Some(setup) = self.in_place(wanted)? {
                return Ok(setup);
            }
            let mut steps = Vec::new();
            match self.make(wanted, &mut steps) {
                Ok((bridge, record)) => Ok(Setup { bridge, record, steps }),
                Err(error) => {
                    for undo in self.undo_steps(steps) {
                        tracing::error!("not undone: {undo}");
                    }
                    Err(error)
                }
            }
        })
    }

    fn make(&mut self, wanted: &Wanted, steps: &mut Vec<Step>) -> Result<(Link, NetworkRecord), Error> {
        let found = self.bridge(&wanted.bridge.name)?;
        let others = self.others(&wanted.name)?;
        self.refuse_overlaps(wanted, found.as_ref(), &others)?;
        let bridge = match found {
            Some(bridge) => bridge,
            None => self.make_bridge(wanted, steps)?,
        };
        let record = self.record(wanted, &bridge)?;
        if !bridge.up {
            self.socket.set_up(&bridge, true)?;
        }
        self.put_gateways(wanted, &bridge, &others, steps)?;
        for v6 in families(&wanted.gateways) {
            forwarding::switch_on(self.socket, v6)?;
        }
        let before = NetworkRecord::load(self.host, &wanted.name)?.map(Box::new);
        record.save(self.host)?;
        steps.push(Step::WroteRecord(wanted.name.clone(), before));
        Ok((bridge, record))
    }

    /// The device of the bridge's name, which must be a bridge.
    fn bridge(&mut self, name: &str) -> Result<Option<Link>, Error> {
        match self.socket.link_by_name(name)? {
            Some(link) if !link.is_a("bridge") => {
                let kind = link.kind.unwrap_or_else(|| "hardware".to_owned());
                Err(Error::NotABridge { name: name.to_owned(), kind })
            }
            found => Ok(found),
        }
    }

    fn make_bridge(&mut self, wanted: &Wanted, steps: &mut Vec<Step>) -> Result<Link, Error> {
        let BridgeName { name, altname } = &wanted.bridge;
        let mtu = match wanted.mtu {
            Some(mtu) => mtu,
            None => mtu::of_host(self.socket)?,
        };
        let mac = of_addresses(wanted.gateways.iter().map(IpNet::addr));
        let mac: Mac = mac.unwrap_or_else(|| Machine::read().bridge(&wanted.name));
        match self.socket.create_bridge(&NewBridge { name, mac, mtu }) {
            // Somebody else's, a moment ago: it is a foreign one then.
            Err(error) if error.is(Errno::EEXIST) => {
                return self.bridge(name)?.ok_or(Error::Netlink(error));
            }
            made => made?,
        }
        let bridge = self.socket.link_by_name(name)?;
        let bridge = bridge.ok_or_else(|| Error::Record {
            doing: "find",
            path: format!("/sys/class/net/{name}").into(),
            source: std::io::ErrorKind::NotFound.into(),
        })?;
        steps.push(Step::MadeBridge(bridge.clone()));
        Sysctl::V6(name, "accept_ra").prefer("0");
        if !wanted.detect_duplicates {
            // A tentative link-local address of the bridge delays the first packets from outside by 2 s,
            // whatever its other addresses are.
            Sysctl::V6(name, "accept_dad").prefer("0");
        }
        let network = &wanted.name;
        let named = altname.iter().map(|altname| self.socket.add_altname(&bridge, altname));
        for told in
            named.collect::<Vec<_>>().into_iter().chain([self.socket.set_alias(&bridge, &format!("osvc:{network}"))])
        {
            if let Err(error) = told {
                tracing::debug!("{error}");
            }
        }
        Ok(bridge)
    }

    /// The networks of this boot and namespace, but for one.
    fn others(&mut self, name: &NetworkName) -> Result<Vec<NetworkRecord>, Error> {
        let mut records = NetworkRecord::all(self.host)?;
        records.retain(|record| record.name != *name && record.is_of(self.host, self.netns));
        Ok(records)
    }

    /// The addresses of the bridge that clash with a gateway.
    ///
    /// # Errors
    /// There are some, and they are not to be replaced.
    fn clashes(&mut self, wanted: &Wanted, bridge: &Link, others: &[NetworkRecord]) -> Result<Vec<IpNet>, Error> {
        let have = self.socket.addresses(bridge)?;
        let before = NetworkRecord::load(self.host, &wanted.name)?;
        let ours = before.filter(|record| record.is_of(self.host, self.netns)).map(|record| record.gateways);
        let ours = ours.unwrap_or_default();
        let mut clashes = Vec::new();
        for address in have.iter().map(|have| have.address) {
            let clash = wanted.gateways.iter().find(|gateway| address != **gateway && overlap(&address, gateway));
            let Some(gateway) = clash.filter(|_| !wanted.gateways.contains(&address)) else { continue };
            let others_gateway = others.iter().any(|other| other.gateways.contains(&address));
            if others_gateway || !(wanted.force_address || ours.contains(&address)) {
                return Err(Error::AddressClash { bridge: bridge.name.clone(), address, gateway: *gateway });
            }
            clashes.push(address);
        }
        Ok(clashes)
    }

    fn put_gateways(
        &mut self,
        wanted: &Wanted,
        bridge: &Link,
        others: &[NetworkRecord],
        steps: &mut Vec<Step>,
    ) -> Result<(), Error> {
        if families(&wanted.gateways).contains(&true) {
            // The host may have it off by default.
            Sysctl::V6(&bridge.name, "disable_ipv6").ensure("0")?;
        }
        for address in self.clashes(wanted, bridge, others)? {
            tracing::warn!(
                "address {address} of {} clashes with a gateway of network {}: removed",
                bridge.name,
                wanted.name
            );
            self.socket.remove_address(bridge, address)?;
            steps.push(Step::RemovedAddress(bridge.clone(), address));
        }
        for gateway in &wanted.gateways {
            match self.socket.add_address(bridge, *gateway, wanted.detect_duplicates) {
                Err(error) if error.is(Errno::EEXIST) => continue,
                added => added?,
            }
            steps.push(Step::AddedAddress(bridge.clone(), *gateway));
        }
        Ok(())
    }

    fn record(&mut self, wanted: &Wanted, bridge: &Link) -> Result<NetworkRecord, Error> {
        let before = NetworkRecord::load(self.host, &wanted.name)?;
        let before = before.filter(|record| record.is_of(self.host, self.netns) && record.bridge == wanted.bridge.name);
        let (mut gateways, mut subnets) = (wanted.gateways.clone(), wanted.subnets.clone());
        // Addresses that were handed out by an older configuration stay in use until their containers end.
        if let Some(before) = &before {
            let apart = |net: &IpNet| !wanted.subnets.iter().any(|subnet| overlap(subnet, net));
            add_new(&mut gateways, before.gateways.iter().copied().filter(apart));
            add_new(&mut subnets, before.subnets.iter().copied().filter(apart));
        }
        let mtu = match (before, wanted.mtu) {
            (Some(before), _) => before.mtu,
            (None, Some(mtu)) => mtu,
            (None, None) => bridge.mtu,
        };
        Ok(NetworkRecord {
            v: FORMAT,
            name: wanted.name.clone(),
            bridge: wanted.bridge.name.clone(),
            owned: is_ours(bridge),
            gateways,
            subnets,
            masquerade_v4: wanted.masquerade_v4,
            masquerade_v6: wanted.masquerade_v6,
            forward_accept: wanted.forward_accept,
            mtu,
            ipam: wanted.ipam.clone(),
            boot: self.host.boot.clone(),
            netns: self.netns.clone(),
        })
    }

    /// Takes a setup back, if nobody has joined the network since. True if the network has no record
    /// any more.
    ///
    /// # Errors
    /// What could not be undone; the rest was.
    pub fn undo(&mut self, setup: Setup) -> Result<bool, Error> {
        if setup.steps.is_empty() {
            return Ok(false);
        }
        locked(self.host, || {
            if self.socket.links_with_master(setup.bridge.index)?.iter().any(is_ours) {
                return Ok(false);
            }
            match self.undo_steps(setup.steps).into_iter().next() {
                Some(error) => Err(error),
                None => Ok(NetworkRecord::load(self.host, &setup.record.name)?.is_none()),
            }
        })
    }

    /// Undoes in reverse, and goes on after errors.
    fn undo_steps(&mut self, steps: Vec<Step>) -> Vec<Error> {
        let undo = |step: Step| match step {
            Step::MadeBridge(bridge) => match self.socket.links_with_master(bridge.index) {
                Ok(ports) if ports.is_empty() => Ok(self.socket.delete_link(&bridge)?),
                Ok(_) => Ok(()),
                Err(error) => Err(error.into()),
            },
            Step::AddedAddress(bridge, address) => Ok(self.socket.remove_address(&bridge, address)?),
            Step::RemovedAddress(bridge, address) => Ok(self.socket.add_address(&bridge, address, false)?),
            Step::WroteRecord(_, Some(before)) => before.save(self.host),
            Step::WroteRecord(name, None) => NetworkRecord::remove(self.host, &name),
        };
        steps.into_iter().rev().map(undo).filter_map(Result::err).collect()
    }
}

/// Runs `act` as the only one on this host that sets up or removes networks.
///
/// # Errors
/// The lock cannot be had, or what `act` reports.
pub fn locked<T>(host: &Host, act: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let path = host.state.join("lock");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&host.state);
    made.map_err(|source| LockError::Io { path: path.clone(), source })?;
    exclusively(&path, act)
}

/// STATUS: could a record be written?
///
/// # Errors
/// [`Error::NotWritable`].
pub fn writable(host: &Host) -> Result<(), Error> {
    let folder = NetworkRecord::folder(host);
    let failed = |path: &Path, errno: Errno| Error::NotWritable { path: path.to_owned(), source: errno.into() };
    for path in folder.ancestors() {
        match access(path, AccessFlags::W_OK | AccessFlags::X_OK) {
            Err(Errno::ENOENT) => {}
            outcome => return outcome.map_err(|errno| failed(path, errno)),
        }
    }
    Ok(())
}

/// The families (IPv6?) of some addresses.
fn families(addresses: &[IpNet]) -> BTreeSet<bool> {
    addresses.iter().map(|address| address.addr().is_ipv6()).collect()
}

fn add_new(list: &mut Vec<IpNet>, more: impl IntoIterator<Item = IpNet>) {
    for net in more {
        if !list.contains(&net) {
            list.push(net);
        }
    }
}

#[cfg(test)]
#[path = "setup_tests.rs"]
mod tests;
