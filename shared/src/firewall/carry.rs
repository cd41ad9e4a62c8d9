//! A network that is in the kernel's table but has no record: its record was lost while containers run.
//! Its rules are carried over into the next table as nft prints them, whatever they are.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

use super::mark::OWN;
use super::wanted::{Element, INSIDE, LOCAL, Place, Rule, Share};

/// What is in nft's listing of our table and is no network's of `known`, by their comments.
pub fn unknown(listing: &str, known: &BTreeSet<String>) -> Share {
    let mut share = Share::default();
    let (mut chain, mut set) = ("", INSIDE);
    let mut elements = None::<String>;
    for line in listing.lines().map(str::trim) {
        // The elements of a set span lines, up to the closing brace.
        let more = elements.as_ref().map(|_| line).or_else(|| line.strip_prefix("elements = {"));
        if let Some(more) = more {
            let (text, last) = more.split_once('}').map_or((more, false), |(text, _)| (text, true));
            let whole = elements.take().unwrap_or_default() + text + " ";
            if last {
                share.elements.extend(whole.split(',').filter_map(|text| element(set, text, known)));
            } else {
                elements = Some(whole);
            }
        } else if let Some(name) = line.strip_prefix("chain ").and_then(|rest| rest.split(' ').next()) {
            chain = name;
        } else if let Some(name) = line.strip_prefix("set ").and_then(|rest| rest.split(' ').next()) {
            set = if name == LOCAL { LOCAL } else { INSIDE };
        } else if let Some((text, mark)) = marked(line, known)
            && let Some(place) = place(chain, text)
        {
            share.rules.push(Rule { place, text: text.to_owned(), mark: mark.to_owned() });
        }
    }
    share
}

/// Splits off the comment, if it is the mark of an unknown network.
fn marked<'a>(text: &'a str, known: &BTreeSet<String>) -> Option<(&'a str, &'a str)> {
    let (text, rest) = text.split_once(" comment \"")?;
    let mark = rest.split('"').next()?;
    (mark.starts_with(OWN) && !known.contains(mark)).then(|| (text.trim(), mark))
}

fn element(set: &'static str, text: &str, known: &BTreeSet<String>) -> Option<Element> {
    let (subnet, mark) = marked(text.trim(), known)?;
    // nft prints a single address without its length.
    let subnet = subnet.parse().or_else(|_| subnet.parse::<IpAddr>().map(IpNet::from)).ok()?;
    Some(Element { set, subnet, mark: Some(mark.to_owned()) })
}

fn place(chain: &str, text: &str) -> Option<Place> {
    if chain == Place::Guard.chain() {
        return Some(Place::Guard);
    }
    if chain == Place::Input.chain() {
        return Some(Place::Input);
    }
    if chain == Place::Masquerade.chain() {
        return Some(if text.contains(" snat to ") { Place::Translate } else { Place::Masquerade });
    }
    let accepts = text.split_whitespace().next_back() == Some("accept");
    (chain == Place::Accept.chain()).then_some(if accepts { Place::Accept } else { Place::Drop })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What nft 1.0.6 prints.
    const LISTING: &str = r#"table ip osvc-cni {
	set inside {
		type ipv4_addr
		flags interval
		elements = { 10.1.0.0/16 comment "osvc:a", 10.2.0.0/16 comment "osvc:lost",
			     10.3.0.1 comment "osvc:lost", 224.0.0.0/4,
			     255.255.255.255 }
	}

	chain postrouting {
		type nat hook postrouting priority srcnat; policy accept;
		ip saddr 10.1.0.0/16 ip daddr != @inside masquerade comment "osvc:a"
		ip saddr 10.2.0.0/16 ip daddr != @inside masquerade comment "osvc:lost"
	}

	chain input {
		type filter hook input priority filter; policy accept;
		iifname { "obr_a", "obr_b" } ip daddr 10.2.0.0/16 drop comment "osvc:lost"
	}

	chain forward {
		type filter hook forward priority filter; policy accept;
		ip saddr 10.2.0.0/16 ip daddr != @inside ct state invalid drop comment "osvc:lost"
		iifname "obr_a" accept comment "osvc:a"
		iifname "obr_lost" accept comment "osvc:lost"
		tcp dport 22 drop comment "of somebody else"
	}
}
"#;

    #[test]
    fn rules_and_elements_of_an_unknown_network_are_found() {
        let share = unknown(LISTING, &BTreeSet::from(["osvc:a".to_owned()]));
        let elements: Vec<_> = share.elements.iter().map(|element| element.subnet.to_string()).collect();
        assert_eq!(elements, ["10.2.0.0/16", "10.3.0.1/32"]);
        let rules: Vec<_> = share.rules.iter().map(|rule| (rule.place, rule.text.as_str())).collect();
        assert_eq!(
            rules,
            [
                (Place::Masquerade, "ip saddr 10.2.0.0/16 ip daddr != @inside masquerade"),
                (Place::Input, "iifname { \"obr_a\", \"obr_b\" } ip daddr 10.2.0.0/16 drop"),
                (Place::Drop, "ip saddr 10.2.0.0/16 ip daddr != @inside ct state invalid drop"),
                (Place::Accept, "iifname \"obr_lost\" accept"),
            ]
        );
        assert!(share.rules.iter().all(|rule| rule.mark == "osvc:lost"));
    }

    #[test]
    fn nothing_is_carried_when_all_are_known_or_the_text_is_none() {
        let known = BTreeSet::from(["osvc:a".to_owned(), "osvc:lost".to_owned()]);
        assert_eq!(unknown(LISTING, &known), Share::default());
        for text in [
            "",
            "elements = {",
            "chain",
            "elements = { 10.0.0.0/99 comment \"osvc:x\" }",
            "chain forward {\n comment \"",
        ] {
            assert_eq!(unknown(text, &known), Share::default(), "{text}");
        }
    }
}
