//! Progress on a terminal, of what takes longer than a second.
//!
//! It is shown by a thread of its own: one long step is seen as well as many short ones, and a terminal that was stopped
//! keeps nobody waiting who holds a lock.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// So long nothing is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time between two looks at how far it is.
const PACE: Duration = Duration::from_millis(200);

/// What is being done, and how much of it.
#[derive(Debug)]
pub struct Progress {
    state: Arc<State>,
    shower: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    what: String,
    of: Option<u64>,
    done: AtomicU64,
    records: AtomicU64,
    /// The line that is on the screen; empty: none.
    screen: Mutex<String>,
    ended: Mutex<bool>,
    end: Condvar,
}

impl Progress {
    /// Begins. `of` steps, if that is known.
    pub fn new(what: impl Into<String>, of: Option<u64>) -> Self {
        let state = Arc::new(State {
            what: what.into(),
            of,
            done: AtomicU64::new(0),
            records: AtomicU64::new(0),
            screen: Mutex::default(),
            ended: Mutex::new(false),
            end: Condvar::new(),
        });
        let shown = Arc::clone(&state);
        let shower = std::io::stderr().is_terminal().then(|| thread::spawn(move || shown.show()));
        Self { state, shower }
    }

    /// One more step is done.
    pub fn step(&mut self) {
        self.advance(1);
    }

    /// Some more steps are done.
    pub fn advance(&self, steps: u64) {
        self.state.done.fetch_add(steps, Ordering::Relaxed);
    }

    /// Some more records were looked at, within a step.
    pub fn records(&self, more: u64) {
        self.state.records.fetch_add(more, Ordering::Relaxed);
    }
}

impl Progress {
    /// Runs `print`, which writes to the same terminal, while nothing is shown.
    pub fn hidden<T>(&self, print: impl FnOnce() -> T) -> T {
        let mut screen = self.state.screen.lock().unwrap_or_else(PoisonError::into_inner);
        wipe(&mut screen);
        print()
    }
}

/// Takes the line off the screen.
fn wipe(screen: &mut String) {
    if !std::mem::take(screen).is_empty() {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}

impl State {
    /// Until it ends.
    fn show(&self) {
        let mut pause = PATIENCE;
        loop {
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            let wait = self.end.wait_timeout_while(ended, pause, |ended| !*ended);
            if *wait.unwrap_or_else(PoisonError::into_inner).0 {
                break;
            }
            pause = PACE;
            let line = self.line();
            let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
            if line != *screen {
                let _ = write!(std::io::stderr(), "\r{line}\x1b[K");
                *screen = line;
            }
        }
        wipe(&mut self.screen.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn line(&self) -> String {
        let done = self.done.load(Ordering::Relaxed);
        let mut line = match self.of {
            Some(of) => format!("{}: {done} of {of}", self.what),
            None => format!("{}: {done}", self.what),
        };
        let records = self.records.load(Ordering::Relaxed);
        if records > 0 {
            line += &format!(", records: {records}");
        }
        line
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        *self.state.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.state.end.notify_all();
        if let Some(shower) = self.shower.take() {
            let _ = shower.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_records_are_counted() {
        let mut progress = Progress::new("addresses", Some(60_000));
        progress.step();
        progress.advance(9);
        assert_eq!(progress.state.line(), "addresses: 10 of 60000");
        progress.records(1234);
        assert_eq!(progress.state.line(), "addresses: 10 of 60000, records: 1234");
        assert_eq!(Progress::new("looking", None).state.line(), "looking: 0");
    }
}
