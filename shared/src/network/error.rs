//! What can go wrong with a network or an attachment to it.

use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;

use super::check::Fault;
use crate::lock::LockError;
use crate::netlink::Mac;
use crate::protocol::JsonError;
use crate::{Attachment, Code, NetworkName, netlink};

/// What can go wrong with a network or an attachment to it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key whose value cannot be honoured.
    #[error("cannot honour {key} {value}: {reason}")]
    Unsupported {
        /// The key, with its path.
        key: &'static str,
        /// The value, as JSON.
        value: String,
        /// Why not, and what would do.
        reason: Reason,
    },
    /// A value of the wrong type.
    #[error("invalid network configuration: {0}")]
    Type(#[from] JsonError),
    /// Two keys that exclude each other.
    #[error("{0}")]
    Contradiction(Contradiction),
    /// The name of the bridge is another device's.
    #[error(
        "failed to create bridge {name:?}: {name:?} already exists but is not a bridge, it is a {kind} device: name another `bridge`"
    )]
    NotABridge {
        /// The name.
        name: String,
        /// What it is.
        kind: String,
    },
    /// The name of the bridge is an alternative one.
    #[error("{name:?} is an alternative name of the bridge {device}: set `bridge` to {device}")]
    AlternativeName {
        /// The name.
        name: String,
        /// The bridge's own.
        device: String,
    },
    /// The bridge is not ours, and takes no notice of VLANs.
    #[error(
        "bridge {0} does not filter VLANs, and is not ours to change: `ip link set {0} type bridge vlan_filtering 1`, or name another `bridge`"
    )]
    NoVlanFiltering(String),
    /// The kernel's bridges know no VLANs.
    #[error(
        "bridge {0} cannot filter VLANs: this kernel was built without CONFIG_BRIDGE_VLAN_FILTERING; leave out vlan and vlanTrunk, or use another kernel"
    )]
    NoVlans(String),
    /// The name of the device of a VLAN is something else's.
    #[error(
        "{device} exists, and is not a pair whose other end is a port of bridge {bridge} in that VLAN, untagged: rename or delete it"
    )]
    VlanDeviceTaken {
        /// The name.
        device: String,
        /// The bridge.
        bridge: String,
    },
    /// The bridge cannot carry IPv6.
    #[error(
        "bridge {bridge} has MTU {mtu}, and IPv6 needs 1280 or more: set `mtu`, or the MTU of a bridge that is not ours"
    )]
    MtuTooSmall {
        /// The bridge.
        bridge: String,
        /// Its MTU, in bytes.
        mtu: u32,
    },
    /// Another network of ours has these addresses.
    #[error(
        "network {name}: subnet {subnet} overlaps {other_subnet} of network {other}: choose another subnet, or remove network {other} and its bridge {bridge}"
    )]
    OverlapsNetwork {
        /// The network.
        name: NetworkName,
        /// Its subnet.
        subnet: IpNet,
        /// The other network.
        other: NetworkName,
        /// The other one's subnet.
        other_subnet: IpNet,
        /// The other one's bridge.
        bridge: String,
    },
    /// The host has a route to these addresses.
    #[error("network {name}: subnet {subnet} overlaps the host's route {route} on {device}: choose another subnet")]
    OverlapsRoute {
        /// The network.
        name: NetworkName,
        /// Its subnet.
        subnet: IpNet,
        /// The route's destination.
        route: IpNet,
        /// The route's device.
        device: String,
    },
    /// It is on another bridge, which its configuration named before.
    #[error(
        "network {name} is set up on bridge {from}: `osvc-net setup {name}` moves it to {to} once no container uses it"
    )]
    Moved {
        /// The network.
        name: NetworkName,
        /// The bridge where it is.
        from: String,
        /// The bridge where it is to be.
        to: String,
    },
    /// A network that is to go to another bridge, and whose subnet would stay behind.
    #[error(
        "network {name} cannot leave {device}: the route {route} there would stay, and is not ours; remove the address that it is of (`ip address del`), or the route (`ip route del`), and the next setup moves the network"
    )]
    Stays {
        /// The network.
        name: NetworkName,
        /// The device that has the address.
        device: String,
        /// The route by it.
        route: IpNet,
    },
    /// The bridge has an address that clashes with a gateway.
    #[error(
        "failed to set bridge addr: {bridge:?} already has an IP address different from {gateway}: {address} clashes with it; remove it, or set forceAddress"
    )]
    AddressClash {
        /// The bridge.
        bridge: String,
        /// What it has.
        address: IpNet,
        /// What it should have.
        gateway: IpNet,
    },
    /// The interface is there already.
    #[error(
        "container veth name ({ifname:?}) peer provided ({host_end:?}) already exists: delete it, or attach by another name than CNI_IFNAME {ifname}"
    )]
    InterfaceExists {
        /// Its name.
        ifname: String,
        /// The name that its host end would have.
        host_end: String,
    },
    /// The host end of this attachment is that of a living container.
    #[error(
        "{attachment} is attached already{}: its host end {host_end} is there, and so is the other end; DEL it first",
        .netns.as_ref().map(|path| format!(", in network namespace {}", path.display())).unwrap_or_default()
    )]
    Attached {
        /// The attachment.
        attachment: Box<Attachment>,
        /// The host end.
        host_end: String,
        /// Where the other end lives, if that is recorded.
        netns: Option<PathBuf>,
    },
    /// The name of the host end is a foreign device's.
    #[error("{host_end} exists, and is not the host end of {attachment}: rename or delete it")]
    HostEndTaken {
        /// The attachment.
        attachment: Attachment,
        /// The host end.
        host_end: String,
    },
    /// A device is gone as soon as it was made.
    #[error("{0} was made, and was gone at once: its network namespace is on its way out, or somebody deletes devices")]
    Vanished(String),
    /// IPv6 forwarding would cut the host's own default route.
    #[error(
        "IPv6 forwarding would make the host lose its router-advertised default route on {device}: set net.ipv6.conf.{device}.accept_ra to 2 ({source})"
    )]
    RouterAdvertisements {
        /// The device.
        device: String,
        /// Why we could not.
        source: netlink::Error,
    },
    /// The IPAM plugin gave no address.
    #[error("IPAM plugin returned missing IP config: network {0} needs an address for each container")]
    NoAddress(NetworkName),
    /// Another host has the container's address.
    #[error("IPv6 address {address} on {ifname} is in use by another host (duplicate address detection)")]
    DuplicateAddress {
        /// The address.
        address: IpAddr,
        /// The interface.
        ifname: String,
    },
    /// The kernel refused the requested MAC address.
    #[error("failed to make veth pair: address {mac}: {source}")]
    Mac {
        /// The address.
        mac: Mac,
        /// The kernel's answer.
        source: netlink::Error,
    },
    /// A route that cannot be: its gateway is not on the link, or the like.
    #[error("failed to add route: {0}")]
    Route(netlink::Error),
    /// CNI_NETNS is no network namespace.
    #[error("failed to open netns: {0}")]
    Netns(netlink::Error),
    /// The kernel refused a request.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// A record could not be read or written.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Record {
        /// read, write, …
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A record of a later version.
    #[error("{} has format {v}, this version knows {}: install the version that wrote it", .path.display(), super::record::FORMAT)]
    NewerFormat {
        /// The record.
        path: PathBuf,
        /// Its format.
        v: u32,
    },
    /// Networks are being set up by somebody else.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// STATUS: the next ADD could not write its record.
    #[error(transparent)]
    NotWritable(#[from] crate::host::NotWritable),
    /// STATUS: an ADD would be refused.
    #[error("an ADD would fail: {0}")]
    WouldFail(Box<Error>),
    /// CHECK: this is not as ADD made it.
    #[error("{attachment}: {}", .faults.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))]
    Check {
        /// The attachment.
        attachment: Attachment,
        /// What is wrong.
        faults: Vec<Fault>,
    },
}

