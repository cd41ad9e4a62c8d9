//! VLANs of a network's ports: `vlan`, `vlanTrunk`, `preserveDefaultVlan`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::{Low, LowTrunk, unsupported};
use crate::netlink::PortVlan;
use crate::network::Error;
use crate::network::error::Reason;

/// The VLAN of what a trunk does not tag, where `vlan` names no other.
const NATIVE: u16 = 1;
/// What a port can be in (IEEE 802.1Q: 0 is none, 4095 is reserved).
const IDS: RangeInclusive<i64> = 1..=4094;

/// VLANs of a network's ports (IEEE 802.1Q). None of them: the bridge filters nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Vlans {
    /// The VLAN of untagged frames; `None` leaves them in the bridge's default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<u16>,
    /// The VLANs of tagged frames.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub trunk: BTreeSet<u16>,
    /// The port stays in the bridge's default VLAN besides.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub keep_default: bool,
}

impl Vlans {
    /// # Errors
    /// [`Error::Unsupported`]: an id that no VLAN has (BR24, BR25 of the reference's suite).
    pub(super) fn new(low: &Low) -> Result<Self, Error> {
        if !(0..=4094).contains(&low.vlan) {
            return Err(unsupported("vlan", low.vlan, Reason::Vlan(low.vlan)));
        }
        let access = u16::try_from(low.vlan).ok().filter(|&id| id != 0);
        let mut trunk = BTreeSet::new();
        for entry in &low.vlan_trunk {
            trunk.extend(entry.ids()?);
        }
        Ok(Self { access, trunk, keep_default: low.preserve_default_vlan })
    }

    /// True if the configuration says nothing of VLANs.
    pub fn is_empty(&self) -> bool {
        !self.filter() && !self.keep_default
    }

    /// True if the bridge has to filter VLANs.
    pub fn filter(&self) -> bool {
        self.access.is_some() || !self.trunk.is_empty()
    }

    /// What a port should be in, where new ports are in the VLAN `default` (0 for none). `vlan` wins over the same id in
    /// `vlanTrunk`: it stays untagged.
    pub fn of_port(&self, default: u16) -> BTreeMap<u16, PortVlan> {
        let mut vlans = BTreeMap::new();
        let native = match self.access {
            Some(access) => access,
            None if self.trunk.is_empty() => default,
            None => NATIVE,
        };
        if self.keep_default || !self.filter() {
            vlans.insert(default, PortVlan::Untagged);
        }
        vlans.extend(self.trunk.iter().map(|&id| (id, PortVlan::Tagged)));
        vlans.insert(native, PortVlan::Native);
        vlans.remove(&0);
        vlans
    }
}

impl LowTrunk {
    /// The ids of an entry: `id`, the span, or both.
    fn ids(&self) -> Result<Vec<u16>, Error> {
        let refuse = |reason| unsupported("vlanTrunk", self.shown(), reason);
        let check = |value: Option<i64>, wrong| match value {
            Some(id) if !IDS.contains(&id) => Err(refuse(Reason::Trunk(wrong))),
            value => Ok(value.map(|id| id as u16)),
        };
        let mut ids = Vec::new();
        match (
            check(self.min_id, "incorrect trunk minID parameter")?,
            check(self.max_id, "incorrect trunk maxID parameter")?,
        ) {
            (Some(min), Some(max)) if min > max => {
                return Err(refuse(Reason::Trunk("minID is greater than maxID in trunk parameter")));
            }
            (Some(min), Some(max)) => ids.extend(min..=max),
            (Some(_), None) => {
                return Err(refuse(Reason::Trunk(
                    "minID and maxID should be configured simultaneously, maxID is missing",
                )));
            }
            (None, Some(_)) => {
                return Err(refuse(Reason::Trunk(
                    "minID and maxID should be configured simultaneously, minID is missing",
                )));
            }
            (None, None) => {}
        }
        ids.extend(check(self.id, "incorrect trunk id parameter")?);
        Ok(ids)
    }

    fn shown(&self) -> serde_json::Value {
        let keys = [("id", self.id), ("minID", self.min_id), ("maxID", self.max_id)];
        keys.into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?.into())))
            .collect::<serde_json::Map<_, _>>()
            .into()
    }
}

#[cfg(test)]
#[path = "vlans_tests.rs"]
mod tests;
