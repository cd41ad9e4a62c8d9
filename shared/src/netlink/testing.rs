//! Tests that touch the kernel do so in network namespaces of their own.

use std::thread;

use nix::sched::{CloneFlags, unshare};

use super::Netns;

/// Runs a test in a new network namespace: that of a new thread, which takes it along when it ends.
pub(crate) fn in_new_netns(test: impl FnOnce() + Send) {
    let result = thread::scope(|scope| {
        scope
            .spawn(|| {
                unshare(CloneFlags::CLONE_NEWNET).expect("tests of the kernel need root");
                test();
            })
            .join()
    });
    if let Err(panic) = result {
        std::panic::resume_unwind(panic);
    }
}

/// Another new network namespace, there as long as the value is.
pub(crate) fn pinned_netns() -> Netns {
    thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNET).expect("tests of the kernel need root");
        let netns = Netns::current().expect("/proc is mounted");
        // Out of it: a thread that is joined still has its namespace for a moment.
        unshare(CloneFlags::CLONE_NEWNET).expect("tests of the kernel need root");
        netns
    })
    .join()
    .expect("the thread ends")
}
