//! The wanted tables as one document for `nft -f -`: one transaction.

use std::fmt::Write;

use super::family::Family;
use super::wanted::{INSIDE, LOCAL, Place, TABLE, Table};

/// Declares, deletes and defines each table, and deletes those of the families in `gone`.
///
/// The declaration makes the deletion unconditional, and the deletion gives every chain the hook and
/// priority that is wanted, whatever an earlier version made. The kernel applies all of it in one step:
/// no packet meets half a ruleset, and a refused rule leaves everything as it was.
///
/// Nothing in it is newer than nft 0.9.4: priorities are numbers, and there is no `destroy`.
pub fn document(tables: &[Table], gone: &[Family]) -> String {
    let mut text = String::new();
    for family in gone {
        let _ = writeln!(text, "table {family} {TABLE}\ndelete table {family} {TABLE}");
    }
    for table in tables {
        let _ = define(&mut text, table);
    }
    text
}

fn define(text: &mut String, Table { family, share }: &Table) -> std::fmt::Result {
    writeln!(text, "table {family} {TABLE}\ndelete table {family} {TABLE}\ntable {family} {TABLE} {{")?;
    for set in [INSIDE, LOCAL] {
        let elements: Vec<_> = share.elements.iter().filter(|element| element.set == set).collect();
        let asked = format!("@{set} ");
        if elements.is_empty() && !share.rules.iter().any(|rule| rule.text.contains(&asked)) {
            continue;
        }
        writeln!(text, "\tset {set} {{\n\t\ttype {}\n\t\tflags interval", family.address_type())?;
        if !elements.is_empty() {
            writeln!(text, "\t\telements = {{")?;
            for element in elements {
                match &element.mark {
                    Some(mark) => writeln!(text, "\t\t\t{} comment \"{mark}\",", element.subnet)?,
                    None => writeln!(text, "\t\t\t{},", element.subnet)?,
                }
            }
            writeln!(text, "\t\t}}")?;
        }
        writeln!(text, "\t}}")?;
    }
    let chains = [
        (Place::Guard.chain(), "type filter hook prerouting priority -300; policy accept;"),
        (Place::Input.chain(), "type filter hook input priority 0; policy accept;"),
        (Place::Masquerade.chain(), "type nat hook postrouting priority 100; policy accept;"),
        (Place::Accept.chain(), "type filter hook forward priority 0; policy accept;"),
    ];
    for (chain, hook) in chains {
        let rules: Vec<_> = share.rules.iter().filter(|rule| rule.place.chain() == chain).collect();
        if rules.is_empty() && [Place::Guard.chain(), Place::Input.chain()].contains(&chain) {
            continue;
        }
        writeln!(text, "\tchain {chain} {{\n\t\t{hook}")?;
        for rule in rules {
            writeln!(text, "\t\t{} comment \"{}\"", rule.text, rule.mark)?;
        }
        writeln!(text, "\t}}")?;
    }
    writeln!(text, "}}")
}

#[cfg(test)]
mod tests {
    use super::super::wanted::{Share, tables};
    use super::*;
    use crate::network::record::tests::record;

    #[test]
    fn one_document_for_several_networks() {
        let mut public = record("pub", &["192.0.2.0/24"]);
        public.masquerade_v4 = false;
        let records = [record("a", &["10.1.0.0/16"]), public];
        let text = document(&tables(&records, &|_| Share::default()), &[Family::Ip6]);
        assert_eq!(
            text,
            r#"table ip6 osvc-cni
delete table ip6 osvc-cni
table ip osvc-cni
delete table ip osvc-cni
table ip osvc-cni {
	set inside {
		type ipv4_addr
		flags interval
		elements = {
			10.1.0.0/16 comment "osvc:a",
			192.0.2.0/24 comment "osvc:pub",
			224.0.0.0/4,
			255.255.255.255/32,
		}
	}
	chain postrouting {
		type nat hook postrouting priority 100; policy accept;
		ip saddr 10.1.0.0/16 ip daddr != @inside masquerade comment "osvc:a"
	}
	chain forward {
		type filter hook forward priority 0; policy accept;
		ip saddr 10.1.0.0/16 ip daddr != @inside ct state invalid drop comment "osvc:a"
		iifname "obr_a" accept comment "osvc:a"
		oifname "obr_a" accept comment "osvc:a"
		iifname "obr_pub" accept comment "osvc:pub"
		oifname "obr_pub" accept comment "osvc:pub"
	}
}
"#
        );
    }

    #[test]
    fn nothing_wanted_and_nothing_there_is_no_document() {
        assert_eq!(document(&tables(&[], &|_| Share::default()), &[]), "");
    }
}
