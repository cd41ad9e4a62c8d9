use std::time::{Duration, SystemTime};

use netlink_packet_core::Emitable;

use super::*;
use crate::netlink::testing::in_new_netns;
use crate::netlink::{Error, NewTunnel, RouteSocket, Tunnel};

fn peer(number: u8, networks: &[&str]) -> WantedPeer {
    WantedPeer {
        public_key: [number; 32],
        endpoint: Some("192.0.2.1:7079".parse().unwrap()),
        roams: true,
        keepalive: 25,
        allowed: networks.iter().map(|network| network.parse().unwrap()).collect(),
    }
}

fn bytes(request: &dyn Emitable) -> Vec<u8> {
    let mut bytes = vec![0; request.buffer_len()];
    request.emit(&mut bytes);
    bytes
}

#[test]
fn a_change_is_read_as_the_device_that_it_makes() {
    let mut far = peer(2, &["10.11.8.0/22"]);
    far.endpoint = Some("[2001:db8::2]:7079".parse().unwrap());
    let wanted = [peer(1, &["10.11.4.0/22", "fd11:4::/64"]), far];
    let key = PrivateKey::new([9; 32]);
    let empty = WireguardDevice::new(7);
    let change = empty.change_to(&key, 7079, &wanted);
    let mut device = WireguardDevice::new(7);
    let requests = message::change(7, &change);
    assert_eq!(requests.len(), 1);
    let request = bytes(&requests[0]);
    assert_eq!(request[..12], [1, 1, 0, 0, 8, 0, 1, 0, 7, 0, 0, 0]);
    device.read(&request).unwrap();
    assert_eq!((device.private_key.as_ref(), device.port), (Some(&key), 7079));
    assert!(device.peers.iter().zip(&wanted).all(|(found, wanted)| wanted.is(found, SystemTime::now())), "{device:?}");
    assert!(device.change_to(&key, 7079, &wanted).is_empty());
    assert!(!format!("{device:?}").contains("[9, 9"), "{device:?}");
}

#[test]
fn only_what_differs_is_changed() {
    let key = PrivateKey::new([9; 32]);
    let before = [peer(1, &["10.11.4.0/22"]), peer(2, &["10.11.8.0/22"]), peer(3, &["10.11.12.0/22"])];
    let mut device = WireguardDevice::new(7);
    device.read(&bytes(&message::change(7, &device.change_to(&key, 7079, &before))[0])).unwrap();
    let after = [peer(2, &["10.11.8.0/22"]), peer(3, &["10.11.4.0/22"]), peer(4, &[])];
    let change = device.change_to(&key, 7080, &after);
    assert_eq!((change.private_key, change.port), (None, Some(7080)));
    assert_eq!((change.remove, change.set), (vec![[1; 32]], after[1..].to_vec()));
    let mut moved = peer(2, &["10.11.8.1/22"]);
    assert!(moved.is(&device.peers[1], SystemTime::now()), "host bits make no difference");
    moved.endpoint = None;
    assert!(moved.is(&device.peers[1], SystemTime::now()), "wherever it is");
    moved.endpoint = Some("192.0.2.1:1".parse().unwrap());
    assert!(!moved.is(&device.peers[1], SystemTime::now()));
}

#[test]
fn a_peer_with_a_session_may_be_somewhere_else() {
    let now = SystemTime::now();
    let key = PrivateKey::new([9; 32]);
    let wanted = peer(1, &["10.11.4.0/22"]);
    let mut device = WireguardDevice::new(7);
    device.read(&bytes(&message::change(7, &device.change_to(&key, 7079, std::slice::from_ref(&wanted)))[0])).unwrap();
    device.peers[0].endpoint = Some("198.51.100.1:7079".parse().unwrap());
    let (young, old) = (Duration::from_secs(100), Duration::from_secs(181));
    for (at, is) in [(None, false), (Some(now - young), true), (Some(now - old), false), (Some(now + old), false)] {
        device.peers[0].last_handshake = at;
        assert_eq!(wanted.is(&device.peers[0], now), is, "{at:?}");
        assert_eq!(device.change_to(&key, 7079, std::slice::from_ref(&wanted)).set.is_empty(), is, "{at:?}");
    }
    device.peers[0].last_handshake = Some(now - young);
    let change = |wanted| device.change_to(&key, 7079, &[wanted]).set;
    assert_eq!(
        change(WantedPeer { roams: false, ..wanted.clone() })[0].endpoint,
        wanted.endpoint,
        "told of another one"
    );
    let more = peer(1, &["10.11.4.0/22", "fd11::/64"]);
    assert_eq!(change(more.clone()), [WantedPeer { endpoint: None, ..more }], "other networks: it is where it is");
    device.peers[0].endpoint = None;
    assert!(!wanted.is(&device.peers[0], now));
}

