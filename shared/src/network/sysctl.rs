//! Kernel parameters of a network namespace: those of the calling thread's.
//!
//! They are reached by path and not by dotted name, so that a device may have dots in its name.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

use nix::errno::Errno;

use crate::netlink::Error;

/// A parameter below `/proc/sys/net`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sysctl<'a> {
    /// `net/ipv4/ip_forward`.
    ForwardV4,
    /// `net/ipv6/conf/all/forwarding`.
    ForwardV6,
    /// `net/ipv4/conf/<device>/<key>`.
    V4(&'a str, &'static str),
    /// `net/ipv6/conf/<device>/<key>`.
    V6(&'a str, &'static str),
}

impl fmt::Display for Sysctl<'_> {
    /// The path below `/proc/sys`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ForwardV4 => f.write_str("net/ipv4/ip_forward"),
            Self::ForwardV6 => f.write_str("net/ipv6/conf/all/forwarding"),
            Self::V4(device, key) => write!(f, "net/ipv4/conf/{device}/{key}"),
            Self::V6(device, key) => write!(f, "net/ipv6/conf/{device}/{key}"),
        }
    }
}

impl Sysctl<'_> {
    fn path(&self) -> PathBuf {
        format!("/proc/sys/{self}").into()
    }

    fn failed(&self, what: &'static str, error: &std::io::Error) -> Error {
        let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        Error::Sysctl { what, name: self.to_string(), errno }
    }

    /// The value; `None` if there is no such parameter (a kernel without IPv6, a device that is gone).
    ///
    /// # Errors
    /// It cannot be read.
    pub fn get(&self) -> Result<Option<String>, Error> {
        match std::fs::read_to_string(self.path()) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.failed("read", &error)),
        }
    }

    /// Sets the value.
    ///
    /// # Errors
    /// It cannot be set: no CAP_NET_ADMIN, /proc/sys mounted read-only, no such parameter.
    pub fn set(&self, value: &str) -> Result<(), Error> {
        // Never created: /proc refuses that, and the error should be that of the parameter.
        let file = OpenOptions::new().write(true).open(self.path());
        file.and_then(|mut file| file.write_all(value.as_bytes())).map_err(|error| self.failed("set", &error))
    }

    /// Sets the value unless it is so already; true if it was not. Other software watches writes, and
    /// a read-only /proc/sys is good enough when there is nothing to do.
    ///
    /// # Errors
    /// As [`set`](Self::set) and [`get`](Self::get).
    pub fn ensure(&self, value: &str) -> Result<bool, Error> {
        if self.get()?.as_deref() == Some(value) {
            return Ok(false);
        }
        self.set(value).map(|()| true)
    }

    /// Sets a value that is good to have: a failure is only told in the log.
    pub fn prefer(&self, value: &str) {
        if let Err(error) = self.set(value) {
            tracing::debug!("{error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::testing::in_new_netns;

    #[test]
    fn ln9_ln10_set_only_when_different_and_with_any_device_name() {
        in_new_netns(|| {
            let lo = Sysctl::V4("lo", "arp_notify");
            assert_eq!(lo.get().unwrap().as_deref(), Some("0"));
            assert!(lo.ensure("1").unwrap());
            assert!(!lo.ensure("1").unwrap());
            assert_eq!(Sysctl::V4("eth0.100", "arp_notify").to_string(), "net/ipv4/conf/eth0.100/arp_notify");
            let missing = Sysctl::V4("eth0.100", "arp_notify");
            assert_eq!(missing.get().unwrap(), None);
            let text = missing.ensure("1").unwrap_err().to_string();
            assert_eq!(text, "cannot set /proc/sys/net/ipv4/conf/eth0.100/arp_notify: No such file or directory");
        });
    }
}