/// Why a value cannot be honoured.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The text is no such thing.
    #[error("it is not {0}")]
    Not(&'static str),
    /// The value lies outside of what there is.
    #[error("it must be {0}")]
    MustBe(&'static str),
    /// 802.1Q has 4094 networks.
    #[error("invalid VLAN ID {0} (must be between 0 and 4094)")]
    Vlan(i64),
    /// An entry of `vlanTrunk` that is none, in the reference's words.
    #[error("{0}, ids are 1 to 4094")]
    Trunk(&'static str),
    /// A name that no device can have.
    #[error(transparent)]
    Name(#[from] crate::attachment::NameError),
    /// A network's address has host bits.
    #[error("it has host bits set, the network is {0}")]
    HostBits(IpNet),
    /// Two subnets of one network.
    #[error("it overlaps {0}")]
    Overlaps(IpNet),
}

/// Keys that exclude each other.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// B4.8.
    #[error(
        "cannot use IPAM when DisableContainerInterface flag is set: leave out `disableContainerInterface: true`, or `network` and `ipam`"
    )]
    AddressOfDownInterface,
    /// B4.6.
    #[error(
        "cannot set hairpin mode and promiscuous mode at the same time: leave out `hairpinMode: true` or `promiscMode: true`"
    )]
    HairpinAndPromiscuous,
    /// Frames of a trunk are in VLANs of which nobody here knows the addresses.
    #[error(
        "spoofcheck and vlanTrunk exclude each other: what is tagged cannot be checked; leave out one of them, or use macspoofchk"
    )]
    SpoofcheckAndTrunk,
    /// `network` says which addresses there are, and so does `ipam`.
    #[error("`network` and ipam.{0} both say which addresses the network has: leave out one of them")]
    NetworkAndIpam(&'static str),
    /// `network` is allocated by osvc-ipam.
    #[error("`network` is for osvc-ipam, and ipam.type is {0:?}: leave out one of them")]
    NetworkAndOtherIpam(String),
    /// `public` addresses leave as they are.
    #[error("public and ipMasq exclude each other: leave out one of them")]
    PublicAndMasqueraded,
    /// A layer 2 network has no gateway.
    #[error("{0} needs addresses: give `network`, or `ipam` with a `type`")]
    LayerTwo(&'static str),
}

impl Error {
    pub(crate) fn record(doing: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Record { doing, path: path.into(), source }
    }

    /// The code of the CNI specification.
    pub fn code(&self) -> Code {
        match self {
            Self::Unsupported { .. } => Code::UnsupportedField,
            Self::Type(_) => Code::Decode,
            Self::Contradiction(_)
            | Self::NotABridge { .. }
            | Self::AlternativeName { .. }
            | Self::NoVlanFiltering(_)
            | Self::VlanDeviceTaken { .. }
            | Self::MtuTooSmall { .. }
            | Self::OverlapsNetwork { .. }
            | Self::OverlapsRoute { .. }
            | Self::Moved { .. }
            | Self::Stays { .. }
            | Self::AddressClash { .. }
            | Self::NoAddress(_)
            | Self::Mac { .. }
            | Self::Route(_) => Code::InvalidConfig,
            Self::InterfaceExists { .. } => Code::InvalidEnvironment,
            Self::Attached { .. } | Self::HostEndTaken { .. } | Self::DuplicateAddress { .. } => Code::InUse,
            Self::Netns(_) => Code::InvalidNetns,
            Self::Lock(error) => error.code(),
            Self::Vanished(_) => Code::TryAgainLater,
            Self::NotWritable(_) | Self::WouldFail(_) | Self::NoVlans(_) => Code::NotAvailable,
            Self::Check { .. } => Code::CheckFailed,
            Self::RouterAdvertisements { .. } | Self::Netlink(_) | Self::Record { .. } | Self::NewerFormat { .. } => {
                Code::Io
            }
        }
    }
}
