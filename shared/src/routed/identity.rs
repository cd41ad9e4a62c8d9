//! Which node this host is by its addresses. A name is easily wrong: a file that was copied to all hosts, a copied disk.

use std::net::IpAddr;

use super::config::{Contradiction, Node};
use super::mode::Family;
use super::path::{Asked, Paths};
use super::resolution::Resolution;
use super::{Error, RoutedConfig};

/// Refuses a name that the addresses contradict: this host has one of another node, and none of the one that it is by
/// its name. Once it has a segment, the record says who it is.
///
/// # Errors
/// [`Contradiction::OtherAddress`], or the kernel does not answer.
pub fn refuse(config: &RoutedConfig, resolution: &Resolution, paths: &mut impl Paths) -> Result<(), Error> {
    let this_node = config.this_node();
    let asked = &mut Asked::new(paths);
    if own(this_node, resolution, asked)?.is_some() {
        return Ok(());
    }
    for peer in config.peers() {
        if let Some(address) = own(peer, resolution, asked)? {
            let (name, other) = (this_node.name.clone(), peer.name.clone());
            return Err(Contradiction::OtherAddress { name, other, address }.into());
        }
    }
    Ok(())
}

/// True if this host is the node of its name, by its addresses, and not that other one: it has an address of the one,
/// and none of those which the other one is known to have.
///
/// # Errors
/// The kernel does not answer.
pub fn is_now(
    config: &RoutedConfig,
    other: &Node,
    resolution: &Resolution,
    paths: &mut impl Paths,
) -> Result<bool, Error> {
    let (known, _) = resolution.of(other);
    let asked = &mut Asked::new(paths);
    Ok(!known.is_empty()
        && own(config.this_node(), resolution, asked)?.is_some()
        && own(other, resolution, asked)?.is_none())
}

/// An address of a node that is one of this host.
fn own(node: &Node, resolution: &Resolution, asked: &mut Asked<'_, impl Paths>) -> Result<Option<IpAddr>, Error> {
    let (known, _) = resolution.of(node);
    for address in Family::BOTH.into_iter().filter_map(|family| known.get(family)) {
        if asked.is_own(address)? {
            return Ok(Some(address));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Code;
    use crate::netlink::Error as NetlinkError;
    use crate::routed::config::tests::config as checked;
    use crate::routed::path::Path;
    use crate::routed::resolution::Which;

    /// A host with these addresses.
    struct Has(&'static [&'static str]);

    impl Paths for Has {
        fn path_to(&mut self, _: IpAddr) -> Result<Option<Path>, NetlinkError> {
            Ok(None)
        }

        fn own(&mut self) -> Result<Vec<IpAddr>, NetlinkError> {
            Ok(self.0.iter().map(|own| own.parse().unwrap()).collect())
        }

        fn source_to(&mut self, _: IpAddr) -> Result<Option<IpAddr>, NetlinkError> {
            Ok(None)
        }
    }

    /// a by name, b dual-stack, c retired at the address that d has now.
    fn config(here: &str) -> RoutedConfig {
        let nodes = json!([
            {"name": "a", "addr": "a.lan"}, {"name": "b", "addr": ["192.0.2.2", "2001:db8::2"]},
            {"name": "c", "addr": "192.0.2.4", "retired": true}, {"name": "d", "addr": "192.0.2.4"}, {"name": "e"}
        ]);
        checked(&json!({"network": "10.11.0.0/16", "maskPerNode": 22, "node": here, "nodes": nodes})).unwrap()
    }

    fn resolution(a: &str) -> Resolution {
        let mut resolution = Resolution::new(&"net".parse().unwrap());
        let a = a.parse().unwrap();
        assert!(resolution.refresh(["a.lan"], Which::All, |_| vec![Ok(vec![a])]).is_empty());
        resolution
    }

    #[test]
    fn a_name_that_the_addresses_contradict_is_refused_and_no_other() {
        let a = || resolution("192.0.2.1");
        let refused = |here: &str, resolution: &Resolution, has| refuse(&config(here), resolution, &mut Has(has)).err();
        let error = refused("a", &a(), &["192.0.2.2"]).unwrap();
        assert_eq!(error.code(), Code::InvalidConfig);
        assert_eq!(
            error.to_string(),
            "this host is node a by `node`, /etc/osvc-cni/node or its host name, and has 192.0.2.2, the address of node \
             b, and none of a: correct its name, or `addr` of the nodes"
        );
        assert!(refused("a", &a(), &["2001:db8::2"]).is_some(), "in either family");
        assert!(refused("b", &a(), &["192.0.2.1"]).is_some(), "of a name");
        assert!(refused("a", &Resolution::new(&"net".parse().unwrap()), &["192.0.2.4"]).is_some(), "not resolved");
        assert!(refused("e", &a(), &["192.0.2.1"]).is_some(), "none in the list");
        assert!(refused("a", &a(), &["192.0.2.1", "192.0.2.2"]).is_none(), "an address that moves, beside its own");
        assert!(refused("b", &a(), &["2001:db8::2", "192.0.2.1"]).is_none(), "one of two is enough");
        assert!(refused("a", &a(), &["10.0.0.7"]).is_none(), "behind a translation it has nobody's");
        assert!(refused("d", &a(), &["192.0.2.4"]).is_none(), "the retired one's is its own");
    }

    #[test]
    fn another_node_is_proven_by_both_addresses() {
        let resolution = resolution("192.0.2.1");
        let proven = |here: &str, former: usize, has| {
            let config = config(here);
            is_now(&config, &config.nodes[former], &resolution, &mut Has(has)).unwrap()
        };
        assert!(proven("a", 1, &["192.0.2.1"]) && proven("b", 0, &["2001:db8::2"]));
        assert!(!proven("a", 1, &["192.0.2.1", "192.0.2.2"]), "both");
        assert!(!proven("a", 1, &["192.0.2.2"]) && !proven("a", 1, &["10.0.0.7"]), "the former, or nobody's");
        assert!(!proven("a", 4, &["192.0.2.1"]), "nothing is known of the former");
    }
}
