//! `osvc-net ip explain`: which address, and why.

use std::fmt::Write;

use osvc_cni::Host;
use osvc_cni::ipam::explain::{self, Explanation, Obstacle, Reason, Step};
use osvc_cni::ipam::key::Key;
use osvc_cni::ipam::record::{Record, State};
use serde_json::{Value, json};

use super::select::{self, Why};
use crate::args::{Explain, Format};
use crate::error::Error;
use crate::networks::Networks;
use crate::output;

/// Tells which address a key has, or would get, and why.
pub fn run(host: &Host, networks: Networks, arguments: &Explain) -> Result<(), Vec<Error>> {
    let whose = &arguments.whose;
    let network = networks.one(&whose.network)?;
    let one = |error| vec![error];
    let config = select::config(host, &network).map_err(one)?;
    let (snapshot, mut errors) = select::records(host, &network);
    let (key, why) = select::key(&config, &snapshot, &whose.key, whose.source.as_deref()).map_err(one)?;
    let recorded = snapshot.records.iter().any(|(_, record)| record.key == key);
    let nearest = if recorded { None } else { select::near(&snapshot, &key.text) };
    let explained = explain::explain(host, &config, &key, arguments.instance)
        .map_err(|error| vec![Error::Network { network: network.name.clone(), source: Box::new(error.into()) }])?;
    let text = match arguments.output {
        Format::Json => {
            let sets: Vec<Value> = explained.sets.iter().map(json).collect();
            let value = json!({
                "network": network.name, "key": key, "source": why.words(), "recorded": recorded, "nearest": nearest,
                "sets": sets, "refused": explained.refused.as_ref().map(ToString::to_string),
            });
            format!("{value:#}\n")
        }
        Format::Table => told(&key, why, recorded, nearest, &explained, network.name.as_str()),
    };
    errors.extend(output::print(&text).err());
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn told(key: &Key, why: Why, recorded: bool, nearest: Option<&str>, explained: &Explanation, network: &str) -> String {
    let mut text = format!("{}: key {:?}, source {} ({})", network, key.text, key.source.name(), why.words());
    if !recorded {
        text += ", has no record yet";
    }
    if let Some(nearest) = nearest {
        let _ = write!(text, "; there is {nearest:?}");
    }
    text.push('\n');
    for reason in &explained.sets {
        let _ = writeln!(text, "{}", reason.set);
        let mut rows =
            vec![[reason.walk.first.to_string(), format!("first candidate, of instance {}", reason.instance)]];
        rows.extend(reason.walk.steps.iter().map(|step| [span(step), obstacle(&step.why)]));
        let more: Vec<String> = reason.walk.more.iter().map(|(kind, count)| format!("{count} more {kind}")).collect();
        if !more.is_empty() {
            rows.push(["…".to_owned(), format!("and {}", more.join(", "))]);
        }
        if reason.walk.cut {
            rows.push(["…".to_owned(), "and more".to_owned()]);
        }
        rows.extend(answers(reason));
        let width = rows.iter().map(|[address, _]| address.chars().count()).max().unwrap_or(0);
        for [address, words] in rows {
            let _ = writeln!(text, "  {address:<width$}  {words}");
        }
    }
    if let Some(error) = &explained.refused {
        let _ = writeln!(text, "the next ADD is refused: {error}");
    }
    text
}

fn span(step: &Step) -> String {
    if step.from == step.to { step.from.to_string() } else { format!("{}-{}", step.from, step.to) }
}

fn holder(record: &Record) -> String {
    let Record { key, container, since, .. } = record;
    format!("{:?} (container {}, since {})", key.text, output::short(container), output::seconds(since))
}

fn obstacle(why: &Obstacle) -> String {
    match why {
        Obstacle::Outside => "not between rangeStart and rangeEnd".to_owned(),
        Obstacle::Excluded => "in exclude".to_owned(),
        Obstacle::Held(record) => format!("held by {}", holder(record)),
        Obstacle::Dead(record) => {
            format!("held by {}, who is gone: it goes to others last", holder(record))
        }
        Obstacle::Reserved(record) => format!("reserved for {:?}", record.key.text),
        Obstacle::Used(record) => format!("last used by {}: passed over while others never were", holder(record)),
        Obstacle::Neighbour(who) => who.clone(),
        Obstacle::Newer => "has a record of a later version".to_owned(),
        Obstacle::Network | Obstacle::Broadcast | Obstacle::Gateway => why.kind().to_owned(),
    }
}

/// What the key has, and what it gets.
fn answers(reason: &Reason) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    if let Some((address, record)) = &reason.has {
        rows.push([
            address.to_string(),
            format!(
                "has it (container {} {}, since {})",
                output::short(&record.container),
                record.ifname,
                output::seconds(&record.since)
            ),
        ]);
    }
    if let Some((address, before)) = &reason.next {
        let who = if reason.has.is_some() { "another container of this key gets it" } else { "gets it" };
        rows.push([address.to_string(), format!("{who}: {}", ground(reason, before.as_ref()))]);
    }
    rows
}

/// Why the next ADD gets an address, by what is recorded there.
fn ground(reason: &Reason, before: Option<&Record>) -> String {
    let Some(record) = before else { return "never used".to_owned() };
    let own = reason.own(record);
    match (record.state, own) {
        (State::Reserved, _) => "reserved for it".to_owned(),
        (State::Released, true) => format!("its own, kept for it since {}", output::seconds(&record.since)),
        (State::Held, true) => format!("its own; container {} is gone", output::short(&record.container)),
        (State::Released, false) => format!("none is unused; of the released ones its turn: {}", holder(record)),
        (State::Held, false) => format!("none is unused or released; its holder is gone: {}", holder(record)),
    }
}

fn json(reason: &Reason) -> Value {
    let step = |step: &Step| json!({"from": step.from, "to": step.to, "why": step.why.kind(), "words": obstacle(&step.why), "record": step.why.record()});
    let more: serde_json::Map<String, Value> =
        reason.walk.more.iter().map(|(kind, count)| ((*kind).to_owned(), crate::ls::exact(*count))).collect();
    json!({
        "ranges": reason.set.to_string(), "instance": reason.instance, "first": reason.walk.first,
        "steps": reason.walk.steps.iter().map(step).collect::<Vec<_>>(), "more": more, "cut": reason.walk.cut,
        "has": reason.has.as_ref().map(|(address, record)| json!({"address": address, "record": record})),
        "next": reason.next.as_ref().map(|(address, record)| {
            json!({"address": address, "record": record, "why": ground(reason, record.as_ref())})
        }),
    })
}
