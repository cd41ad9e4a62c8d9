//! `osvc-net watch` and `osvc-net metrics`: what programs follow.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod events;
mod metrics;

use integration::{Output, Sandbox};

fn osvc_net(sandbox: &Sandbox, words: &[&str]) -> Output {
    sandbox.osvc_net(words)
}
