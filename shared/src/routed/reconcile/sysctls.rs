//! Parameters of tunnel devices.

use super::{Kernel, Verb};
use crate::netlink::{Error, Link, TunnelDevice};
use crate::network::sysctl::Sysctl;

/// Loose: while nodes disagree, packets come by another device than the one that others leave by.
const LOOSE: &str = "2";

/// Strict again: udev sets what sysctl.d says of all devices when a new one comes, and that may be after us.
pub(in crate::routed) fn is_strict(found: &TunnelDevice) -> bool {
    found.rp_filter == Some(1)
}

impl Kernel<'_> {
    /// What has to be there before the device goes up.
    pub(super) fn sysctls(&mut self, link: &Link, v6: bool) -> Result<(), Error> {
        self.sysctl(Sysctl::V4(&link.name, "rp_filter"), LOOSE)?;
        if v6 {
            self.sysctl(Sysctl::V6(&link.name, "disable_ipv6"), "0")?;
        }
        if self.act && !link.up {
            // Nobody at the other end advertises routes, or needs to hear of our addresses.
            Sysctl::V6(&link.name, "accept_ra").prefer("0");
            Sysctl::V6(&link.name, "addr_gen_mode").prefer("1");
        }
        Ok(())
    }

    fn sysctl(&mut self, sysctl: Sysctl<'_>, value: &str) -> Result<(), Error> {
        match sysctl.get()? {
            Some(found) if found == value => Ok(()),
            _ => self.step(Verb::Change, sysctl, |_| sysctl.set(value)).map(drop),
        }
    }
}
