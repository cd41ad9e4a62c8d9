//! Telling what came of a setup: to who asked for it, and to others on this host.

use std::collections::BTreeSet;

use super::Resolution;
use crate::Host;
use crate::routed::peer_file::{PeerFile, announce};
use crate::routed::wanted::Wanted;
use crate::routed::{RoutedConfig, RoutedRecord};

/// What is wrong, once each: with the peers, and then what came up on the way.
pub(super) fn faults(wanted: &Wanted<'_>, more: Vec<(String, String)>) -> Vec<(String, String)> {
    let of_peers = wanted.peers.faults().map(|(name, _, fault)| (name.to_owned(), fault.to_string()));
    let mut told = BTreeSet::new();
    of_peers.chain(more).filter(|fault| told.insert(fault.clone())).collect()
}

/// Writes the peer file, before the record says that all is done, and has the hooks told of it. For packets it makes no
/// difference: what is wrong with it is a warning.
pub(super) fn told(
    host: &Host,
    config: &RoutedConfig,
    record: &RoutedRecord,
    resolution: &Resolution,
) -> Option<String> {
    let written = PeerFile::new(config, record, resolution).write(host);
    if written.is_ok() {
        announce(PeerFile::path(host, &config.name));
    }
    written.err().map(|error| error.to_string())
}
