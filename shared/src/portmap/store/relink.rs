//! Making the links again from the records.

use std::fs;

use super::known::Filed;
use super::{Error, Store};

impl Store<'_> {
    /// Makes all links again. Those to a record of a later version are kept: it may publish more than we can read.
    pub(super) fn relink(&self) -> Result<(), Error> {
        // Should we be killed, or fail.
        self.seal.revoke();
        let _ = fs::remove_file(self.records.join(".new"));
        let mut known = Vec::new();
        let mut later = Vec::new();
        for tag in self.tags()? {
            match self.look(&tag)? {
                Some(Filed::Known(there)) => known.push(there),
                Some(Filed::Later(there)) => {
                    tracing::warn!("{}", self.newer(&tag, &there));
                    later.push((tag, there));
                }
                None => {}
            }
        }
        let (mut ports, mut addresses) = (Vec::new(), Vec::new());
        if !later.is_empty() {
            let is_later = |tag: &String| later.iter().any(|(there, _)| there == tag);
            ports = self.by_port.entries()?;
            ports.retain(|(_, tag)| is_later(tag));
            addresses = self.by_address.entries()?;
            addresses.retain(|(_, tag)| is_later(tag));
            for (tag, there) in &later {
                ports.extend(there.ports.iter().map(|port| (Self::port_name(*port), tag.clone())));
                addresses.extend(there.addresses.iter().map(|address| (address.to_string(), tag.clone())));
            }
        }
        self.by_port.clear()?;
        self.by_address.clear()?;
        self.members.clear();
        for (name, tag) in &ports {
            self.by_port.insert(name, tag)?;
        }
        for (name, tag) in &addresses {
            self.by_address.insert(name, tag)?;
        }
        for there in &known {
            self.link(there)?;
        }
        // What was set aside has no links any more.
        self.untidy.set(false);
        Ok(())
    }
}
