//! Promiscuous mode of a bridge, which several networks and an administrator may want: only what we have set is undone.

use super::setup::{Site, Step};
use super::wanted::Wanted;
use super::{Error, NetworkRecord};
use crate::NetworkName;
use crate::netlink::Link;

impl Site<'_> {
    /// Has the bridge take up no more frames than it must, if that is to end; true if the mode is our doing, or will be:
    /// [`enter_promiscuous`](Self::enter_promiscuous) is then to follow, after the record that says so.
    ///
    /// # Errors
    /// The kernel refuses, or a record cannot be written.
    pub(super) fn settle_promiscuous(
        &mut self,
        wanted: &Wanted,
        bridge: &mut Link,
        before: Option<&NetworkRecord>,
        others: &[NetworkRecord],
        steps: &mut Vec<Step>,
    ) -> Result<bool, Error> {
        let before = before.filter(|before| before.bridge == bridge.name && before.promiscuous_by_us);
        if wanted.promiscuous {
            let others_did = || others.iter().any(|other| other.bridge == bridge.name && other.promiscuous_by_us);
            // Undone also where it is not done yet.
            steps.extend((!bridge.promiscuous).then(|| Step::Promiscuous(bridge.clone())));
            return Ok(!bridge.promiscuous || before.is_some() || others_did());
        }
        if before.is_some() && self.leave_promiscuous(&wanted.name, &bridge.name)? {
            steps.push(Step::Promiscuous(bridge.clone()));
            bridge.promiscuous = false;
        }
        Ok(false)
    }

    /// Has the bridge take up all frames, if it should and does not.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(super) fn enter_promiscuous(&mut self, wanted: &Wanted, bridge: &mut Link) -> Result<(), Error> {
        if wanted.promiscuous && !bridge.promiscuous {
            self.socket.set_promiscuous(bridge, true)?;
            bridge.promiscuous = true;
        }
        Ok(())
    }

    /// Ends the mode that we have set on a bridge: one network wants it no longer. If another one does, that one has it
    /// from now on. True if the bridge was promiscuous and is not any more.
    ///
    /// # Errors
    /// The kernel refuses, or a record cannot be read or written.
    pub fn leave_promiscuous(&mut self, network: &NetworkName, bridge: &str) -> Result<bool, Error> {
        let heirs = self.heirs(network, bridge)?;
        match heirs.first() {
            None => {
                let bridge = self.socket.link_by_name(bridge)?.filter(|link| link.is_a("bridge") && link.promiscuous);
                let Some(bridge) = bridge else { return Ok(false) };
                self.socket.set_promiscuous(&bridge, false)?;
                Ok(true)
            }
            Some(heir) if !heirs.iter().any(|other| other.promiscuous_by_us) => {
                NetworkRecord { promiscuous_by_us: true, ..heir.clone() }.save(self.host)?;
                Ok(false)
            }
            Some(_) => Ok(false),
        }
    }

    /// True if the mode of a bridge is our doing, and would end with this network, once those that are `gone` are.
    ///
    /// # Errors
    /// A record cannot be read.
    pub fn ends_promiscuous(
        &mut self,
        record: &NetworkRecord,
        bridge: &Link,
        gone: &[NetworkName],
    ) -> Result<bool, Error> {
        if !record.promiscuous || !bridge.promiscuous || record.bridge != bridge.name {
            return Ok(false);
        }
        // It would have inherited the mode from those.
        let (gone, heirs): (Vec<_>, Vec<_>) =
            self.heirs(&record.name, &bridge.name)?.into_iter().partition(|other| gone.contains(&other.name));
        let is_ours = record.promiscuous_by_us || gone.iter().any(|other| other.promiscuous_by_us);
        Ok(is_ours && heirs.is_empty())
    }

    fn heirs(&mut self, network: &NetworkName, bridge: &str) -> Result<Vec<NetworkRecord>, Error> {
        let mut heirs = self.others(network)?;
        heirs.retain(|other| other.bridge == bridge && other.promiscuous);
        Ok(heirs)
    }
}
