//! `osvc-net adopt`: taking over from host-local, and giving back to it.

mod problem;
mod take;
mod undo;

use std::io::IsTerminal;

use osvc_cni::ipam::host_local::HostLocalError;
use osvc_cni::{Host, NetworkName};

use crate::args::Adopt;
use crate::error::Error;
use crate::interrupt;
use crate::networks::Networks;
use crate::output::{self, short};
use crate::progress::Progress;

/// Takes the addresses of running containers over, or gives them back, network by network.
pub fn run(host: &Host, networks: Networks, arguments: &Adopt) -> Result<(), Vec<Error>> {
    let (chosen, mut errors) = networks.choose(&arguments.network);
    for network in &chosen {
        let done = match arguments.undo {
            false => take::all(host, network, arguments),
            true => undo::all(host, network, arguments),
        };
        if let Err(wrong) = done {
            let ends = wrong.iter().any(|error| matches!(error, Error::Interrupted | Error::Print(_)));
            errors.extend(wrong);
            if ends {
                break;
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// What is done with all that a network has to move.
struct Move<'a> {
    network: &'a NetworkName,
    /// For people who wait: `taking over`.
    doing: &'static str,
    /// What is told when there was nothing.
    idle: &'static str,
}

impl Move<'_> {
    /// Goes through all of it, one after the other, until somebody interrupts it, nobody reads any more, or a lock cannot
    /// be had. `act` tells whether there was something to do. `errors` were met before.
    fn each<T>(
        &self,
        things: &[T],
        mut errors: Vec<Error>,
        mut act: impl FnMut(&T) -> Result<bool, Vec<Error>>,
    ) -> Result<(), Vec<Error>> {
        let mut told = false;
        let mut progress = progress(format!("{}: {}", self.network, self.doing), things.len());
        for thing in things {
            if let Err(stop) = interrupt::check() {
                errors.push(stop);
                break;
            }
            let done = act(thing);
            progress.iter_mut().for_each(Progress::step);
            match done {
                Ok(something) => told |= something,
                Err(wrong) => {
                    // Whoever has a lock for so long will not give it back while the others are waited for.
                    let ends = wrong.iter().any(|error| matches!(error, Error::Print(_)) || is_stuck(error));
                    errors.extend(wrong);
                    if ends {
                        break;
                    }
                }
            }
        }
        drop(progress);
        if !told && errors.is_empty() {
            errors.extend(tell(self.network, self.idle).err());
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }
}

/// True if a lock could not be had.
fn is_stuck(error: &Error) -> bool {
    use osvc_cni::ipam::Error::{HostLocal, Lock};
    let Error::Network { source, .. } = error else { return false };
    let osvc_cni::Error::Ipam(source) = source.as_ref() else { return false };
    matches!(source, Lock(_) | HostLocal(HostLocalError::Lock(_)))
}

/// Prints one line about a network. What it tells is done, whatever comes next.
fn tell(network: &NetworkName, what: &str) -> Result<(), Error> {
    output::print(&format!("{network}: {what}\n"))
}

/// Where the lines that are told are seen, they are progress enough.
fn progress(what: String, of: usize) -> Option<Progress> {
    (!std::io::stdout().is_terminal()).then(|| Progress::new(what, u64::try_from(of).ok()))
}

/// A container's interface, for people.
fn whose(container: &str, ifname: &str) -> String {
    format!("container {}, {}", short(&container.escape_debug().to_string()), ifname.escape_debug())
}
