//! Who uses a network that is to go.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::rc::Rc;

use super::live_ends;
use crate::ipam::liveness::{Kernel, Liveness, Witness};
use crate::ipam::record::Record;
use crate::netlink::{Link, RouteSocket};
use crate::{Error, Host, NetworkName, ipam, portmap};

/// How many tenants are told one by one.
const TOLD: usize = 3;

/// Who uses a network.
#[derive(Debug, Default)]
pub struct Tenants {
    /// Addresses that are held, and not by what is dead.
    pub addresses: Vec<(IpAddr, Record)>,
    /// Host ports of what is not dead.
    pub ports: Vec<Rc<portmap::Record>>,
    /// Host ends whose containers are there.
    pub ends: Vec<Link>,
}

impl Tenants {
    /// Those of a network. `folder` is where its addresses are by its configuration.
    ///
    /// # Errors
    /// A store cannot be read, or the kernel does not answer.
    pub fn of(host: &Host, name: &NetworkName, folder: Option<&Path>) -> Result<Self, Error> {
        let mut witness = Kernel::new(host);
        let mut addresses = ipam::list(host, name, folder)?;
        addresses.retain(|(_, record)| record.is_held() && witness.judge(record) != Liveness::Dead);
        let (ports, records) = portmap::list(host)?;
        let is_dead =
            |index: usize| ports.iter().any(|port| port.record == index && port.state == portmap::State::Dead);
        let of_network = records.into_iter().enumerate().filter(|(_, record)| record.network == *name);
        let ports = of_network.filter(|(index, _)| !is_dead(*index)).map(|(_, record)| record).collect();
        Ok(Self { addresses, ports, ends: live_ends(&mut RouteSocket::open()?, name)? })
    }

    /// True if there is nobody.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty() && self.ports.is_empty() && self.ends.is_empty()
    }
}

impl fmt::Display for Tenants {
    /// `10.11.0.7 of "web" (container …, interface eth0) since …, host ports of …, and 2 more`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = self.addresses.iter().map(|(address, record)| format!("{address} of {}", record.holder()));
        let ports = self.ports.iter().map(|record| format!("host ports of {}", record.holder()));
        // Whose a host end is, is told by its address.
        let known = |end: &&Link| {
            let is_it = |record: &Record| record.host.as_ref().is_some_and(|host| host.ifname == end.name);
            self.addresses.iter().any(|(_, record)| is_it(record))
        };
        let ends = self.ends.iter().filter(|end| !known(end)).map(|end| format!("host end {}", end.name));
        let all: Vec<String> = addresses.chain(ports).chain(ends).collect();
        f.write_str(&all[..all.len().min(TOLD)].join(", "))?;
        match all.len().saturating_sub(TOLD) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}
