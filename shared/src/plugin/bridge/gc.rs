//! GC: host ends, then addresses, of what is no valid attachment.

use std::collections::HashSet;

use super::super::ipam;
use super::del::delegated;
use crate::attachment::tag;
use crate::netlink::RouteSocket;
use crate::network::{self, port};
use crate::protocol::{Call, Command, ValidAttachments, delegate};
use crate::{Error, spoof};

/// Frees what no valid attachment holds.
pub(in crate::plugin) fn gc(call: &Call) -> Result<(), Error> {
    // Without a list too: only what is provably dead is deleted.
    let valid: Option<HashSet<String>> = match call.config.valid_attachments()? {
        ValidAttachments::Absent => None,
        ValidAttachments::Listed(list) => {
            let tag = |(container, ifname): &(String, String)| tag(call.network.as_str(), container, ifname);
            Some(list.iter().map(|attachment| format!("ov{}", tag(attachment))).collect())
        }
    };
    let mut errors = Vec::new();
    let swept = RouteSocket::open().map_err(network::Error::from);
    if let Err(error) = swept.and_then(|mut socket| port::sweep(&mut socket, &call.network, valid.as_ref())) {
        errors.push(error.into());
    }
    if let Err(error) = spoof::sweep(&call.host, &call.network, valid.as_ref(), false) {
        errors.push(error.into());
    }
    if let Err(error) = ipam::gc(call) {
        errors.push(error);
    }
    if let Some(plugin) = delegated(call)
        && let Err(error) = delegate(call, &plugin, Command::Gc, None)
    {
        errors.push(error.into());
    }
    Error::collect(errors)
}
