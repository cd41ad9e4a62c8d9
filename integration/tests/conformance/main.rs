//! The behaviours that the reference suites assert, as numbered in the list of compatibility cases: each is run with our
//! plugins and with the reference's, so that the case is proven and not only the code. Where the design decides otherwise
//! the expectation per family is in the case.
#![allow(clippy::unwrap_used, clippy::expect_used)]

/// One test per family for each case.
macro_rules! both {
    ($($case:ident)*) => {
        mod osvc { $( #[test] fn $case() { super::$case(integration::Family::Osvc); } )* }
        mod reference { $( #[test] fn $case() { super::$case(integration::Family::Reference); } )* }
    };
}

mod allocator;
mod bridge;
mod bridge_keys;
mod configuration;
mod container;
mod host_local;
mod ipam_keys;
mod portmap;
