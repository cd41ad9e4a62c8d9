//! Making the kernel what is wanted, one thing at a time; or only telling what is not so, or what would be done.

mod own_address;
mod refusal;
mod routes;
mod stale;
mod sysctls;
mod tunnels;
mod udp;
mod vxlan;
mod wireguard;

use std::fmt::Display;

pub(super) use refusal::Refusal;
pub(super) use stale::kept;
pub(super) use sysctls::is_strict;
pub(super) use tunnels::Device;

use crate::netlink::{Error, Link, RouteSocket};

/// The kernel, and what was found to be done about it.
pub(super) struct Kernel<'a> {
    pub socket: &'a mut RouteSocket,
    act: bool,
    /// Nothing is done, and what would be made is taken to be there.
    rehearses: bool,
    /// What was done, or should be, as text.
    pub changes: Vec<String>,
}

/// What there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Make,
    Change,
    Remove,
}

impl<'a> Kernel<'a> {
    /// The kernel as it is to be changed.
    pub fn change(socket: &'a mut RouteSocket) -> Self {
        Self { socket, act: true, rehearses: false, changes: Vec::new() }
    }

    /// The kernel as it is looked at.
    pub fn look(socket: &'a mut RouteSocket) -> Self {
        Self { socket, act: false, rehearses: false, changes: Vec::new() }
    }

    /// The kernel as it would be changed.
    pub fn rehearse(socket: &'a mut RouteSocket) -> Self {
        Self { rehearses: true, ..Self::look(socket) }
    }

    /// A device that would be made, of which no more than its name is known: its number is 0.
    pub fn imagined(&self, name: &str) -> Option<Link> {
        self.rehearses.then(|| Link { name: name.to_owned(), ..Link::default() })
    }

    /// Does something, and tells; or only tells. True if it was done.
    fn step(
        &mut self,
        verb: Verb,
        what: impl Display,
        act: impl FnOnce(&mut RouteSocket) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        if self.rehearses {
            self.changes.push(match verb {
                Verb::Make => format!("would make {what}"),
                Verb::Change => format!("would change {what}"),
                Verb::Remove => format!("would remove {what}"),
            });
            return Ok(false);
        }
        if !self.act {
            self.changes.push(match verb {
                Verb::Make => format!("{what} is missing"),
                Verb::Change => format!("{what} is not as it should be"),
                Verb::Remove => format!("{what} should not be there"),
            });
            return Ok(false);
        }
        act(self.socket)?;
        self.changes.push(match verb {
            Verb::Make => format!("made {what}"),
            Verb::Change => format!("changed {what}"),
            Verb::Remove => format!("removed {what}"),
        });
        Ok(true)
    }
}
