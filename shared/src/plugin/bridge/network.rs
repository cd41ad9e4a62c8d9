//! The checked configuration of a call.

use crate::Error;
use crate::ipam::config::IpamConfig;
use crate::network::config::{Addresses, Low};
use crate::network::{BridgeConfig, Wanted};
use crate::plugin::routed::Member;
use crate::protocol::Call;

/// The checked configuration of a call: a bridge of this node, and the cluster that it belongs to if there is one.
pub(in crate::plugin) struct Network {
    pub(super) low: Low,
    pub(super) config: BridgeConfig,
    pub(super) source: Source,
    /// This node in the cluster of a routed network.
    pub(super) member: Option<Member>,
}

/// Who gives the addresses.
pub(in crate::plugin) enum Source {
    /// Nobody: layer 2.
    Nobody,
    /// We do, in this process: as osvc-ipam would.
    Ours(Box<IpamConfig>),
    /// Another plugin.
    Delegate(String),
}

impl Network {
    /// A network of this node alone.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub(in crate::plugin) fn of_bridge(call: &Call) -> Result<Self, Error> {
        let low: Low = call.config.low()?;
        let config = BridgeConfig::new(&call.network, &low)?;
        let source = match &config.addresses {
            Addresses::None => Source::Nobody,
            Addresses::Subnets(subnets) => Source::Ours(Box::new(IpamConfig::from_call_and_subnets(call, subnets)?)),
            Addresses::Plugin(plugin) if plugin == "osvc-ipam" => match IpamConfig::from_call(call)? {
                Some(config) => Source::Ours(Box::new(config)),
                None => Source::Nobody,
            },
            Addresses::Plugin(plugin) => Source::Delegate(plugin.clone()),
        };
        Ok(Self { low, config, source, member: None })
    }

    /// This node's part of a routed network: a bridge with its segments.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub(in crate::plugin) fn of_cluster(call: &Call, member: Member) -> Result<Self, Error> {
        let source = Source::Ours(Box::new(member.addresses(call)?));
        Ok(Self { low: call.config.low()?, config: member.bridge(), source, member: Some(member) })
    }

    /// What the network should look like; unknown before another plugin has given an address. The MTU that a routed one
    /// has by its peers is not in it: see [`Member::sized`].
    pub(in crate::plugin) fn wanted(&self) -> Option<Wanted> {
        match &self.source {
            Source::Nobody => Some(Wanted::new(&self.config, [], None)),
            Source::Ours(addresses) => {
                let ranges = addresses.sets.iter().flat_map(|set| &set.0);
                let subnets = ranges.map(|range| (range.subnet, range.gateway));
                let wanted = Wanted::new(&self.config, subnets, Some(addresses.folder.clone()));
                Some(Wanted { routed: self.member.is_some(), ..wanted })
            }
            Source::Delegate(_) => None,
        }
    }

    /// How addresses are given, if we do that.
    pub(in crate::plugin) fn addresses(self) -> Option<IpamConfig> {
        match self.source {
            Source::Ours(config) => Some(*config),
            Source::Nobody | Source::Delegate(_) => None,
        }
    }

    /// This node in the cluster of a routed network; none for a network of this node alone.
    pub(in crate::plugin) fn member(&self) -> Option<&Member> {
        self.member.as_ref()
    }
}
