//! The configuration of a bridge network: as it arrives ([`Low`]), and as everything else works with it
//! ([`BridgeConfig`]).

mod low;
mod vlans;

pub use low::{Low, LowArgs, LowFamilies, LowIpam, LowMac, LowTrunk};
pub use vlans::Vlans;

use ipnet::IpNet;
use serde_json::Value;

use super::Error;
use super::error::{Contradiction, Reason};
use super::mtu;
use super::names::BridgeName;
use super::record::ForwardAccept;
use crate::netlink::Mac;
use crate::protocol::json;
use crate::spoof::Checks;
use crate::{Dns, InterfaceName, NetworkName};

/// The bridge that the reference plugin takes when none is named.
const REFERENCE_BRIDGE: &str = "cni0";
/// What a pair and a bridge can have (`ETH_MIN_MTU`, `ETH_MAX_MTU`), in bytes.
const MTU: std::ops::RangeInclusive<i64> = 68..=65535;

/// Who gives a network's containers their addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Addresses {
    /// Nobody: layer 2.
    None,
    /// osvc-ipam, from these subnets (`network`).
    Subnets(Vec<IpNet>),
    /// The plugin that `ipam.type` names.
    Plugin(String),
}

/// A bridge network, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BridgeConfig {
    /// The network.
    pub network: NetworkName,
    /// The bridge.
    pub bridge: BridgeName,
    /// Who gives the addresses.
    pub addresses: Addresses,
    /// The bridge has the gateway addresses, and the host forwards.
    pub is_gateway: bool,
    /// The containers have a default route to it.
    pub is_default_gateway: bool,
    /// A clashing address of the bridge is replaced.
    pub force_address: bool,
    /// Masquerade IPv4.
    pub masquerade_v4: bool,
    /// Masquerade IPv6.
    pub masquerade_v6: bool,
    /// The program that was asked for to masquerade: any will do, ours is always the same.
    pub masquerade_backend: Option<String>,
    /// What to do about foreign rule sets that drop.
    pub forward_accept: ForwardAccept,
    /// MTU in bytes; `None` follows the host.
    pub mtu: Option<u32>,
    /// Hairpin mode of the ports.
    pub hairpin: bool,
    /// IPv6 addresses wait for duplicate address detection.
    pub detect_duplicates: bool,
    /// The container's end goes up.
    pub up: bool,
    /// VLANs of the ports.
    pub vlans: Vlans,
    /// The bridge takes up all frames.
    pub promiscuous: bool,
    /// The ports are isolated from each other.
    pub port_isolation: bool,
    /// Nothing passes between this network and any other one of this host.
    pub isolate: bool,
    /// A port takes frames from its container's MAC address only (`macspoofchk`).
    pub check_mac: bool,
    /// A port takes packets from its container's addresses only (`spoofcheck`).
    pub check_addresses: bool,
    /// Resolver settings that replace IPAM's.
    pub dns: Option<Dns>,
}

impl BridgeConfig {
    /// Checks a configuration. Everything that cannot be honoured is refused here.
    ///
    /// # Errors
    /// [`Error::Unsupported`], [`Error::Contradiction`], [`Error::Type`].
    pub fn new(network: &NetworkName, low: &Low) -> Result<Self, Error> {
        let vlans = Vlans::new(low)?;
        let addresses = low.addresses()?;
        low.refuse_contradictions(&vlans, &addresses)?;
        let one_line = matches!(addresses, Addresses::Subnets(_));
        let is_default_gateway = low.is_default_gateway.unwrap_or(one_line && low.is_gateway != Some(false));
        let is_gateway = is_default_gateway || low.is_gateway.unwrap_or(one_line);
        let (masquerade_v4, masquerade_v6) = low.masquerade(one_line)?;
        low.check_layer_two(&addresses, is_gateway, masquerade_v4 || masquerade_v6)?;
        let layer_three = addresses != Addresses::None;
        Ok(Self {
            network: network.clone(),
            bridge: low.bridge_name(network, &addresses)?,
            is_gateway: is_gateway && layer_three,
            is_default_gateway: is_default_gateway && layer_three,
            force_address: low.force_address,
            masquerade_v4: masquerade_v4 && layer_three,
            masquerade_v6: masquerade_v6 && layer_three,
            masquerade_backend: low.ip_masq_backend.clone(),
            forward_accept: low.forward_accept()?,
            mtu: low.mtu(&addresses)?,
            hairpin: low.hairpin_mode.unwrap_or(one_line && !low.promisc_mode),
            detect_duplicates: low.enabledad,
            up: !low.disable_container_interface,
            vlans,
            promiscuous: low.promisc_mode,
            port_isolation: low.port_isolation,
            isolate: low.isolate,
            check_mac: low.macspoofchk,
            check_addresses: low.spoofcheck,
            dns: (!low.dns.is_empty()).then(|| low.dns.clone()),
            addresses,
        })
    }
}

