//! What can be wrong with a configuration of host ports.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::attachment::Attachment;
use crate::protocol::{self, JsonError};
use crate::{Code, NetworkName};

/// A configuration that cannot be used. Values are quoted as JSON, cut when they are long.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// stdin holds other types of values than it should.
    #[error(transparent)]
    Decode(#[from] protocol::Error),
    /// So does a part of it that comes in two shapes.
    #[error("error unmarshall network config: {0}")]
    Part(JsonError),
    /// ADD without `prevResult`.
    #[error("osvc-portmap must be called as chained plugin: put it behind the plugin that gives the addresses")]
    NotChained,
    /// A key that is known and not honoured.
    #[error("{key} {value} is not supported: {way_out}")]
    NotHonoured {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What to do.
        way_out: &'static str,
    },
    /// `backend` is nothing that anybody knows.
    #[error("unrecognized backend {0}: remove it, or say \"nftables\"")]
    Backend(String),
    /// `markMasqBit` is no bit of a mark.
    #[error("MasqMarkBit must be between 0 and 31, not {0}: remove markMasqBit, it means nothing here")]
    MarkBit(i64),
    /// `allowFrom` without a client.
    #[error("allowFrom is an empty list: name who may connect, or remove it for everybody")]
    AllowNobody,
    /// A client that is none.
    #[error("allowFrom[{index}] ({text}): neither an IP address nor a network such as 192.0.2.0/24")]
    AllowFrom {
        /// Position in the list.
        index: usize,
        /// As configured.
        text: String,
    },
    /// A published port.
    #[error("{entry}: {fault}")]
    Entry {
        /// Number and value: `portMappings[2] (hostPort 70000)`, or `portMappings[0] (8080->80/tcp)`.
        entry: String,
        /// What is wrong with it.
        fault: Fault,
    },
    /// `prevResult` contradicts itself.
    #[error(
        "prevResult.ips[{index}] ({address}) belongs to interface {interface}, but prevResult lists {count}, counted \
         from 0"
    )]
    InterfaceIndex {
        /// Position of the address.
        index: usize,
        /// The address.
        address: IpNet,
        /// The interface that it names.
        interface: u32,
        /// How many interfaces there are.
        count: usize,
    },
    /// Nothing to lead a port to.
    #[error(
        "{attachment}: prevResult has no address of the container to lead host ports to: put osvc-portmap behind the \
         plugin that gives the addresses"
    )]
    NoAddress {
        /// The attachment.
        attachment: Attachment,
    },
}

/// What is wrong with one entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The host's port is none. The reference's words.
    #[error("Invalid host port number: {0}: a port is a whole number from 1 to 65535")]
    HostPort(String),
    /// The container's port is none. The reference's words.
    #[error("Invalid container port number: {0}: a port is a whole number from 1 to 65535")]
    ContainerPort(String),
    /// A protocol without ports, or none.
    #[error("the protocol must be tcp, udp or sctp")]
    Protocol,
    /// `hostIP` is no address.
    #[error("hostIP is no IP address")]
    NoAddress,
    /// A connection has one end.
    #[error("hostIP is the address of a group, not of a host: publish on an address of this host")]
    Group,
    /// Linux has no `route_localnet` for IPv6.
    #[error("::1 cannot be published by translation: publish on 127.0.0.1, or on an IPv6 address of this host")]
    Localhost6,
    /// The container would answer 127.0.0.1: itself.
    #[error("127.0.0.0/8 cannot be published while snat is false: set it to true, or publish on another address")]
    LocalhostWithoutSnat,
    /// Not written as OpenSVC writes it.
    #[error("the forms are CONTAINERPORT:HOSTPORT/PROTOCOL and CONTAINERPORT/PROTOCOL:HOSTPORT, such as 80:8001/tcp")]
    Form,
    /// One port, two ends.
    #[error("it publishes the same host port as {other} for another port of the container: remove one of them")]
    Contradicts {
        /// The other entry.
        other: String,
    },
    /// The host's address is of a family in which the container has none.
    #[error(
        "the container has no {} address on network {network}: publish on an address of its own family, or give \
         the network a subnet of this one", family(.address)
    )]
    NoTarget {
        /// The host's address.
        address: IpAddr,
        /// The network.
        network: NetworkName,
    },
}

fn family(address: &IpAddr) -> &'static str {
    if address.is_ipv4() { "IPv4" } else { "IPv6" }
}

impl ConfigError {
    /// The CNI error code.
    pub fn code(&self) -> Code {
        match self {
            Self::Decode(_) | Self::Part(_) => Code::Decode,
            Self::NotHonoured { .. } => Code::UnsupportedField,
            _ => Code::InvalidConfig,
        }
    }
}
