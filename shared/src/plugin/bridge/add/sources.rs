//! The checks of what a container sends.

use std::net::IpAddr;
use std::time::SystemTime;

use super::Adding;
use crate::ipam::record::{HostEnd, NetnsRef};
use crate::ipam::timestamp;
use crate::netlink::Mac;
use crate::{Error, spoof};

impl Adding<'_> {
    /// Before there is a port: what a container sends is checked from its first frame on.
    pub(super) fn check_sources(&mut self, addresses: &[IpAddr], mac: Mac) -> Result<(), Error> {
        let (host, attachment) = (&self.call.host, self.attachment);
        let checks = self.network.config.checks();
        if checks.is_empty() {
            return Ok(spoof::pass(host, attachment)?);
        }
        self.made.checked = true;
        let record = spoof::Record {
            v: spoof::record::FORMAT,
            network: attachment.network.clone(),
            container: attachment.container.to_string(),
            ifname: attachment.ifname.to_string(),
            host: HostEnd { ifname: attachment.host_end(), netns: self.site.netns.clone() },
            netns: NetnsRef::new(self.netns.path().to_owned(), Some(self.inside.id.clone())),
            boot: host.boot.clone(),
            since: timestamp::format(SystemTime::now()),
            checks,
            mac,
            addresses: addresses.to_vec(),
        };
        Ok(spoof::admit(host, &record)?)
    }
}
