//! The ways to other nodes: asked by echo requests, all at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::thread;

use ipnet::IpNet;
use osvc_cni::netlink::RouteSocket;
use osvc_cni::routed::RoutedRecord;
use osvc_cni::routed::devices::Kind;
use osvc_cni::routed::path::{Path, Paths};
use osvc_cni::routed::record::{PeerRecord, WayRecord};

use super::probe::{Answer, Target, probe};
use super::{Report, Subject};

const UNREACHED: &str = "containers of the two nodes do not reach each other";

/// A way that is to be looked at.
struct Look<'a> {
    routed: &'a RoutedRecord,
    peer: &'a PeerRecord,
    way: &'a WayRecord,
    /// The route to the node itself.
    path: Option<Path>,
}

/// The ways to all nodes of all networks.
pub fn look(report: &mut Report, subjects: &[Subject<'_>]) {
    let mut looks = Vec::new();
    for routed in subjects.iter().filter_map(|subject| subject.routed.as_ref()) {
        // What is not set up leads nowhere, and was told.
        if report.has("not-set-up", &routed.name) || report.has("kernel-module", &routed.name) {
            continue;
        }
        for (peer, way) in routed.peers.iter().flat_map(|peer| peer.ways.iter().map(move |way| (peer, way))) {
            match RouteSocket::open().and_then(|mut socket| socket.path_to(way.remote)) {
                Ok(path) => looks.push(Look { routed, peer, way, path }),
                Err(error) => report.cannot_tell(Some(&routed.name), "the routes to other nodes", &error),
            }
        }
    }
    let nodes: BTreeMap<IpAddr, u32> =
        looks.iter().filter_map(|look| Some((look.way.remote, look.path.as_ref()?.mtu))).collect();
    let answers = thread::scope(|scope| {
        let nodes: Vec<_> = nodes
            .iter()
            .map(|(to, size)| (*to, scope.spawn(|| probe(Target { source: None, to: *to, size: *size }))))
            .collect();
        let ways: Vec<_> = looks.iter().map(|look| scope.spawn(|| probe(look.target()))).collect();
        let ended = |handle: thread::ScopedJoinHandle<'_, io::Result<Answer>>| {
            handle.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
        };
        let nodes: BTreeMap<IpAddr, io::Result<Answer>> =
            nodes.into_iter().map(|(to, handle)| (to, ended(handle))).collect();
        (nodes, ways.into_iter().map(ended).collect::<Vec<_>>())
    });
    let (nodes, ways) = answers;
    // Both families of a network go by the same tunnel, or fail for the same reason.
    let mut told = BTreeSet::new();
    for (look, through) in looks.iter().zip(ways) {
        let node = match nodes.get(&look.way.remote) {
            Some(Ok(node)) => *node,
            Some(Err(error)) => return report.cannot_tell(None, "whether other nodes answer", error),
            None => Answer::default(),
        };
        match through {
            Ok(through) => look.judge(report, &mut told, node, through),
            Err(error) => return report.cannot_tell(None, "whether other nodes answer", &error),
        }
    }
}

/// The first address of a segment, which is its node's.
fn gateway(segment: &IpNet) -> IpAddr {
    match segment.network() {
        IpAddr::V4(network) => IpAddr::V4((u32::from(network).saturating_add(1)).into()),
        IpAddr::V6(network) => IpAddr::V6((u128::from(network).saturating_add(1)).into()),
    }
}

