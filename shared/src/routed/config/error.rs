//! What can be wrong with the configuration of a routed network.

use std::net::IpAddr;

use ipnet::IpNet;

use super::LowNode;

/// Why a value cannot be honoured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The text is no such thing.
    #[error("it is not {0}")]
    Not(&'static str),
    /// The value lies outside of what there is.
    #[error("it must be {0}")]
    MustBe(&'static str),
    /// A segment lies inside its network and has room for a container.
    #[error("it must be between {least} and {most}, for segments of network {network} that have room for a container")]
    Prefix {
        /// The network.
        network: IpNet,
        /// Its own prefix length.
        least: u8,
        /// The longest that leaves an address for a container.
        most: u8,
    },
    /// Segments are powers of two.
    #[error("it must be a power of two of 4 or more, or use maskPerNode, the prefix length of a node's segment")]
    PowerOfTwo,
    /// A segment larger than all of it.
    #[error("it is more than network {0} has")]
    Larger(IpNet),
    /// A network's address has host bits.
    #[error("it has host bits set, the network is {0}")]
    HostBits(IpNet),
    /// A segment elsewhere.
    #[error("it is not inside `network` ({})", list(.0))]
    NotInside(Vec<IpNet>),
    /// A segment without room.
    #[error("it has no room for a gateway and a container: make it 4 addresses or more")]
    TooSmall,
    /// The way to the address would lead through the address.
    #[error(
        "the address of a node cannot be inside the network {0} itself: give the one that the host has outside of it"
    )]
    InNetwork(IpNet),
    /// A node has one address of a family.
    #[error("a node has one address of each family, or one name: remove what is too many")]
    TooMany,
    /// A key of a node that means nothing.
    #[error("a node has no such key, it has {}: correct or remove it", LowNode::KEYS.join(", "))]
    NoKey,
    /// No table of that name.
    #[error("no file of {0} knows a routing table of that name: add it to /etc/iproute2/rt_tables, or give its number")]
    NoTable(String),
    /// The tables that are the kernel's.
    #[error("it is the kernel's own table: give another one, main always has the routes")]
    KernelTable,
    /// A port at which others expect their own packets.
    #[error("other programs use vxlan at this port: choose another one, or leave it out")]
    OthersPort,
}

/// Keys that contradict each other, or this host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// Nothing to give segments of.
    #[error("`network` is missing: give the subnet of the whole cluster, the same on all nodes")]
    NoNetwork,
    /// Others reach a segment by way of its gateway.
    #[error("a routed network needs its gateway: remove isGateway false")]
    NoGateway,
    /// A node has one segment for each family.
    #[error("networks {0} and {1} are of one family: a routed network has one of IPv4, one of IPv6, or one of each")]
    OnePerFamily(IpNet, IpNet),
    /// Not as many sizes as networks.
    #[error("{key} has {given} values and `network` has {networks}: give one for each, in the same order")]
    Sizes {
        /// maskPerNode or ipsPerNode.
        key: &'static str,
        /// How many it has.
        given: usize,
        /// How many there should be.
        networks: usize,
    },
    /// No size.
    #[error("maskPerNode is missing: give the prefix length of a node's segment of {0}, such as {1}")]
    NoSize(IpNet, u8),
    /// Nobody.
    #[error("`nodes` is missing or empty: list all nodes of the cluster, in the same order on all of them")]
    NoNodes,
    /// A node without a name.
    #[error("nodes[{0}] has no name")]
    NoName(usize),
    /// Two nodes of one name.
    #[error("nodes[{first}] and nodes[{second}] have one name, {name}: rename or remove one of them")]
    SameName {
        /// The name.
        name: String,
        /// Where it stands first.
        first: usize,
        /// Where it stands again.
        second: usize,
    },
    /// Two nodes at one address.
    #[error(
        "nodes {first} and {second} have one address, {address}: correct one of them, or mark it \"retired\": true"
    )]
    SameAddress {
        /// The address, or name.
        address: String,
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// Two nodes with one key.
    #[error("nodes {first} and {second} have one publicKey: give each what `osvc-net wireguard pubkey` prints on it")]
    SameKey {
        /// The one.
        first: String,
        /// The other.
        second: String,
    },
    /// Two nodes with the same addresses.
    #[error("`subnet` {a} of node {first} overlaps `subnet` {b} of node {second}: correct one of them")]
    Overlap {
        /// The one.
        first: String,
        /// Its segment.
        a: IpNet,
        /// The other.
        second: String,
        /// Its segment.
        b: IpNet,
    },
    /// Without a tunnel, packets would go in clear.
    #[error("tunnel \"never\" excludes tunnelMode \"wireguard\", which sends nothing in clear: leave out one of them")]
    NeverEncrypted,
    /// This node is not in the list.
    #[error(
        "this node, {name} ({from}), is not one of `nodes` ({known}): add it to the list on all \
         nodes, or set `node` to its name in the list"
    )]
    NotListed {
        /// Its name.
        name: String,
        /// Who says so.
        from: String,
        /// The names that are in the list.
        known: String,
    },
    /// The host name is that of several nodes.
    #[error("this node, {name} ({from}), may be any of {known}: set `node`, or write its name to /etc/osvc-cni/node")]
    Ambiguous {
        /// Its name.
        name: String,
        /// Who says so.
        from: String,
        /// The names that it may be.
        known: String,
    },
    /// This host has the address of another node.
    #[error(
        "this host is node {name} by `node`, /etc/osvc-cni/node or its host name, and has {address}, the address of \
         node {other}, and none of {name}: correct its name, or `addr` of the nodes"
    )]
    OtherAddress {
        /// The node that it is by its name.
        name: String,
        /// The node that it is by its addresses.
        other: String,
        /// The address.
        address: IpAddr,
    },
    /// This node is gone, says the list.
    #[error("this node, {0}, is \"retired\": true: remove that on all nodes, or the network from this node")]
    Retired(String),
}

fn list(networks: &[IpNet]) -> String {
    networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
