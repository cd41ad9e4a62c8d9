//! osvc-portmap: host ports, chained after the plugin that gave the container its addresses.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::SystemTime;

use crate::attachment::tag;
use crate::ipam::key::Key;
use crate::ipam::record::{HostEnd, NetnsRef};
use crate::ipam::timestamp;
use crate::netlink::netns::host_id;
use crate::portmap::config::{ConfigError, Options, PortmapConfig, host_end, targets};
use crate::portmap::record::{FORMAT, Record, Slot};
use crate::portmap::{self, Mapping};
use crate::protocol::{self, Call, CniResult, Plugin, ValidAttachments};
use crate::{Attachment, Error, firewall};

/// The `osvc-portmap` plugin.
pub struct Portmap;

impl Plugin for Portmap {
    fn name(&self) -> &'static str {
        "osvc-portmap"
    }

    fn add(&self, call: &Call, attachment: &Attachment) -> Result<CniResult, Error> {
        let previous = call.config.prev_result()?.ok_or(ConfigError::NotChained).map_err(portmap::Error::from)?;
        let config = PortmapConfig::from_call(call).map_err(portmap::Error::from)?;
        if config.mappings.is_empty() {
            // Whoever had these addresses before has no ports on them any more, whichever plugin gave them.
            let addresses: Vec<IpAddr> = previous.ips.iter().map(|ip| ip.address.addr()).collect();
            portmap::stand_back(&call.host, attachment, &addresses)?;
            if let Err(error) = portmap::restore(&call.host) {
                tracing::warn!("the published ports of others were not looked after: {error}");
            }
            return Ok(previous);
        }
        let record = record(call, attachment, &config, &previous)?;
        portmap::publish(&call.host, record, &|slot| entry(&config, slot))?;
        Ok(previous)
    }

    fn del(&self, call: &Call, attachment: &Attachment) -> Result<(), Error> {
        portmap::withdraw(&call.host, attachment)?;
        Ok(())
    }

    fn check(&self, call: &Call, attachment: &Attachment) -> Result<(), Error> {
        let previous = call.config.prev_result()?.ok_or(protocol::Error::PrevResultMissing)?;
        let config = PortmapConfig::from_call(call).map_err(portmap::Error::from)?;
        if config.mappings.is_empty() {
            return Ok(());
        }
        let wanted = record(call, attachment, &config, &previous)?;
        Ok(portmap::check(&call.host, attachment, &wanted)?)
    }

    fn status(&self, call: &Call) -> Result<(), Error> {
        Options::from_call(call).map_err(portmap::Error::from)?;
        portmap::writable(&call.host)?;
        Ok(firewall::available()?)
    }

    fn gc(&self, call: &Call) -> Result<(), Error> {
        let valid: Option<HashSet<String>> = match call.config.valid_attachments()? {
            ValidAttachments::Absent => None,
            ValidAttachments::Listed(list) => {
                let tag = |(container, ifname): &(String, String)| tag(call.network.as_str(), container, ifname);
                Some(list.iter().map(tag).collect())
            }
        };
        for record in portmap::sweep(&call.host, Some(&call.network), valid.as_ref(), false)? {
            tracing::info!("network {}: host ports of {} withdrawn", call.network, record.holder());
        }
        Ok(())
    }
}

/// What the call asks for, as a record of now.
fn record(call: &Call, attachment: &Attachment, config: &PortmapConfig, previous: &CniResult) -> Result<Record, Error> {
    let targets = targets(previous, attachment).map_err(portmap::Error::from)?;
    config.check_targets(&targets, &call.network).map_err(portmap::Error::from)?;
    let (key, ..) = Key::from_call(call, &attachment.container, None)
        .map_err(|error| Error::Ipam(crate::ipam::Error::from(error)))?;
    let home = host_id()?;
    let host = host_end(previous, attachment).map(|ifname| HostEnd { ifname, netns: home.clone() });
    let Options { snat, masq_all, allow_from } = config.options.clone();
    Ok(Record {
        v: FORMAT,
        network: call.network.clone(),
        container: attachment.container.to_string(),
        ifname: attachment.ifname.to_string(),
        key,
        netns: call.netns.clone().map(NetnsRef::of),
        host,
        boot: call.host.boot.clone(),
        home,
        since: timestamp::format(SystemTime::now()),
        targets,
        snat,
        masq_all,
        allow_from,
        mappings: config.mappings.clone(),
    })
}

/// The entry of the configuration that a slot comes from, for people.
fn entry(config: &PortmapConfig, slot: &Slot) -> String {
    let is_of = |mapping: &Mapping| {
        mapping.protocol == slot.protocol
            && mapping.host_port == slot.port
            && match mapping.host_ip {
                Some(address) => address == slot.address,
                None => slot.is_any(),
            }
    };
    let found = config.mappings.iter().position(is_of);
    found.and_then(|at| config.entries.get(at)).cloned().unwrap_or_else(|| format!("{}/{}", slot.port, slot.protocol))
}
