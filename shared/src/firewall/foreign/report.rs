//! Who else drops what a network forwards, and what became of it, for people. Reads only.

use super::super::kernel::mentions;
use super::super::nfnetlink::Nfnetlink;
use super::super::snapshot::Snapshot;
use super::super::state::State;
use super::super::{Error, neighbours, verify, wanted};
use super::{FIREWALLD, ForeignChain, accepts};
use crate::Host;
use crate::netlink::netns::host_id;
use crate::network::record::{ForwardAccept, NetworkRecord};

/// What was done about somebody's drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// Nothing yet: a setup would.
    NotYet,
    /// Nothing: `forwardAccept` is `never`.
    Never,
    /// Nothing: it takes no accept, or only its own program could write one.
    Refused,
}

/// Somebody's drop that a network's packets meet, and no accept before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Whose it is: `chain ip filter FORWARD`.
    pub whose: String,
    /// What was done about it.
    pub done: Done,
    /// What an administrator would do by hand, a command each.
    pub by_hand: Vec<String>,
}

/// The drops that the packets of a network meet. One before which an accept stands, or of which an administrator took
/// care, is none.
///
/// # Errors
/// The kernel's.
pub fn obstacles(host: &Host, record: &NetworkRecord) -> Result<Vec<Obstacle>, Error> {
    let netns = host_id()?;
    let record = &verify::joined(host, &netns, record);
    let state = State::load(host, &netns);
    let mut kernel = Nfnetlink::open()?;
    let snapshot = Snapshot::read(&mut kernel)?;
    let never = record.forward_accept == ForwardAccept::Never;
    let mut found = Vec::new();
    for chain in &snapshot.foreign {
        let same_table = |other: &&ForeignChain| {
            (other.chain.family, &other.chain.table) == (chain.chain.family, &chain.chain.table)
        };
        let siblings = || snapshot.foreign.iter().filter(same_table);
        // docker's own chain has no policy: it matters where the one that calls it drops.
        let drops = chain.chain.drops || siblings().any(|other| other.chain.drops);
        if !drops || !chain.is_target(&snapshot.foreign) || !chain.is_met_by(record) || chain.is_open_for(record) {
            continue;
        }
        if never && siblings().any(|other| other.names(record)) {
            continue;
        }
        let refused = !wanted::opens_foreign(record)
            || !chain.can_be_named()
            || state.as_ref().is_some_and(|state| state.is_refused(&chain.chain));
        let at = chain.position();
        let by_hand = accepts(record).into_iter().map(|(test, _)| format!("nft 'insert rule {at} {test} accept'"));
        found.push(Obstacle { whose: format!("chain {at}"), done: done(never, refused), by_hand: by_hand.collect() });
    }
    found.extend(firewalld(&mut kernel, &snapshot, state.as_ref(), record)?);
    found.extend(legacy(record));
    Ok(found)
}

fn done(never: bool, refused: bool) -> Done {
    match (never, refused) {
        (true, _) => Done::Never,
        (false, true) => Done::Refused,
        (false, false) => Done::NotYet,
    }
}

impl ForeignChain {
    /// True if a rule speaks of the network's device: somebody has decided about it.
    fn names(&self, record: &NetworkRecord) -> bool {
        self.rules.iter().any(|rule| mentions(rule, record.device()))
    }
}

fn firewalld(
    kernel: &mut Nfnetlink,
    snapshot: &Snapshot,
    state: Option<&State>,
    record: &NetworkRecord,
) -> Result<Option<Obstacle>, Error> {
    if snapshot.firewalld.is_none() {
        return Ok(None);
    }
    let never = record.forward_accept == ForwardAccept::Never;
    let trusted = match never {
        true => kernel.rules(super::INET, FIREWALLD, None)?.iter().any(|rule| mentions(rule, record.device())),
        false => neighbours::trusts(state.and_then(|state| state.firewalld.as_ref()), snapshot, record),
    };
    let device = record.device();
    Ok((!trusted).then(|| Obstacle {
        whose: "firewalld".to_owned(),
        done: done(never, false),
        by_hand: vec![format!("firewall-cmd --zone=trusted --add-interface={device}")],
    }))
}

/// The old iptables: its tables are invisible to nftables.
fn legacy(record: &NetworkRecord) -> impl Iterator<Item = Obstacle> + '_ {
    let device = record.device();
    neighbours::legacy().into_iter().filter_map(move |(program, listing)| {
        let v6 = program.starts_with("ip6");
        let met = wanted::forwards(record).any(|family| (family.number() == super::Family::Ip6.number()) == v6);
        let accepted = |end: &str| {
            let words = format!(" {end} {device} ");
            listing.lines().any(|line| line.contains(&words) && line.ends_with("-j ACCEPT"))
        };
        let open = accepted("-i") && accepted("-o");
        (met && !open).then(|| Obstacle {
            whose: format!("{program}, chain FORWARD"),
            done: done(record.forward_accept == ForwardAccept::Never, true),
            by_hand: ["-i", "-o"].map(|end| format!("{program} -I FORWARD {end} {device} -j ACCEPT")).to_vec(),
        })
    })
}
