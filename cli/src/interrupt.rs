//! SIGINT and SIGTERM: what was begun is ended, what comes next is not begun.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal};

use crate::error::Error;
use crate::output;

/// Somebody wants us to stop.
static ASKED: AtomicBool = AtomicBool::new(false);

/// The status of a program that SIGINT ended, as shells tell it.
const STATUS: i32 = 128 + Signal::SIGINT as i32;

/// From now on the first signal is remembered for [`check`], and the second one ends the program at once: records are
/// whole at any moment. Children inherit that both wait, so that an interrupted command ends with the answer of nft(8).
///
/// To be called before there are threads: they inherit that the signals wait.
pub fn between_steps() {
    listen(|first| match first {
        true => output::complain(&"stops after what was begun; once more stops at once"),
        false => std::process::exit(STATUS),
    });
}

/// For what changes nothing: the first signal ends the program, with a word.
pub fn at_once() {
    listen(|_| {
        output::complain(&"interrupted");
        std::process::exit(STATUS);
    });
}

/// All is done: signals do what they do, for what is started now inherits that.
pub fn no_more() {
    let _ = signals().thread_unblock();
}

fn signals() -> SigSet {
    SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM])
}

fn listen(act: fn(first: bool)) {
    let signals = signals();
    if signals.thread_block().is_err() {
        return;
    }
    std::thread::spawn(move || {
        while signals.wait().is_ok() {
            act(!ASKED.swap(true, Ordering::SeqCst));
        }
    });
}

/// To be asked before each step.
///
/// # Errors
/// [`Error::Interrupted`].
pub fn check() -> Result<(), Error> {
    if ASKED.load(Ordering::SeqCst) { Err(Error::Interrupted) } else { Ok(()) }
}
