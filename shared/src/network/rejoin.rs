//! Host ends that are not the ports that they should be, put right.

use std::collections::BTreeMap;

use super::names::is_ours;
use super::setup::Site;
use super::wanted::Wanted;
use super::{Error, NetworkRecord, alias, vlan};
use crate::netlink::{Link, PortVlan};

/// A host end that is not the port that it should be.
#[derive(Debug)]
pub struct Stray {
    link: Link,
    /// It is that by which the host is in the network's VLAN.
    is_host: bool,
    /// Its VLANs.
    vlans: BTreeMap<u16, PortVlan>,
    /// Those that it should be in, if that is a matter of ours.
    wanted: Option<BTreeMap<u16, PortVlan>>,
}

impl Site<'_> {
    /// Puts the network's host ends right. One that is in no bridge becomes a port of this one again: it was deleted and
    /// made anew, or somebody took the port out. All get the VLANs and the isolation that the configuration has now. Gives
    /// how many were not right.
    ///
    /// # Errors
    /// The kernel does not answer. An end that cannot be a port is told in the log: its container may be on its way out.
    pub fn rejoin(&mut self, wanted: &Wanted, bridge: &Link) -> Result<u32, Error> {
        let mut mended = 0;
        for stray in self.strays(wanted, Some(bridge))? {
            match self.mend(wanted, bridge, &stray) {
                Ok(()) => mended += 1,
                Err(error) => {
                    tracing::warn!("{} is no port of {} as it should be: {error}", stray.link.name, bridge.name)
                }
            }
        }
        Ok(mended)
    }

    fn mend(&mut self, wanted: &Wanted, bridge: &Link, stray: &Stray) -> Result<(), Error> {
        let mut have = stray.vlans.clone();
        if stray.link.master.is_none() {
            // Until its VLANs are right, nothing passes.
            let held = stray.link.up && stray.wanted.is_some();
            if held {
                self.socket.set_up(&stray.link, false)?;
            }
            self.socket.set_master(&stray.link, bridge.index)?;
            if wanted.hairpin {
                self.socket.set_hairpin(&stray.link, true)?;
            }
            have = vlan::of_new_port(bridge);
            self.fit(wanted, stray, &have)?;
            if held {
                self.socket.set_up(&stray.link, true)?;
            }
            return Ok(());
        }
        self.fit(wanted, stray, &have)
    }

    fn fit(&mut self, wanted: &Wanted, stray: &Stray, have: &BTreeMap<u16, PortVlan>) -> Result<(), Error> {
        if let Some(want) = &stray.wanted {
            vlan::settle(self.socket, &stray.link, have, want)?;
        }
        let isolated = !stray.is_host && wanted.port_isolation;
        if isolated != (stray.link.master.is_some() && stray.link.isolated == Some(true)) {
            self.socket.set_isolated(&stray.link, isolated)?;
        }
        Ok(())
    }

    /// The network's host ends that are not ports of the bridge as they should be. Without a bridge, those that are in none.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub fn strays(&mut self, wanted: &Wanted, bridge: Option<&Link>) -> Result<Vec<Stray>, Error> {
        let is_of_network = |port: &Link| port.alias.as_deref().and_then(alias::network) == Some(wanted.name.as_str());
        let host = wanted.vlan_names().zip(wanted.vlan);
        let mut links = self.socket.links()?;
        links.retain(|link| link.is_a("veth") && is_ours(link));
        // They are still in the VLANs of before.
        let before = NetworkRecord::load(self.host, &wanted.name)?;
        let had_vlans = before
            .is_some_and(|it| it.is_of(self.host, self.netns) && it.bridge == wanted.bridge.name && it.has_vlans());
        let is_filtered = |bridge: &&Link| vlan::of_port(&wanted.vlans, had_vlans, bridge).is_some();
        let mut there = match bridge.filter(is_filtered) {
            Some(_) => self.socket.port_vlans()?,
            None => BTreeMap::new(),
        };
        let mut strays = Vec::new();
        for link in links {
            let is_host = host.as_ref().is_some_and(|(names, _)| names.port == link.name);
            if !is_host && !is_of_network(&link) {
                continue;
            }
            let want = bridge.and_then(|bridge| match &host {
                Some((_, vlan)) if is_host => Some(vlan::of_host(*vlan)),
                _ => vlan::of_port(&wanted.vlans, had_vlans, bridge),
            });
            let vlans = there.remove(&link.index).unwrap_or_default();
            let is_here = bridge.is_some_and(|bridge| link.master == Some(bridge.index));
            let is_isolated = link.isolated == Some(true);
            let is_right = is_here
                && want.as_ref().is_none_or(|want| *want == vlans)
                && (is_host || is_isolated == wanted.port_isolation);
            // What is in another bridge was put there by somebody.
            if !is_right && (is_here || link.master.is_none()) {
                strays.push(Stray { link, is_host, vlans, wanted: want });
            }
        }
        Ok(strays)
    }
}
