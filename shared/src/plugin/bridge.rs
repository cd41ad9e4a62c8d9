//! osvc-bridge: a container on a bridge, with one line of configuration or the keys of the reference plugin.

use std::collections::HashSet;

use serde::Deserialize;

use crate::attachment::tag;
use crate::ipam::config::IpamConfig;
use crate::netlink::RouteSocket;
use crate::netlink::netns::host_id;
use crate::network::config::{Addresses, Low};
use crate::network::setup::Site;
use crate::network::{self, BridgeConfig, Wanted, port};
use crate::protocol::{Call, CniResult, Command, Plugin, ValidAttachments, delegate};
use crate::{Attachment, Error, firewall, ipam as addresses};

use super::ipam;

mod add;
mod check;
mod del;
mod result;

/// The `osvc-bridge` plugin.
pub struct Bridge;

impl Plugin for Bridge {
    fn name(&self) -> &'static str {
        "osvc-bridge"
    }

    fn add(&self, call: &Call, attachment: &Attachment) -> Result<CniResult, Error> {
        add::add(call, attachment)
    }

    fn del(&self, call: &Call, attachment: &Attachment) -> Result<(), Error> {
        del::del(call, attachment)
    }

    fn check(&self, call: &Call, attachment: &Attachment) -> Result<(), Error> {
        check::check(call, attachment)
    }

    fn status(&self, call: &Call) -> Result<(), Error> {
        let network = Network::of(call)?;
        crate::host::writable(&network::NetworkRecord::folder(&call.host)).map_err(network::Error::from)?;
        if !matches!(network.source, Source::Nobody) {
            firewall::available()?;
        }
        if let Some(wanted) = network.wanted() {
            let (netns, mut socket) = (host_id()?, RouteSocket::open()?);
            let mut site = Site { host: &call.host, netns: &netns, socket: &mut socket };
            if site.in_place(&wanted)?.is_none() {
                site.refuse(&wanted).map_err(|error| network::Error::WouldFail(Box::new(error)))?;
            }
        }
        match &network.source {
            Source::Nobody => Ok(()),
            Source::Ours(config) => Ok(addresses::status(&call.host, config)?),
            Source::Delegate(plugin) => Ok(delegate(call, plugin, Command::Status, None).map(drop)?),
        }
    }

    fn gc(&self, call: &Call) -> Result<(), Error> {
        // Without a list too: only what is provably dead is deleted.
        let valid: Option<HashSet<String>> = match call.config.valid_attachments()? {
            ValidAttachments::Absent => None,
            ValidAttachments::Listed(list) => {
                let tag = |(container, ifname): &(String, String)| tag(call.network.as_str(), container, ifname);
                Some(list.iter().map(|attachment| format!("ov{}", tag(attachment))).collect())
            }
        };
        let mut errors = Vec::new();
        let swept = RouteSocket::open().map_err(network::Error::from);
        if let Err(error) = swept.and_then(|mut socket| port::sweep(&mut socket, &call.network, valid.as_ref())) {
            errors.push(error.into());
        }
        if let Err(error) = ipam::gc(call) {
            errors.push(error);
        }
        if let Some(plugin) = delegated(call)
            && let Err(error) = delegate(call, &plugin, Command::Gc, None)
        {
            errors.push(error.into());
        }
        Error::collect(errors)
    }
}

/// What the configuration of a call asks of this host before any container comes; `None` if another plugin
/// gives the addresses, and with them the gateway.
///
/// # Errors
/// The configuration cannot be used.
pub fn wanted(call: &Call) -> Result<Option<Wanted>, Error> {
    Ok(Network::of(call)?.wanted())
}

/// The checked configuration of a call.
struct Network {
    low: Low,
    config: BridgeConfig,
    source: Source,
}

/// Who gives the addresses.
enum Source {
    /// Nobody: layer 2.
    Nobody,
    /// We do, in this process: as osvc-ipam would.
    Ours(Box<IpamConfig>),
    /// Another plugin.
    Delegate(String),
}

impl Network {
    fn of(call: &Call) -> Result<Self, Error> {
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
        Ok(Self { low, config, source })
    }

    /// What the network should look like; unknown before another plugin has given an address.
    fn wanted(&self) -> Option<Wanted> {
        match &self.source {
            Source::Nobody => Some(Wanted::new(&self.config, [], None)),
            Source::Ours(addresses) => {
                let ranges = addresses.sets.iter().flat_map(|set| &set.0);
                let subnets = ranges.map(|range| (range.subnet, range.gateway));
                Some(Wanted::new(&self.config, subnets, Some(addresses.folder.clone())))
            }
            Source::Delegate(_) => None,
        }
    }
}

/// The plugin that `ipam.type` names, if that is not osvc-ipam; whatever else is wrong with the
/// configuration. For DEL and GC.
fn delegated(call: &Call) -> Option<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Kind {
        r#type: Option<String>,
    }
    let ipam = call.config.get("ipam")?;
    let Kind { r#type } = crate::protocol::json::from_value(ipam).ok()?;
    r#type.filter(|plugin| plugin != "osvc-ipam")
}