impl BridgeConfig {
    /// Which sources of its containers are checked.
    pub fn checks(&self) -> Checks {
        Checks { mac: self.check_mac, addresses: self.check_addresses }
    }
}

impl Low {
    /// Keys that exclude each other.
    fn refuse_contradictions(&self, vlans: &Vlans, addresses: &Addresses) -> Result<(), Error> {
        let layer_two = *addresses == Addresses::None;
        let found = match () {
            () if self.hairpin_mode == Some(true) && self.promisc_mode => Contradiction::HairpinAndPromiscuous,
            () if self.spoofcheck && layer_two => Contradiction::LayerTwo("spoofcheck"),
            () if self.spoofcheck && !vlans.trunk.is_empty() => Contradiction::SpoofcheckAndTrunk,
            () => return Ok(()),
        };
        Err(Error::Contradiction(found))
    }

    fn addresses(&self) -> Result<Addresses, Error> {
        let plugin = self.ipam.as_ref().and_then(|ipam| ipam.r#type.as_deref());
        let addresses = match (&self.network, plugin) {
            (Some(network), None | Some("osvc-ipam")) => {
                let says = self.ipam.as_ref().and_then(LowIpam::addresses);
                if let Some(key) = says {
                    return Err(Error::Contradiction(Contradiction::NetworkAndIpam(key)));
                }
                Addresses::Subnets(subnets(network)?)
            }
            (Some(_), Some(other)) => {
                return Err(Error::Contradiction(Contradiction::NetworkAndOtherIpam(other.to_owned())));
            }
            (None, Some(plugin)) => Addresses::Plugin(plugin.to_owned()),
            (None, None) => Addresses::None,
        };
        if self.disable_container_interface && addresses != Addresses::None {
            return Err(Error::Contradiction(Contradiction::AddressOfDownInterface));
        }
        Ok(addresses)
    }

    /// Without any `ipam`, what needs addresses is a mistake: somebody forgot them. With an `ipam` of no
    /// type the reference plugin makes a layer 2 network and takes no notice, and so do we.
    fn check_layer_two(&self, addresses: &Addresses, is_gateway: bool, masquerade: bool) -> Result<(), Error> {
        if *addresses != Addresses::None || self.ipam.is_some() {
            return Ok(());
        }
        let gateway = if self.is_default_gateway == Some(true) { "isDefaultGateway" } else { "isGateway" };
        match (is_gateway, masquerade) {
            (true, _) => Err(Error::Contradiction(Contradiction::LayerTwo(gateway))),
            (_, true) => Err(Error::Contradiction(Contradiction::LayerTwo("ipMasq"))),
            _ => Ok(()),
        }
    }

    /// `bridge`; else our own name. Where `ipam` is written out as for the reference plugin, its default:
    /// the containers of a conflist that was switched to us are on that bridge.
    fn bridge_name(&self, network: &NetworkName, addresses: &Addresses) -> Result<BridgeName, Error> {
        let name = match (&self.bridge, addresses) {
            (Some(name), _) => name.as_str(),
            (None, Addresses::Plugin(_)) => REFERENCE_BRIDGE,
            (None, _) => return Ok(BridgeName::of(network)),
        };
        match name.parse::<InterfaceName>() {
            Ok(name) => Ok(BridgeName { name: name.into(), altname: None }),
            Err(error) => Err(unsupported("bridge", Value::from(name), Reason::Name(error))),
        }
    }

    fn masquerade(&self, one_line: bool) -> Result<(bool, bool), Error> {
        let default = one_line && !self.public;
        let (v4, v6) = match &self.ip_masq {
            None => (default, default),
            Some(Value::Bool(both)) => (*both, *both),
            Some(value) => {
                let is_family = |key: &String| ["v4", "v6"].iter().any(|family| key.eq_ignore_ascii_case(family));
                if !value.as_object().is_none_or(|families| families.keys().all(is_family)) {
                    let what = "true, false, or one of them for each of \"v4\" and \"v6\"";
                    return Err(unsupported("ipMasq", value.clone(), Reason::MustBe(what)));
                }
                let families: LowFamilies = json::from_value(value).map_err(|error| error.under("ipMasq"))?;
                (families.v4.unwrap_or(default), families.v6.unwrap_or(default))
            }
        };
        if self.public && (v4 || v6) {
            return Err(Error::Contradiction(Contradiction::PublicAndMasqueraded));
        }
        Ok((v4, v6))
    }

    fn forward_accept(&self) -> Result<ForwardAccept, Error> {
        match self.forward_accept.as_deref() {
            None | Some("auto") => Ok(ForwardAccept::Auto),
            Some("never") => Ok(ForwardAccept::Never),
            Some(other) => {
                Err(unsupported("forwardAccept", Value::from(other), Reason::MustBe("\"auto\" or \"never\"")))
            }
        }
    }

    fn mtu(&self, addresses: &Addresses) -> Result<Option<u32>, Error> {
        if self.mtu == 0 {
            return Ok(None);
        }
        let refuse = |what| unsupported("mtu", self.mtu, Reason::MustBe(what));
        let mtu = u32::try_from(self.mtu).ok().filter(|_| MTU.contains(&self.mtu));
        let mtu = mtu.ok_or_else(|| refuse("between 68 and 65535"))?;
        match addresses {
            Addresses::Subnets(subnets) if mtu < mtu::LEAST_V6 && subnets.iter().any(|net| net.addr().is_ipv6()) => {
                Err(refuse("1280 or more for IPv6"))
            }
            _ => Ok(Some(mtu)),
        }
    }

    /// The MAC address that was asked for: `runtimeConfig.mac`, `args.cni.mac`, or that of the arguments.
    ///
    /// # Errors
    /// [`Error::Unsupported`]: it is none, or one that no interface can have.
    pub fn mac(&self, argument: Option<&str>) -> Result<Option<Mac>, Error> {
        let places = [
            ("runtimeConfig.mac", self.runtime_config.mac.as_deref()),
            ("args.cni.mac", self.args.cni.mac.as_deref()),
            ("MAC", argument),
        ];
        let Some((key, text)) = places.into_iter().find_map(|(key, text)| Some((key, text?))) else { return Ok(None) };
        let refuse = |reason| unsupported(key, Value::from(text), reason);
        let mac: Mac =
            text.parse().map_err(|_| refuse(Reason::Not("an Ethernet address such as 02:00:00:00:00:01")))?;
        // As `is_valid_ether_addr` of the kernel.
        if mac.0[0] & 1 != 0 || mac.0 == [0; 6] {
            return Err(refuse(Reason::Not("the address of one interface: it is a group address, or zero")));
        }
        Ok(Some(mac))
    }
}

impl LowIpam {
    fn addresses(&self) -> Option<&'static str> {
        match (&self.subnet, &self.ranges) {
            (Some(_), _) => Some("subnet"),
            (_, Some(_)) => Some("ranges"),
            _ => None,
        }
    }
}

