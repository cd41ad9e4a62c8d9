//! What is being done, on a terminal, while it takes longer than a second: a thread says so, since who waits cannot.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use osvc_cni::lock;

/// So long nothing is shown, from each change on.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time between two looks at what is waited for.
const PACE: Duration = Duration::from_millis(200);

/// Says on a terminal what takes long, until it is dropped.
#[derive(Debug)]
pub struct Waiting {
    what: &'static str,
    /// None if there is no terminal.
    teller: Option<(Sender<String>, JoinHandle<()>)>,
}

impl Waiting {
    /// Begins. `what` is the command.
    pub fn new(what: &'static str) -> Self {
        let teller = std::io::stderr().is_terminal().then(|| {
            let (sender, receiver) = channel();
            (sender, std::thread::spawn(move || tell(&receiver)))
        });
        Self { what, teller }
    }

    /// From now on it is about this: a network, or a topic.
    pub fn at(&self, part: &str) {
        if let Some((sender, _)) = &self.teller {
            let _ = sender.send(format!("{}: {part}", self.what));
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.teller.take() {
            drop(sender);
            // The line is gone before anything else is printed.
            let _ = thread.join();
        }
    }
}

fn tell(parts: &Receiver<String>) {
    let mut line = String::new();
    let (mut pause, mut shown) = (PATIENCE, false);
    loop {
        match parts.recv_timeout(pause) {
            Ok(part) => {
                // What is shown is shown of the next one at once: the second has passed.
                line = part;
                if !shown {
                    pause = PATIENCE;
                    continue;
                }
            }
            Err(RecvTimeoutError::Timeout) => pause = PACE,
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if !line.is_empty() {
            shown = true;
            show(&text(&line, lock::waited_for().as_deref()));
        }
    }
    if shown {
        show("");
    }
}

fn text(line: &str, holder: Option<&str>) -> String {
    match holder {
        Some(holder) => format!("{line}: waiting for the lock of {holder}"),
        None => line.to_owned(),
    }
}

/// What is complained of meanwhile begins where this begins.
fn show(line: &str) {
    let _ = write!(std::io::stderr(), "\r{line}\x1b[K\r");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_the_lock_is_told() {
        assert_eq!(text("setup: net1", None), "setup: net1");
        assert_eq!(text("setup: net1", Some("process 7")), "setup: net1: waiting for the lock of process 7");
    }
}
