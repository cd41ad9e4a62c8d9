//! nftables, and others who drop what is forwarded.

use osvc_cni::firewall::foreign::report::{Done, obstacles};
use osvc_cni::firewall::{self, Error as FirewallError};
use osvc_cni::netlink::RouteSocket;
use osvc_cni::network::NetworkRecord;
use osvc_cni::{Host, NetworkName};

use super::{Report, Subject, runtimes};

/// The oldest nft whose language suffices.
const OLDEST: [u32; 3] = [0, 9, 4];

/// What keeps rules from being made, and what others' rules do.
pub fn look(report: &mut Report, host: &Host, subjects: &[Subject<'_>]) {
    let layer3 = |subject: &Subject<'_>| subject.shape.as_ref().is_none_or(|shape| !shape.networks.is_empty());
    if !subjects.iter().any(layer3) {
        return;
    }
    if !nftables(report) {
        return;
    }
    for record in subjects.iter().filter_map(|subject| subject.record.as_ref()) {
        // A bridge that is gone forwards nothing: that is a finding of its own.
        let there = RouteSocket::open().and_then(|mut socket| socket.link_by_name(record.device()));
        if matches!(there, Ok(None)) {
            continue;
        }
        match obstacles(host, record) {
            Ok(found) if found.is_empty() => {}
            Ok(found) => {
                for obstacle in &found {
                    let (done, help) = match obstacle.done {
                        Done::NotYet => ("no accept of ours is in it yet", format!("osvc-net setup {}", record.name)),
                        Done::Never => (
                            "nothing was done about it, since forwardAccept is \"never\"",
                            format!(
                                "{}\n# or remove forwardAccept from the conflist, and osvc-net setup {}",
                                obstacle.by_hand.join("\n"),
                                record.name
                            ),
                        ),
                        Done::Refused => ("and it takes no accept of ours", obstacle.by_hand.join("\n")),
                    };
                    let what = format!("{} drops what is forwarded, {}: {done}", obstacle.whose, record.device());
                    let why = "what containers send and get is dropped here";
                    report.add("foreign-drop", Some(&record.name), what, why, help);
                }
                bridged(report, record);
            }
            Err(error) => report.cannot_tell(Some(&record.name), "who drops what it forwards", &error),
        }
    }
}

/// True if rules can be made.
fn nftables(report: &mut Report) -> bool {
    const WHY: &str = "no container with addresses can start: masquerading and forwarding are rules of nftables";
    match firewall::available() {
        Ok(()) => {}
        Err(error @ FirewallError::NoNft) => {
            report.add("no-nft", None, error.to_string(), WHY, "apt-get install nftables");
            return false;
        }
        Err(error @ FirewallError::NoNftables { .. }) => {
            report.add("no-nftables", None, error.to_string(), WHY, "modprobe nf_tables");
            return false;
        }
        Err(error) => {
            report.cannot_tell(None, "what rules there are", &error);
            return false;
        }
    }
    let said = runtimes::said("nft", &["--version"]).unwrap_or_default();
    match version(&said) {
        Some(version) if version < OLDEST => {
            let what =
                format!("nft is version {}: 0.9.4 is needed", version.map(|number| number.to_string()).join("."));
            report.add("old-nft", None, what, WHY, "apt-get install nftables   # 0.9.4 or later");
            false
        }
        Some(_) => true,
        None => {
            report.cannot_tell(None, "the version of nft", &format!("it says {:?}", said.trim()));
            true
        }
    }
}

/// The version in `nftables v1.0.6 (Lester Gooch #5)`.
fn version(said: &str) -> Option<[u32; 3]> {
    let word = said.split_whitespace().find_map(|word| word.strip_prefix('v'))?;
    let mut numbers = word.split('.').map(|number| number.parse::<u32>().ok());
    Some([numbers.next()??, numbers.next().flatten().unwrap_or(0), numbers.next().flatten().unwrap_or(0)])
}

/// With br_netfilter, frames between two ports of one bridge are forwarded packets: what drops these drops those.
fn bridged(report: &mut Report, record: &NetworkRecord) {
    let name: &NetworkName = &record.name;
    for key in ["bridge-nf-call-iptables", "bridge-nf-call-ip6tables"] {
        let path = format!("/proc/sys/net/bridge/{key}");
        if std::fs::read_to_string(&path).is_ok_and(|value| value.trim() == "1") {
            report.add(
                "bridge-netfilter",
                Some(name),
                format!("net.bridge.{key} is 1: the same drop concerns frames that stay on {}", record.bridge),
                "containers on the same bridge do not reach each other",
                format!("mend the drop first; or sysctl -w net.bridge.{key}=0, unless Kubernetes needs it"),
            );
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_nft() {
        assert_eq!(version("nftables v1.0.6 (Lester Gooch #5)\n"), Some([1, 0, 6]));
        assert!(version("nftables v0.9.0 (Fearless Fosdick)").is_some_and(|version| version < OLDEST));
        assert_eq!(version("what?"), None);
    }
}
