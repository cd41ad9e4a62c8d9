//! `osvc-ipam` under the reference's main plugins, which make no host end that we know: the examples in
//! `conf-examples/ipam` as they are. What the running kernel has not is in the VM's tests.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod kinds;

use kinds::{HOST_DEVICE, MACVLAN, PTP};

#[test]
fn macvlan() {
    kinds::run(&MACVLAN);
}

#[test]
fn ptp() {
    kinds::run(&PTP);
}

#[test]
fn host_device() {
    kinds::run(&HOST_DEVICE);
}

/// Each example has a test: the table of these is complete.
#[test]
fn every_example_is_one_of_these() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../conf-examples/ipam");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    files.sort();
    let mut known: Vec<_> = kinds::ALL.iter().map(|kind| kind.example.to_owned()).collect();
    known.sort();
    assert_eq!(files, known);
}
