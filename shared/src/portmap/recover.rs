//! Lost records, made again from what the kernel still has: `rm -rf /var/lib/cni` is common advice.
//!
//! An element says whose it is by the tag of its attachment, which also names the host end that osvc-bridge made, whose
//! ifalias tells network, container and key. What no host end answers for cannot be withdrawn by any DEL any more: it goes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::SystemTime;

use ipnet::IpNet;

use super::area::{self, Area, Masquerade, Pair};
use super::keys::{ANY, HOST, SETS, TABLE, owner, read_slot};
use super::mapping::Mapping;
use super::record::{FORMAT, Record, Slot};
use super::settle::Site;
use super::{Error, place, store};
use crate::firewall;
use crate::firewall::family::Family;
use crate::firewall::nfnetlink::Nfnetlink;
use crate::ipam::liveness::Kernel;
use crate::ipam::rebuild::Alias;
use crate::ipam::record::HostEnd;
use crate::ipam::timestamp;
use crate::netlink::netns::{NetnsId, host_id};
use crate::netlink::{GROUP, Link, RouteSocket};
use crate::network::alias;
use crate::{Host, NetworkName};

/// Where it is looked whether tables were made that no record tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// In /run: for those who have nothing to do with ports, on every container's way.
    InRun,
    /// In the kernel.
    InTheKernel,
}

/// Makes lost records again while our tables are there. One look at the file system if none is lost.
///
/// # Errors
/// The kernel cannot be asked, or the store cannot be written.
pub fn recover(host: &Host, look: Look) -> Result<(), Error> {
    if store::is_whole(host) || (look == Look::InRun && !place::were_made(host)) {
        return Ok(());
    }
    // No nf_tables, no tables: addresses are given out all the same.
    let Ok(mut kernel) = Nfnetlink::open() else { return Ok(()) };
    match kernel.generation() {
        Err(firewall::Error::NoNftables { .. }) => return Ok(()),
        generation => drop(generation?),
    }
    let mut is_there = false;
    for family in Family::ALL {
        is_there |= kernel.table(family.number(), TABLE)?.is_some();
    }
    if !is_there {
        return Ok(());
    }
    let home = host_id()?;
    store::locked(host, |store| {
        // Somebody was faster.
        if store::is_whole(host) {
            return Ok(());
        }
        let found = found(&mut kernel)?;
        let records = records(host, &home, &found)?;
        for record in &records {
            if store.load(&record.tag())?.is_none() {
                store.put(record)?;
            }
        }
        tracing::warn!(
            "the records of published ports were lost: those of {} of {} containers are made again, the others are closed",
            records.len(),
            found.slots.len()
        );
        store.make_whole()?;
        let (mut judge, mut leaving) = (Kernel::new(host), Vec::new());
        match Site::new(host, &home, &mut kernel, &mut judge).swap(store, &mut leaving) {
            Ok(()) => super::publish::remove(store, &leaving),
            // The store stays doubtful: whoever comes next tries again.
            Err(error) => tracing::warn!("{error}"),
        }
        Ok(())
    })
}

/// What our tables hold.
#[derive(Default)]
struct Found {
    /// By tag.
    slots: BTreeMap<String, Vec<(Slot, SocketAddr)>>,
    areas: Vec<Area>,
}

fn found(kernel: &mut Nfnetlink) -> Result<Found, Error> {
    let mut found = Found::default();
    for family in Family::ALL {
        let number = family.number();
        for map in [ANY, HOST] {
            for element in kernel.set_elements(number, TABLE, map)? {
                if let (Some(tag), Some(slot)) = (owner(&element), read_slot(family, &element)) {
                    found.slots.entry(tag.to_owned()).or_default().push(slot);
                }
            }
        }
        let mut pairs = Vec::new();
        for set in SETS {
            let elements = kernel.set_elements(number, TABLE, set)?;
            pairs.extend(elements.iter().filter_map(|element| Pair::of(set, element)));
        }
        found.areas.extend(area::of_pairs(&pairs));
    }
    Ok(found)
}

/// The records that host ends answer for.
fn records(host: &Host, home: &NetnsId, found: &Found) -> Result<Vec<Record>, Error> {
    let links = RouteSocket::open()?.links()?;
    let ours: BTreeMap<&str, &Link> = links
        .iter()
        .filter(|link| link.group == GROUP)
        .filter_map(|link| Some((link.name.strip_prefix("ov")?, link)))
        .collect();
    let record = |(tag, slots): (&String, &Vec<(Slot, SocketAddr)>)| {
        let link = ours.get(tag.as_str())?;
        let text = link.alias.as_deref()?;
        let network: NetworkName = alias::network(text)?.parse().ok()?;
        let alias = Alias::parse(text, network.as_str())?;
        let subnet = |target: SocketAddr| {
            let area = found.areas.iter().find(|area| area.subnet.contains(&target.ip()));
            area.and_then(|area| IpNet::new(target.ip(), area.subnet.prefix_len()).ok()).unwrap_or(target.ip().into())
        };
        let mut targets: Vec<IpNet> = slots.iter().map(|(_, target)| subnet(*target)).collect();
        crate::order::sort(&mut targets);
        targets.dedup();
        let area = found.areas.iter().find(|area| targets.iter().any(|target| area.subnet == target.trunc()));
        let masquerade = area.map_or(Masquerade::Nothing, |area| area.masquerade);
        let mapping = |(slot, target): &(Slot, SocketAddr)| Mapping {
            host_ip: Some(slot.address),
            host_port: slot.port,
            container_port: target.port(),
            protocol: slot.protocol,
        };
        let record = Record {
            v: FORMAT,
            network,
            container: alias.container.to_owned(),
            ifname: alias.ifname.to_owned(),
            key: alias.key.clone(),
            netns: None,
            host: Some(HostEnd { ifname: link.name.clone(), netns: home.clone() }),
            boot: host.boot.clone(),
            home: home.clone(),
            since: timestamp::format(SystemTime::now()),
            targets,
            snat: masquerade != Masquerade::Nothing,
            masq_all: masquerade == Masquerade::All,
            allow_from: area.and_then(|area| area.allow.clone()).unwrap_or_default(),
            mappings: slots.iter().map(mapping).collect(),
        };
        // The alias of a very long container id is cut: it cannot be told whose it was.
        (record.tag() == *tag).then_some(record)
    };
    Ok(found.slots.iter().filter_map(record).collect())
}