fn unsupported(key: &'static str, value: impl Into<Value>, reason: Reason) -> Error {
    Error::Unsupported { key, value: json::shown(&value.into()), reason }
}

/// The subnets of `network`: one, or a list.
fn subnets(value: &Value) -> Result<Vec<IpNet>, Error> {
    let texts: Vec<String> = match value {
        Value::String(one) => vec![one.clone()],
        list => json::from_value(list).map_err(|error| error.under("network"))?,
    };
    if texts.is_empty() {
        return Err(unsupported("network", value.clone(), Reason::Not("a subnet")));
    }
    let mut subnets: Vec<IpNet> = Vec::with_capacity(texts.len());
    for text in &texts {
        let refuse = |reason| unsupported("network", text.as_str(), reason);
        let subnet: IpNet = text.parse().map_err(|_| refuse(Reason::Not("a subnet such as 10.22.0.0/16")))?;
        if subnet.trunc() != subnet {
            return Err(refuse(Reason::HostBits(subnet.trunc())));
        }
        if subnet.prefix_len() == 0 || subnet.addr().is_multicast() || subnet.addr().is_loopback() {
            return Err(refuse(Reason::Not("a network that containers can have addresses of")));
        }
        if let Some(other) = subnets.iter().find(|other| overlap(other, &subnet)) {
            return Err(refuse(Reason::Overlaps(*other)));
        }
        subnets.push(subnet);
    }
    Ok(subnets)
}

/// True if two subnets have addresses in common.
pub fn overlap(a: &IpNet, b: &IpNet) -> bool {
    a.contains(b) || b.contains(a)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
