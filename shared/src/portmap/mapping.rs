//! One published port.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// A transport protocol that has ports and that nf_nat translates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    /// The name in configurations, records and listings: lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }

    /// The number in the IP header (IANA, "Assigned Internet Protocol Numbers").
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }

    /// The protocol of a name, in whatever case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A port of this host that leads to a port of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Mapping {
    /// The host's address; `0.0.0.0` and `::` are all of their family, none is all of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_ip: Option<IpAddr>,
    /// The host's port, never 0.
    pub host_port: u16,
    /// The container's port, never 0.
    pub container_port: u16,
    /// The protocol of both.
    pub protocol: Protocol,
}

impl fmt::Display for Mapping {
    /// As podman writes it: `192.0.2.1:8080->80/tcp`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host_ip {
            Some(address) => write!(f, "{}", SocketAddr::new(address, self.host_port))?,
            None => write!(f, "{}", self.host_port)?,
        }
        write!(f, "->{}/{}", self.container_port, self.protocol)
    }
}

impl Mapping {
    /// True if it is for packets to addresses of this one's family.
    pub fn is_for(&self, address: IpAddr) -> bool {
        self.host_ip.is_none_or(|host| host.is_ipv4() == address.is_ipv4())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_written_as_podman_writes_them() {
        let mut mapping = Mapping { host_ip: None, host_port: 8080, container_port: 80, protocol: Protocol::Tcp };
        assert_eq!(mapping.to_string(), "8080->80/tcp");
        mapping.host_ip = Some("192.0.2.1".parse().unwrap());
        assert_eq!(mapping.to_string(), "192.0.2.1:8080->80/tcp");
        mapping.host_ip = Some("2001:db8::1".parse().unwrap());
        mapping.protocol = Protocol::Udp;
        assert_eq!(mapping.to_string(), "[2001:db8::1]:8080->80/udp");
        assert_eq!(Protocol::from_name("SCTP"), Some(Protocol::Sctp));
        assert_eq!(Protocol::from_name("icmp"), None);
    }
}
