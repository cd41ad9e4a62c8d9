//! `osvc-net wireguard pubkey`: the public key of this node.

use osvc_cni::netlink::wireguard::{PrivateKey, PublicKey, public_key};
use osvc_cni::routed::config::key;
use osvc_cni::routed::private_key;
use osvc_cni::{Host, NetworkName};

use crate::error::Error;
use crate::networks::Networks;
use crate::output;

/// Prints the public key of this node in a network, whose private one is made if there is none.
///
/// A network need not be configured yet, since its configuration has the keys of all nodes. But then it has to be said
/// that it is a `new` one: a slip of the finger would have a key for ever. With `dry_run` it is said that one would be.
pub fn print_public_key(
    host: &Host,
    networks: Networks,
    name: &str,
    new: bool,
    dry_run: bool,
) -> Result<(), Vec<Error>> {
    let network: NetworkName = name.parse().map_err(|source| vec![Error::NoName { name: name.to_owned(), source }])?;
    if !new && !networks.knows(&network) && !private_key::path(host, &network).exists() {
        let (_, mut errors) = networks.choose(&[name.to_owned()]);
        let unknown = errors.pop().map(|unknown| Error::NoKeyYet { unknown: Box::new(unknown), network });
        return Err(errors.into_iter().chain(unknown).collect());
    }
    let told = public(host, &network, dry_run).map(|key| match key {
        Some(key) => format!("{}\n", key::text(&key)),
        None => format!("{network}: would make the private key {}\n", private_key::path(host, &network).display()),
    });
    told.and_then(|text| output::print(&text)).map_err(|error| vec![error])
}

/// None if it would have to be made, and is not.
fn public(host: &Host, network: &NetworkName, dry_run: bool) -> Result<Option<PublicKey>, Error> {
    let failed = |source: osvc_cni::Error| Error::Network { network: network.clone(), source: Box::new(source) };
    let of = |key: &PrivateKey| public_key(key).map_err(|error| failed(error.into()));
    if let Some(known) = private_key::load(host, network).map_err(|error| failed(error.into()))? {
        return of(&known).map(Some);
    }
    if dry_run {
        return Ok(None);
    }
    let made = PrivateKey::generate().map_err(|source| Error::Read { path: "/dev/urandom".into(), source })?;
    // A kernel that cannot tell the public one has no use for it.
    let public = of(&made)?;
    let kept = private_key::keep(host, network, &made).map_err(|error| failed(error.into()))?;
    if kept == made { Ok(Some(public)) } else { of(&kept).map(Some) }
}
