//! What the kernel's nf_tables holds: generation, tables, chains, rules and elements, as far as they
//! matter here (linux/netfilter/nf_tables.h).

use netlink_packet_netfilter::nftables::{
    ChainMessage, GenMessage, NfTablesMessage, RuleAttribute, RuleMessage, SetElementList, SetElementMessage,
    TableAttribute, TableMessage,
};
use nix::libc::{EINVAL, EOPNOTSUPP};

use super::Error;
use super::nfnetlink::{Nfnetlink, attribute, attributes, be32, be64, or_absent, text};

// Kinds of attributes.
const GEN_ID: u16 = 1;
const TABLE_HANDLE: u16 = 4;
const CHAIN_TABLE: u16 = 1;
const CHAIN_HANDLE: u16 = 2;
const CHAIN_NAME: u16 = 3;
const CHAIN_HOOK: u16 = 4;
const CHAIN_POLICY: u16 = 5;
const HOOK_NUMBER: u16 = 1;
const RULE_TABLE: u16 = 1;
const RULE_CHAIN: u16 = 2;
const RULE_HANDLE: u16 = 3;
const RULE_EXPRESSIONS: u16 = 4;
const RULE_USERDATA: u16 = 7;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const MATCH_NAME: u16 = 1;
const MATCH_INFO: u16 = 3;
const ELEMENTS: u16 = 3;
const ELEMENT_USERDATA: u16 = 6;
/// NFTNL_UDATA_RULE_COMMENT and NFTNL_UDATA_SET_ELEM_COMMENT, of libnftnl.
const COMMENT: u8 = 0;
/// The verdict of a chain whose policy is drop.
const NF_DROP: u32 = 0;

/// NFPROTO_INET: a table for both families.
pub const INET: u8 = 1;

/// A chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// NFPROTO_*.
    pub family: u8,
    /// Its table.
    pub table: String,
    /// Its name.
    pub name: String,
    /// The kernel's number of it, never used again in its table.
    pub handle: u64,
    /// NF_INET_*, if it is a base chain.
    pub hook: Option<u32>,
    /// It is a base chain and drops what no rule decides.
    pub drops: bool,
    /// All of its attributes.
    pub bytes: Vec<u8>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its chain.
    pub chain: String,
    /// The kernel's number of it, never used again in its table.
    pub handle: u64,
    /// Its comment, whichever tool wrote it.
    pub comment: Option<String>,
    /// All of its attributes.
    pub bytes: Vec<u8>,
}

impl Nfnetlink {
    /// The number of the ruleset's generation: one more with each commit of anybody in this namespace.
    ///
    /// # Errors
    /// The kernel has no nf_tables, or does not let us read it.
    pub fn generation(&mut self) -> Result<u32, Error> {
        let question = NfTablesMessage::GetGen(GenMessage { attributes: vec![] });
        match self.one(0, question, "read the nftables generation", |found| attribute(found, GEN_ID).and_then(be32)) {
            // No subsystem of that number, and no module for it.
            Err(Error::Kernel { source, .. }) if matches!(source.raw_os_error(), Some(EINVAL | EOPNOTSUPP)) => {
                Err(Error::NoNftables { source })
            }
            answer => answer,
        }
    }

    /// The handle of a table, if there is one of that name.
    pub fn table(&mut self, family: u8, name: &str) -> Result<Option<u64>, Error> {
        let question =
            NfTablesMessage::GetTable(TableMessage { attributes: vec![TableAttribute::Name(name.to_owned())] });
        or_absent(self.one(family, question, "read an nftables table", |found| {
            attribute(found, TABLE_HANDLE).and_then(be64).map(Some)
        }))
    }

    /// The base chains of all tables, and the chains of one name.
    ///
    /// The kernel has no filter for them, and where Kubernetes lives there are thousands: the others
    /// are passed over at once.
    pub fn chains(&mut self, name: &str) -> Result<Vec<Chain>, Error> {
        let question = NfTablesMessage::GetChain(ChainMessage { attributes: vec![] });
        let wanted = |found: &[u8]| {
            attributes(found).any(|(kind, value)| match kind {
                CHAIN_HOOK => true,
                CHAIN_NAME => text(value) == Some(name),
                _ => false,
            })
        };
        let found = self.list(0, question, "list nftables chains", &wanted)?;
        let chain = |(family, bytes): (u8, Vec<u8>)| {
            let field = |kind| attribute(&bytes, kind);
            Some(Chain {
                family,
                table: text(field(CHAIN_TABLE)?)?.to_owned(),
                name: text(field(CHAIN_NAME)?)?.to_owned(),
                handle: be64(field(CHAIN_HANDLE)?)?,
                hook: field(CHAIN_HOOK).and_then(|hook| attribute(hook, HOOK_NUMBER)).and_then(be32),
                drops: field(CHAIN_POLICY).and_then(be32) == Some(NF_DROP),
                bytes,
            })
        };
        Ok(found.into_iter().filter_map(chain).collect())
    }

