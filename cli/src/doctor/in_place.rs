//! Networks that are not as their configurations ask for, and what would keep an ADD from working.

use osvc_cni::netlink::netns::host_id;
use osvc_cni::netlink::{self, RouteSocket};
use osvc_cni::network::NetworkRecord;
use osvc_cni::network::setup::Site;
use osvc_cni::plugin::bridge::{self, Bridge};
use osvc_cni::plugin::ipam::Ipam;
use osvc_cni::plugin::portmap::Portmap;
use osvc_cni::plugin::routed::Routed;
use osvc_cni::protocol::Plugin as _;
use osvc_cni::routed::{self, RoutedConfig, node};
use osvc_cni::{Host, NetworkName, firewall, portmap};

use super::{Report, Subject};
use crate::conf::{BRIDGE, Definition, PORTMAP, Plugin};
use crate::nodes::ROUTED;
use crate::setup::detached;

const WHY: &str =
    "until then containers of it may not reach what they should; the next container's start does the same";

/// Containers that `setup` cannot put back.
pub fn containers(report: &mut Report, host: &Host, subjects: &[Subject<'_>]) {
    for subject in subjects {
        let name = &subject.network.name;
        match detached::find(host, subject.network) {
            Ok(found) => {
                for (address, record) in found {
                    let what = format!("{address} of {} runs without its host end, which is gone", record.holder());
                    let why = "nothing reaches it, and it reaches nothing";
                    report.add("detached", Some(name), what, why, "restart the container");
                }
            }
            Err(error) => report.cannot_tell(Some(name), "whether all containers are attached", &error),
        }
    }
}

const REFUSED: &str = "no container of this network can start";

/// What `setup` would do.
pub fn look(report: &mut Report, host: &Host, subjects: &[Subject<'_>]) {
    for subject in subjects {
        let found = match (subject.network.plugin(ROUTED), subject.network.plugin(BRIDGE)) {
            (Some((definition, plugin)), _) => of_cluster(report, host, subject, definition, plugin),
            (None, Some((definition, plugin))) => of_bridge(host, subject, definition, plugin),
            (None, None) => continue,
        };
        let name = &subject.network.name;
        match found {
            Ok(missing) if missing.is_empty() => {}
            Ok(missing) => {
                let help = format!("osvc-net setup {name}");
                // They are told, and the same command helps.
                if !["forwarding-off", "foreign-drop", "torn-record"].iter().any(|id| report.offers(id, name, &help))
                    && !refused(report, host, subject)
                {
                    report.add("not-set-up", Some(name), some_of(&missing), WHY, help);
                }
            }
            // What has no nft was told before.
            Err(_) if ["no-nft", "no-nftables", "old-nft"].iter().any(|id| report.has(id, name)) => {}
            Err(_) if refused(report, host, subject) => {}
            Err(error) => report.cannot_tell(Some(name), "whether it is set up", &error),
        }
    }
    match portmap::mend(host, true) {
        Ok(found) if found.ports == 0 || found.is_whole() => {}
        Ok(found) => {
            let what = match found.rules {
                true => format!("the rules of {} published host ports are not there, or were changed", found.ports),
                false => format!("{} elements of {} published host ports are not there", found.wrong, found.ports),
            };
            report.add(
                "ports-not-set-up",
                None,
                what,
                "whoever connects to these ports reaches no container",
                "osvc-net setup",
            );
        }
        Err(error)
            if !report.findings.iter().any(|finding| finding.id.ends_with("nft") || finding.id == "no-nftables") =>
        {
            report.cannot_tell(None, "whether host ports are published", &osvc_cni::Error::from(error));
        }
        Err(_) => {}
    }
}

/// Three of many.
fn some_of(all: &[String]) -> String {
    let more = all.len().saturating_sub(3);
    let text = all.iter().take(3).map(String::as_str).collect::<Vec<_>>().join("; ");
    if more > 0 { format!("{text}; and {more} more") } else { text }
}

fn of_bridge(
    host: &Host,
    subject: &Subject<'_>,
    definition: &Definition,
    plugin: &Plugin,
) -> Result<Vec<String>, osvc_cni::Error> {
    let call = definition.call(plugin, host)?;
    let Some(wanted) = bridge::wanted(&call)? else { return Ok(Vec::new()) };
    let (netns, mut socket) = (host_id()?, RouteSocket::open()?);
    let mut site = Site { host, netns: &netns, socket: &mut socket };
    let Some(setup) = site.in_place(&wanted)? else {
        let device = &wanted.bridge.name;
        return Ok(vec![match &subject.record {
            None => format!("it was not set up since this host was started: there is no bridge {device} for it"),
            Some(record) if site.socket.link_by_name(&record.bridge)?.is_none() => {
                format!("its bridge {} is gone", record.bridge)
            }
            Some(_) => format!("bridge {device} is not as the conflist asks for: it is down, or lacks an address"),
        }]);
    };
    let mut missing = Vec::new();
    let strays = site.strays(&wanted, Some(&setup.bridge))?.len();
    if strays > 0 {
        missing.push(format!("devices of {strays} containers are not on bridge {} any more", setup.bridge.name));
    }
    if let Some(mtu) = site.other_mtu(&wanted, &setup)? {
        missing.push(format!("the MTU of bridge {} is {}, not {mtu}", setup.bridge.name, setup.bridge.mtu));
    }
    missing.extend(rules(host, &setup.record)?);
    Ok(missing)
}

fn rules(host: &Host, record: &NetworkRecord) -> Result<Option<String>, osvc_cni::Error> {
    let whole = firewall::in_place(host, record)?;
    Ok((!whole).then(|| "its firewall rules are not there, or were changed (nft list table ip osvc-cni)".to_owned()))
}

fn of_cluster(
    report: &mut Report,
    host: &Host,
    subject: &Subject<'_>,
    definition: &Definition,
    plugin: &Plugin,
) -> Result<Vec<String>, osvc_cni::Error> {
    let name = &subject.network.name;
    let call = definition.call(plugin, host)?;
    let mut config = RoutedConfig::from_call(&call)?;
    let plan = routed::segments::read(host, &mut config)?;
    let (netns, mut socket) = (host_id()?, RouteSocket::open()?);
    match node::missing_kind(host, &mut socket, &config, &plan) {
        Ok(None) => {}
        Ok(Some(error)) => {
            let help = match &error {
                netlink::Error::NoModule { module, .. } => {
                    format!("modprobe {module}   # and a line {module} in /etc/modules-load.d/osvc-cni.conf, to stay")
                }
                _ => format!("osvc-net setup {name}"),
            };
            let why = "other nodes that are reached through tunnels are not reached";
            report.add("kernel-module", Some(name), error.to_string(), why, help);
        }
        Err(error) => {
            report.cannot_tell(Some(name), "whether this kernel has its tunnels", &osvc_cni::Error::from(error));
        }
    }
    let looked = node::look(host, &netns, &mut socket, &config, &plan)?;
    for (peer, fault) in looked.faults {
        let why = "its containers cannot be reached from here";
        let help = format!(
            "mend the entry of {peer} in {}, or its name, then osvc-net setup {name}",
            definition.file.display()
        );
        report.add("peer-fault", Some(name), format!("{peer}: {fault}"), why, help);
    }
    let mut missing = looked.missing;
    if let Some(record) = subject.record.as_ref().filter(|_| missing.is_empty()) {
        missing.extend(rules(host, record)?);
    }
    Ok(missing)
}

/// What keeps a network from being set up, and its plugins from saying that all is well.
const EXPLAINS: [&str; 7] =
    ["no-nft", "no-nftables", "old-nft", "kernel-module", "networks-overlap", "disk-full", "not-writable"];

/// What the plugins say of themselves, where nothing that was found explains it.
pub fn status(report: &mut Report, host: &Host, subjects: &[Subject<'_>]) {
    for subject in subjects {
        let name = &subject.network.name;
        let others = ["not-set-up", "range-nearly-full", "configuration", "status"];
        if EXPLAINS.iter().chain(&others).any(|id| report.has(id, name)) {
            continue;
        }
        if let Some((kind, why_not)) = answers(host, subject) {
            tell(report, name, &kind, &why_not, "do what the message says, and run osvc-net doctor again");
        }
    }
}

/// What a plugin says of itself, unless those words were told: a record that cannot be read keeps many from their work.
fn tell(report: &mut Report, name: &NetworkName, kind: &str, why_not: &str, help: &str) {
    if !report.about(name).any(|finding| finding.what.contains(why_not)) {
        report.add("status", Some(name), format!("{kind}: {why_not}"), REFUSED, help);
    }
}

/// True if a network cannot be set up, and that is told now.
fn refused(report: &mut Report, host: &Host, subject: &Subject<'_>) -> bool {
    let name = &subject.network.name;
    if EXPLAINS.iter().any(|id| report.has(id, name)) {
        return false;
    }
    let Some((kind, why_not)) = answers(host, subject) else { return false };
    tell(report, name, &kind, &why_not, "do what the message says: setup fails like this, too");
    true
}

/// The first STATUS of its plugins that is an error: which plugin, and what it says.
fn answers(host: &Host, subject: &Subject<'_>) -> Option<(String, String)> {
    let name = &subject.network.name;
    let definition = subject.network.definition.as_ref()?;
    definition.plugins.iter().find_map(|plugin| {
        let call = definition.call(plugin, host).ok()?;
        let delegates = plugin.ipam().is_some_and(|ipam| ipam != "osvc-ipam");
        let answer = match plugin.kind.as_str() {
            // What another plugin would say of its addresses is known to that one.
            BRIDGE if delegates => return None,
            BRIDGE => Bridge.status(&call),
            ROUTED => Routed.status(&call),
            PORTMAP => Portmap.status(&call),
            _ if plugin.ipam() == Some("osvc-ipam") => Ipam.status(&call),
            _ => return None,
        };
        let text = answer.err()?.to_string();
        Some((plugin.kind.clone(), text.replacen(&format!("network {name}: "), "", 1)))
    })
}
