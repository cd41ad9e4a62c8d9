//! Tunnels that only receive and that this kernel cannot make.

use super::look::lacking;
use crate::netlink::TunnelDevice;
use crate::routed::RoutedRecord;
use crate::routed::devices::Tunnel;
use crate::routed::wanted::Wanted;

/// Leaves out those that the last setup did not get, if this kernel still has not got their kind, and says which: they
/// are no reason to guard and record what is about to be made. The module may have come since.
pub(super) fn unmakeable(wanted: &mut Wanted<'_>, old: &RoutedRecord, there: &[TunnelDevice]) -> Vec<String> {
    let is_finished = old.complete || old.refused.is_some();
    let was_made = |name: &str| {
        old.tunnels.iter().any(|tunnel| tunnel.name == name) || there.iter().any(|found| found.link.name == name)
    };
    let is_in_doubt = |tunnel: &&Tunnel| is_finished && !tunnel.sends && !was_made(&tunnel.name);
    let kinds = lacking(wanted.peers.tunnels.iter().filter(is_in_doubt)).unwrap_or_else(|error| {
        tracing::debug!("kinds of tunnels were not tried: {error}");
        Vec::new()
    });
    let mut warnings = Vec::new();
    for (kind, _) in kinds {
        wanted.peers.tunnels.retain(|tunnel| tunnel.sends || tunnel.kind.kind() != kind);
        warnings.push(nothing_received(kind.name(), kind.module()));
    }
    warnings
}

pub(super) fn nothing_received(kind: &str, module: &str) -> String {
    format!("nothing can be received by {kind}: this kernel has no module {module}")
}