impl Look<'_> {
    /// The peer's end of the network, from this node's.
    fn target(&self) -> Target {
        let to = gateway(&self.way.segment);
        let here = self.routed.here.iter().find(|here| here.addr().is_ipv4() == to.is_ipv4());
        Target { source: here.map(gateway), to, size: self.way.mtu }
    }

    fn judge<'a>(
        &'a self,
        report: &mut Report,
        told: &mut BTreeSet<(&'a str, &'a str, IpAddr, &'static str)>,
        node: Answer,
        through: Answer,
    ) {
        let Self { routed, peer, way, path } = self;
        let name = &routed.name;
        let mut first = |id| told.insert((name.as_str(), peer.name.as_str(), way.remote, id));
        let (peer, remote, device) = (&peer.name, way.remote, &way.device);
        match (through.small, node.small) {
            (true, _) => {
                if let Some((what, help)) = self.narrow(node, through).filter(|_| first("path-mtu")) {
                    let why = "connections between containers of the two nodes stall once they carry data, or are slow";
                    report.add("path-mtu", Some(name), what, why, help);
                }
            }
            (false, true) if way.tunnel && first("tunnel-blocked") => {
                let protocol = self.protocol();
                let says = if node.refused || through.refused { ", and says that there is nobody for it" } else { "" };
                let what = format!(
                    "{peer} answers at {remote}{says}, but nothing comes back through tunnel {device} ({protocol})"
                );
                let help = format!(
                    "osvc-net setup {name}   # on {peer}: it may not be set up there\n\
                     # or let {protocol} pass between the two nodes, both ways, in every firewall on the way"
                );
                report.add("tunnel-blocked", Some(name), what, UNREACHED, help);
            }
            (false, true) if !way.tunnel && first("peer-silent") => {
                let segment = &way.segment;
                let gateway = gateway(segment);
                let what = format!("{peer} answers at {remote}, but not at {gateway} in its segment {segment}");
                let help = format!(
                    "osvc-net setup {name}   # on {peer}: it may not be set up there, or a firewall drops {segment}"
                );
                report.add("peer-silent", Some(name), what, UNREACHED, help);
            }
            (false, false) if first("peer-down") => {
                let what = match path {
                    Some(_) => format!(
                        "{peer} answers neither at {remote} nor through {device}: it is down, not reached, or drops \
                         ICMP echo"
                    ),
                    None => format!("{peer}: this node has no route to {remote}"),
                };
                let help = format!(
                    "ping {remote}; ip route get {remote}\n\
                     # if {peer} is gone for good: osvc-net conf remove-node {name} {peer}"
                );
                report.add("peer-down", Some(name), what, UNREACHED, help);
            }
            _ => {}
        }
    }

    /// What of the way is narrower than its routes say, and how to have all know that.
    fn narrow(&self, node: Answer, through: Answer) -> Option<(String, String)> {
        let Self { routed, peer, way, path } = self;
        let (name, peer, remote, device) = (&routed.name, &peer.name, way.remote, &way.device);
        // What a tunnel cuts for itself arrives, and costs; what may not be cut is lost.
        let (most, what, path) = match (node.most.filter(|_| node.small).zip(path.as_ref()), through.most) {
            (Some((most, path)), _) => {
                (most, format!("packets of {} bytes do not get to {remote}", path.mtu), Some(path))
            }
            (None, Some(most)) => {
                let what = format!("packets of {} bytes do not get through {device} to {remote}", way.mtu);
                (most, what, path.as_ref().filter(|_| !way.tunnel))
            }
            (None, None) => return None,
        };
        let help = match path {
            Some(path) => {
                let via = path.gateway.map(|gateway| format!(" via {gateway}")).unwrap_or_default();
                let device = &path.name;
                format!(
                    "ip route replace {remote}{via} dev {device} mtu {most}; osvc-net setup {name}\n\
                     # here and on {peer}; or mend the link on the way that lets so little through"
                )
            }
            None => format!("write \"mtu\": {most} in the conflist of {name} on all nodes; osvc-net setup {name}"),
        };
        Some((format!("{peer}: {what}: {most} bytes do"), help))
    }

    /// What a firewall has to let pass.
    fn protocol(&self) -> String {
        let kind = self.routed.tunnels.iter().find(|tunnel| tunnel.name == self.way.device).map(|tunnel| &tunnel.kind);
        match kind {
            Some(Kind::Ipip(_)) => "IP protocol 4".to_owned(),
            Some(Kind::Sit(_)) => "IP protocol 41".to_owned(),
            Some(Kind::Ip6tnl(_)) => "IP protocols 4 and 41".to_owned(),
            Some(Kind::Gre { .. } | Kind::Ip6gre { .. }) => "IP protocol 47".to_owned(),
            Some(Kind::Vxlan { port, .. } | Kind::Wireguard { port }) => format!("UDP port {port}"),
            None => "its protocol".to_owned(),
        }
    }
}
