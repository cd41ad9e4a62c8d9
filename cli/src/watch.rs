//! `osvc-net watch`: changes of addresses, host ports and peers as they happen, a line of JSON each.
//!
//! inotify(7) tells where something changed, and what is there then is compared with what was known: so nothing is told
//! twice, and after a queue that ran over everything is read again. Nobody is asked again and again.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent};
use osvc_cni::Host;

use crate::args::Watch;
use crate::error::Error;
use crate::networks::Networks;
use crate::output;
use known::Known;
use places::{Place, Places, Role};

mod event;
mod known;
mod places;

/// What keeps changes from being seen.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// No instance.
    #[error("cannot watch for changes: {errno}{}", limit(*.errno, "fs.inotify.max_user_instances"))]
    Init {
        /// The kernel's answer.
        errno: Errno,
    },
    /// A folder.
    #[error("cannot watch {path}: {errno}{}", limit(*.errno, "fs.inotify.max_user_watches"))]
    Folder {
        /// Which.
        path: String,
        /// The kernel's answer.
        errno: Errno,
    },
    /// The wait.
    #[error("cannot wait for changes: {0}")]
    Wait(Errno),
}

/// The way out of a limit of the kernel.
fn limit(errno: Errno, sysctl: &str) -> String {
    match errno {
        Errno::EMFILE | Errno::ENOSPC => format!(": the limit is reached, raise it by `sysctl -w {sysctl}=…`"),
        _ => String::new(),
    }
}

/// Prints events until nobody reads them any more.
pub fn run(host: &Host, networks: Networks, arguments: &Watch) -> Result<(), Vec<Error>> {
    let (chosen, errors) = networks.choose(&arguments.networks);
    if !arguments.networks.is_empty() && !errors.is_empty() {
        return Err(errors);
    }
    // What cannot be read may be put right while we watch.
    errors.iter().for_each(|error| output::complain(error));
    let configured = chosen
        .iter()
        .map(|network| (network.name.clone(), network.address_folders(host).map(|folders| folders.ours)))
        .collect();
    let all = arguments.networks.is_empty();
    watch(Places::new(host, configured, all), arguments.existing).map_err(|error| vec![error])
}

fn watch(mut places: Places, existing: bool) -> Result<(), Error> {
    let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)
        .map_err(|errno| Error::specific(WatchError::Init { errno }))?;
    let mut known = Known::default();
    let mut tell = existing;
    let mut again = true;
    loop {
        while again {
            again = false;
            for place in places.arrange(&inotify)? {
                scan(&places, &mut known, &place, tell)?;
            }
        }
        tell = true;
        for event in wait(&inotify)? {
            if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                // Some were lost: all is read again.
                places.forget();
                again = true;
                continue;
            }
            for place in places.of(event.wd) {
                again |= handle(&places, &mut known, &place, &event)?;
            }
        }
    }
}

/// Waits for events. Ends when nobody reads any more, too: else that would show at the next event only.
fn wait(inotify: &Inotify) -> Result<Vec<InotifyEvent>, Error> {
    let stdout = io::stdout();
    loop {
        match inotify.read_events() {
            Err(Errno::EAGAIN) => {}
            Err(Errno::EINTR) => continue,
            events => return events.map_err(|errno| Error::specific(WatchError::Wait(errno))),
        }
        let mut fds =
            [PollFd::new(inotify.as_fd(), PollFlags::POLLIN), PollFd::new(stdout.as_fd(), PollFlags::empty())];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(Error::specific(WatchError::Wait(errno))),
        }
        if fds[1].revents().is_some_and(|found| found.intersects(PollFlags::POLLERR | PollFlags::POLLNVAL)) {
            return Err(Error::Print(ErrorKind::BrokenPipe.into()));
        }
    }
}

/// Tells what an event says. True if there may be other folders now.
fn handle(places: &Places, known: &mut Known, place: &Place, event: &InotifyEvent) -> Result<bool, Error> {
    let name = event.name.as_ref().and_then(|name| name.to_str());
    let Some(name) = name else {
        // The folder itself: it was removed, moved, or unmounted.
        return Ok(true);
    };
    let events = match &place.role {
        Role::Folders => return Ok(true),
        Role::Above => return Ok(false),
        Role::Addresses(network) => match name.parse() {
            Ok(address) => known.address(network, &place.path, address),
            Err(_) => return Ok(false),
        },
        Role::Ports => known.port(&place.path, name),
        Role::Peers => known.peers(&place.path, name),
    };
    events.iter().filter(|event| places.is_wanted(event.network())).try_for_each(event::Event::print)?;
    Ok(false)
}

/// Compares all of a folder with what was known of it.
fn scan(places: &Places, known: &mut Known, place: &Place, tell: bool) -> Result<(), Error> {
    let events = match &place.role {
        Role::Folders | Role::Above => return Ok(()),
        Role::Addresses(network) => known.all_addresses(network, &place.path),
        Role::Ports => known.all_ports(&place.path),
        Role::Peers => known.all_peers(&place.path),
    };
    if tell {
        events.iter().filter(|event| places.is_wanted(event.network())).try_for_each(event::Event::print)?;
    }
    Ok(())
}