#[test]
fn many_peers_are_several_requests() {
    let wanted: Vec<_> = (0..=250).map(|number| peer(number, &["10.0.0.0/8", "fd00::/8"])).collect();
    let change = WireguardDevice::new(7).change_to(&PrivateKey::new([9; 32]), 7079, &wanted);
    let mut device = WireguardDevice::new(7);
    let requests = message::change(7, &change);
    assert_eq!(requests.len(), 3);
    for request in &requests {
        device.read(&bytes(request)).unwrap();
    }
    assert_eq!(device.peers.len(), wanted.len());
}

#[test]
fn a_peer_that_goes_on_in_the_next_message_is_one() {
    let mut device = WireguardDevice::new(7);
    for networks in [["10.1.0.0/16"], ["10.2.0.0/16"]] {
        let change = WireguardChange { set: vec![peer(1, &networks)], ..WireguardChange::default() };
        device.read(&bytes(&message::change(7, &change)[0])).unwrap();
    }
    assert_eq!(device.peers.len(), 1);
    assert_eq!(device.peers[0].allowed.len(), 2);
    assert_eq!(device.read(&[0, 1, 0, 0, 6, 0, 3, 0, 1, 2, 0, 0]), None, "a key of two bytes");
}

#[test]
fn a_wireguard_device_of_the_kernel() {
    in_new_netns(|| {
        let mut wireguard = match WireguardSocket::open() {
            Ok(socket) => socket,
            Err(error) => {
                assert!(matches!(error, Error::NoModule { module: "wireguard", .. }), "{error}");
                return;
            }
        };
        let mut links = RouteSocket::open().unwrap();
        let name = "wg";
        links.create_tunnel(&NewTunnel { name, tunnel: &Tunnel::wireguard(), mtu: 1400, mac: None }).unwrap();
        let found = links.tunnel_by_name(name).unwrap().unwrap();
        assert_eq!((&found.tunnel, found.link.mtu, found.is_ours()), (&Tunnel::wireguard(), 1400, true));
        let link = found.link;
        let fresh = wireguard.device(&link).unwrap().unwrap();
        assert_eq!((fresh.private_key.as_ref(), fresh.peers.len()), (None, 0));

        let key = PrivateKey::new([9; 32]);
        let mut wanted: Vec<_> = (1..=250).map(|number| peer(number, &[])).collect();
        for (number, peer) in wanted.iter_mut().enumerate() {
            let networks = [format!("10.11.{number}.0/24"), format!("fd11:{number}::/64")];
            peer.allowed = networks.iter().map(|network| network.parse().unwrap()).collect();
        }
        wireguard.change_device(&link, &fresh.change_to(&key, 7079, &wanted)).unwrap();
        let device = wireguard.device(&link).unwrap().unwrap();
        assert!(device.change_to(&key, 7079, &wanted).is_empty(), "{:?}", device.change_to(&key, 7079, &wanted));
        assert_eq!(device.public_key, Some(public_key(&key).unwrap()));
        assert!(device.peers.iter().all(|peer| peer.last_handshake.is_none() && peer.sent == 0));

        // Two change places.
        let networks = std::mem::take(&mut wanted[0].allowed);
        wanted[0].allowed = std::mem::replace(&mut wanted[1].allowed, networks);
        wanted.truncate(2);
        wireguard.change_device(&link, &device.change_to(&key, 7079, &wanted)).unwrap();
        let device = wireguard.device(&link).unwrap().unwrap();
        assert!(device.change_to(&key, 7079, &wanted).is_empty() && device.peers.len() == 2);
        let lo = links.link_by_name("lo").unwrap().unwrap();
        assert_eq!(wireguard.device(&lo).unwrap(), None);
        links.delete_link(&link).unwrap();
        assert_eq!(wireguard.device(&link).unwrap(), None);
    });
}

#[test]
fn public_keys_are_the_kernel_s() {
    // RFC 7748, 6.1.
    let alice = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";
    let public = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
    let key = PrivateKey::new(key::from_text(alice).unwrap());
    match public_key(&key) {
        Ok(found) => assert_eq!(key::to_text(&found), public),
        Err(error) => assert!(matches!(error, Error::NoModule { module: "wireguard", .. }), "{error}"),
    }
}
