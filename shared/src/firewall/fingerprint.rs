//! What tells a table that was left alone from one that was changed or made anew.

use netlink_packet_netfilter::nftables::{NfTablesMessage, SetAttribute, SetMessage};
use sha2::{Digest, Sha256};

use super::Error;
use super::nfnetlink::{Nfnetlink, attribute, attributes, or_absent, text};
use crate::attachment::hex;

// Kinds of attributes of a set (linux/netfilter/nf_tables.h).
const TABLE: u16 = 1;
/// From name to length of a value: what a set was declared as. The others are not the same in all
/// kernels, and some change with what is in the set (its count of elements).
const DECLARED: std::ops::RangeInclusive<u16> = 2..=7;
const HANDLE: u16 = 16;

impl Nfnetlink {
    /// A hash of a table but for the elements in its sets; none if there is no such table.
    ///
    /// Covers the table's handle, all rules with theirs, and the declarations of its sets with theirs:
    /// it changes if the table, a set or a rule is made anew, if a rule is added, changed or removed,
    /// and with each packet if a rule has a counter. Chains are in it as far as they have rules: the
    /// kernel lists those of all tables or none, and where Kubernetes lives these are thousands.
    ///
    /// # Errors
    /// The kernel's, or the ruleset changes faster than it can be read.
    pub fn table_fingerprint(&mut self, family: u8, table: &str) -> Result<Option<String>, Error> {
        let Some(handle) = self.table(family, table)? else { return Ok(None) };
        let mut hash = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_be_bytes());
            hash.update(bytes);
        };
        add(&handle.to_be_bytes());
        self.rules(family, table, None)?.iter().for_each(|rule| add(&rule.bytes));
        let question = NfTablesMessage::GetSet(SetMessage { attributes: vec![SetAttribute::Table(table.to_owned())] });
        let ours = |found: &[u8]| attribute(found, TABLE).and_then(text) == Some(table);
        for (_, set) in or_absent(self.list(family, question, "list nftables sets", &ours))? {
            for (kind, value) in attributes(&set) {
                if kind == HANDLE || DECLARED.contains(&kind) {
                    add(&kind.to_be_bytes());
                    add(value);
                }
            }
        }
        Ok(Some(hex(&hash.finalize()[..16])))
    }
}