    /// The rules of a table, or of one of its chains, in their order; none if there is no such table.
    pub fn rules(&mut self, family: u8, table: &str, chain: Option<&str>) -> Result<Vec<Rule>, Error> {
        let mut filter = vec![RuleAttribute::Table(table.to_owned())];
        filter.extend(chain.map(|chain| RuleAttribute::Chain(chain.to_owned())));
        let question = NfTablesMessage::GetRule(RuleMessage { attributes: filter });
        let named = |found: &[u8], kind, name| attribute(found, kind).and_then(text) == Some(name);
        // Not all kernels honour both filters.
        let wanted =
            |found: &[u8]| named(found, RULE_TABLE, table) && chain.is_none_or(|chain| named(found, RULE_CHAIN, chain));
        let found = or_absent(self.list(family, question, "list nftables rules", &wanted))?;
        let rule = |(_, bytes): (u8, Vec<u8>)| {
            Some(Rule {
                chain: text(attribute(&bytes, RULE_CHAIN)?)?.to_owned(),
                handle: be64(attribute(&bytes, RULE_HANDLE)?)?,
                comment: comment(&bytes),
                bytes,
            })
        };
        Ok(found.into_iter().filter_map(rule).collect())
    }

    /// The comments of a set's elements, and all of their attributes; nothing if there is no such set.
    pub fn elements(&mut self, family: u8, table: &str, set: &str) -> Result<(Vec<String>, Vec<u8>), Error> {
        let attributes_wanted = vec![SetElementList::Table(table.to_owned()), SetElementList::Set(set.to_owned())];
        let question = NfTablesMessage::GetSetElement(SetElementMessage { attributes: attributes_wanted });
        let found = or_absent(self.list(family, question, "list nftables set elements", &|_| true))?;
        let bytes: Vec<u8> =
            found.iter().flat_map(|(_, found)| attribute(found, ELEMENTS).unwrap_or_default()).copied().collect();
        let comments = attributes(&bytes)
            .filter_map(|(_, element)| attribute(element, ELEMENT_USERDATA).and_then(comment_of_nft))
            .collect();
        Ok((comments, bytes))
    }
}

/// The comment of a rule: nft keeps it as user data, iptables (when it restores what it saved) as a
/// match of xtables.
fn comment(rule: &[u8]) -> Option<String> {
    if let Some(found) = attribute(rule, RULE_USERDATA).and_then(comment_of_nft) {
        return Some(found);
    }
    attributes(attribute(rule, RULE_EXPRESSIONS)?).find_map(|(_, expression)| {
        let data = attribute(expression, EXPRESSION_DATA)?;
        let is = |bytes, kind, name| attribute(bytes, kind).and_then(text) == Some(name);
        if !is(expression, EXPRESSION_NAME, "match") || !is(data, MATCH_NAME, "comment") {
            return None;
        }
        text(attribute(data, MATCH_INFO)?).map(str::to_owned)
    })
}

/// The comment in user data: a list of type, length (one byte each) and value.
pub(super) fn comment_of_nft(mut data: &[u8]) -> Option<String> {
    while let [kind, length, rest @ ..] = data {
        let value = rest.get(..usize::from(*length))?;
        if *kind == COMMENT {
            return text(value).map(str::to_owned);
        }
        data = &rest[value.len()..];
    }
    None
}

/// True if the rule names this chain or device: both end with a NUL, in whatever expression they stand.
pub fn mentions(rule: &Rule, name: &str) -> bool {
    let name = [name.as_bytes(), &[0]].concat();
    let found = |(at, window): (usize, &[u8])| {
        window == name && !at.checked_sub(1).is_some_and(|before| rule.bytes[before].is_ascii_graphic())
    };
    rule.bytes.windows(name.len()).enumerate().any(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_found_among_other_user_data() {
        assert_eq!(comment_of_nft(b"\x00\x07osvc:a\x00"), Some("osvc:a".into()));
        assert_eq!(comment_of_nft(b"\x01\x04\x01\x00\x00\x00\x00\x02b\x00"), Some("b".into()));
        for torn in [&b""[..], b"\x00", b"\x00\x07osvc", b"\x01\x04\x01\x00\x00\x00"] {
            assert_eq!(comment_of_nft(torn), None);
        }
    }
}
