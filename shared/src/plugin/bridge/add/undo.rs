//! The way back of an ADD that fails.

use super::Adding;
use crate::network::setup::Undone;
use crate::protocol::{Command, delegate};
use crate::{Error, firewall, spoof};

impl Adding<'_> {
    /// Takes back what was made, in reverse, and goes on after errors: they are logged, the ADD has its own.
    pub(super) fn undo(&mut self) {
        let (call, made) = (self.call, std::mem::take(&mut self.made));
        let told = |outcome: Result<(), Error>| {
            if let Err(error) = outcome {
                tracing::error!("{}: not undone: {error}", self.attachment);
            }
        };
        if let Some(port) = made.port {
            told(self.site.socket.delete_link(&port).map_err(Error::from));
        }
        // Not those of a port that somebody else has made for the same attachment meanwhile.
        if made.checked && !matches!(self.site.socket.link_by_name(&self.attachment.host_end()), Ok(Some(_))) {
            told(spoof::remove(&call.host, self.attachment).map_err(Error::from));
        }
        if let Some(setup) = self.setup.take() {
            match self.site.undo(setup) {
                Ok(Undone::Gone) => {
                    if let Some(member) = &self.network.member {
                        told(member.remove(&mut self.site));
                    }
                    told(firewall::forget(&call.host, &call.network).map_err(Error::from));
                }
                Ok(Undone::Restored) => told(firewall::apply(&call.host).map_err(Error::from)),
                Ok(Undone::Nothing) => {}
                Err(error) => told(Err(error.into())),
            }
        }
        if let Some(lease) = made.lease {
            told(lease.undo(&call.host, &call.network).map_err(Error::from));
        }
        if let Some(plugin) = made.delegated {
            told(delegate(call, &plugin, Command::Del, Some(self.attachment)).map(drop).map_err(Error::from));
        }
    }
}
