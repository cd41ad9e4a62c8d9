//! Changes of the recorded plan that a configuration asks for and does not get.

use std::fmt;

use ipnet::IpNet;

/// A change that is refused: the recorded plan stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// A recorded node would get another segment: by its `subnet`, or since the list in front of it changed.
    Moved {
        /// The node.
        node: String,
        /// Its segment.
        recorded: IpNet,
        /// What the configuration gives it; `None`: there is none left.
        wanted: Option<IpNet>,
        /// `subnet` says so.
        fixed: bool,
    },
    /// A node without a record would get a segment that is recorded for another node. It has none.
    Taken {
        /// The node.
        node: String,
        /// What the configuration gives it.
        wanted: IpNet,
        /// The other node.
        holder: String,
        /// The other node's segment.
        held: IpNet,
        /// The holder is in the list still.
        listed: bool,
        /// A segment that is free.
        free: Option<IpNet>,
    },
    /// A node without a record for which there is no segment left.
    Full(Full),
    /// This node, under the name that it had before, has a segment that its new name would not get. It stays.
    Renamed {
        /// The recorded name.
        from: String,
        /// The name in the configuration.
        to: String,
        /// The segment.
        recorded: IpNet,
    },
    /// This host is another node by its name than when the plan was recorded. It stays that node.
    OtherNode {
        /// The recorded node.
        from: String,
        /// The node of its name now.
        to: String,
        /// `from` is retired: it has no part in the network any more.
        retired: bool,
    },
    /// `network` was edited, and recorded segments are outside of it.
    Outside {
        /// The recorded network, which stays.
        recorded: IpNet,
        /// What the configuration says.
        wanted: IpNet,
        /// A node with a segment outside.
        node: String,
        /// The segment.
        segment: IpNet,
    },
    /// `network` was edited, and holds two networks that are recorded apart.
    Joined {
        /// The recorded network, which stays.
        recorded: IpNet,
        /// What the configuration says.
        wanted: IpNet,
        /// The other recorded network.
        other: IpNet,
    },
}

/// A network with fewer segments than nodes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "network {network} has {slots} segments of /{prefix} (maskPerNode), and {node} needs one: {listed} nodes are \
     listed{}; make segments smaller or the network larger, or fix `subnet` of {node} to that of a retired node and \
     remove that from the list", kept(*.unlisted)
)]
pub struct Full {
    /// The network.
    pub network: IpNet,
    /// Prefix length of a segment.
    pub prefix: u8,
    /// How many segments of this size the network has.
    pub slots: u128,
    /// How many nodes the configuration lists, retired ones included.
    pub listed: usize,
    /// How many nodes have a segment and are no longer listed.
    pub unlisted: usize,
    /// The first node without one.
    pub node: String,
}

fn kept(unlisted: usize) -> String {
    if unlisted == 0 { String::new() } else { format!(", {unlisted} more have one and are not listed") }
}

impl Refused {
    /// The node of the configuration that it is about; `None` if it is about a network.
    pub fn node(&self) -> Option<&str> {
        match self {
            Self::Moved { node, .. } | Self::Taken { node, .. } => Some(node),
            Self::Renamed { to: node, .. } | Self::OtherNode { from: node, .. } => Some(node),
            Self::Full(full) => Some(&full.node),
            Self::Outside { .. } | Self::Joined { .. } => None,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Moved { node, recorded, wanted: Some(wanted), fixed: true } => {
                write!(f, "node {node} has {recorded} and its `subnet` says {wanted}: set `subnet` to {recorded}")
            }
            Self::Moved { node, recorded, wanted, .. } => {
                write!(f, "node {node} has {recorded} and would ")?;
                match wanted {
                    Some(wanted) => write!(f, "move to {wanted}")?,
                    None => write!(f, "lose it")?,
                }
                write!(
                    f,
                    ": set its `subnet` to {recorded} on all nodes, or put back the node that was before it in the \
                     list, with \"retired\": true if it is gone"
                )
            }
            Self::Taken { node, wanted, holder, held, listed, free } => {
                write!(f, "node {node} would get {wanted}, and {held} is that of node {holder}: ")?;
                if !listed {
                    write!(f, "put {holder} back into the list, with \"retired\": true if it is gone, or ")?;
                }
                match free {
                    Some(free) => write!(f, "set `subnet` of {node} to a free one such as {free} on all nodes"),
                    None => write!(f, "make segments smaller or the network larger: none is free for {node}"),
                }
            }
            Self::Full(full) => full.fmt(f),
            Self::Renamed { from, to, recorded } => write!(
                f,
                "this node was {from} and is {to}; it keeps {recorded}, and the others keep it for {from}: go back \
                 to that name on all nodes"
            ),
            Self::OtherNode { from, to, retired } => {
                write!(
                    f,
                    "this host was node {from} when the segments were recorded, and has the name of node {to} now, \
                     whose segment is another host's: "
                )?;
                if !retired {
                    write!(f, "it stays {from}; ")?;
                }
                f.write_str("correct `node`, /etc/osvc-cni/node or the host name")
            }
            Self::Outside { recorded, wanted, node, segment } => write!(
                f,
                "`network` {wanted} leaves out {segment}, which node {node} has of {recorded}: set `network` to \
                 {recorded}, or to one that does not overlap it"
            ),
            Self::Joined { recorded, wanted, other } => write!(
                f,
                "`network` {wanted} joins {recorded} and {other}, which have segments of their own: set it to \
                 {recorded}, or to one that overlaps neither"
            ),
        }
    }
}
