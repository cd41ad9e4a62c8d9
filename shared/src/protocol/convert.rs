//! Results in their three JSON forms: 0.1.0 and 0.2.0; 0.3.0 to 0.4.0; 1.0.0 and 1.1.0.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::SpecVersion;
use super::error::Error;
use super::json;
use super::result::{CniResult, Interface, Ip, Original};
use crate::{Dns, Route};

/// 0.3.0 and later.
#[derive(Deserialize)]
struct Low {
    #[serde(default)]
    interfaces: Vec<Value>,
    #[serde(default)]
    ips: Vec<Value>,
    #[serde(default)]
    routes: Vec<Route>,
    #[serde(default)]
    dns: Dns,
}

#[derive(Deserialize)]
struct LowInterface {
    #[serde(default)]
    name: String,
    mac: Option<String>,
    mtu: Option<u32>,
    sandbox: Option<String>,
}

#[derive(Deserialize)]
struct LowIp {
    address: IpNet,
    gateway: Option<IpAddr>,
    interface: Option<u32>,
}

/// 0.1.0 and 0.2.0.
#[derive(Deserialize)]
struct Old {
    ip4: Option<OldIp>,
    ip6: Option<OldIp>,
    #[serde(default)]
    dns: Dns,
}

#[derive(Deserialize)]
struct OldIp {
    ip: IpNet,
    gateway: Option<IpAddr>,
    #[serde(default)]
    routes: Vec<Route>,
}

const TOP: [&str; 5] = ["cniVersion", "interfaces", "ips", "routes", "dns"];
const INTERFACE: [&str; 4] = ["name", "mac", "mtu", "sandbox"];
/// `version` is told by the address itself.
const IP: [&str; 4] = ["version", "address", "gateway", "interface"];
/// Keys of an interface that came with 1.x.
const INTERFACE_1X: [&str; 3] = ["mtu", "socketPath", "pciID"];

/// `cniVersion` of a result; `None` if it has none.
pub(super) fn version(value: &Value) -> Result<Option<SpecVersion>, Error> {
    #[derive(Deserialize)]
    struct Version {
        #[serde(rename = "cniVersion")]
        cni_version: Option<String>,
    }
    let Version { cni_version } = json::from_value(value).map_err(Error::ResultValue)?;
    cni_version.map(|text| text.parse().map_err(|_| Error::ResultVersion(text))).transpose()
}

/// A result out of JSON of a version.
pub(super) fn read(value: &Value, version: SpecVersion) -> Result<CniResult, Error> {
    if version < SpecVersion::V030 {
        return json::from_value(value).map(read_old).map_err(Error::ResultValue);
    }
    let Low { interfaces, ips, routes, dns } = json::from_value(value).map_err(Error::ResultValue)?;
    Ok(CniResult {
        interfaces: each("interfaces", &interfaces, |LowInterface { name, mac, mtu, sandbox }, extra| Interface {
            name,
            mac,
            mtu,
            sandbox,
            extra: unknown(extra, &INTERFACE),
        })?,
        ips: each("ips", &ips, |LowIp { address, gateway, interface }, extra| Ip {
            address,
            gateway,
            interface,
            extra: unknown(extra, &IP),
        })?,
        routes,
        dns,
        ..CniResult::default()
    })
}

fn read_old(Old { ip4, ip6, dns }: Old) -> CniResult {
    let mut result = CniResult { dns, ..CniResult::default() };
    for OldIp { ip, gateway, routes } in [ip4, ip6].into_iter().flatten() {
        result.ips.push(Ip::new(ip, gateway));
        result.routes.extend(routes);
    }
    result
}

fn each<L: serde::de::DeserializeOwned, T>(
    key: &str,
    list: &[Value],
    high: impl Fn(L, &Value) -> T,
) -> Result<Vec<T>, Error> {
    let read = |(index, value)| match json::from_value(value) {
        Ok(low) => Ok(high(low, value)),
        Err(error) => Err(Error::ResultValue(error.at(index).under(key))),
    };
    list.iter().enumerate().map(read).collect()
}

fn is_one_of(key: &str, known: &[&str]) -> bool {
    known.iter().any(|name| name.eq_ignore_ascii_case(key))
}

fn unknown(value: &Value, known: &[&str]) -> Map<String, Value> {
    let entries = value.as_object().into_iter().flatten().filter(|(key, _)| !is_one_of(key, known));
    entries.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The object with its `cniVersion` set, first of all keys.
pub(super) fn with_version(object: &Map<String, Value>, version: SpecVersion) -> Value {
    let mut all = Map::new();
    all.insert("cniVersion".to_owned(), version.as_str().into());
    for (key, value) in object.iter().filter(|(key, _)| !is_one_of(key, &["cniVersion"])) {
        all.insert(key.clone(), value.clone());
    }
    Value::Object(all)
}

/// A result as JSON of a version. Parts that say what the original said are the original's.
pub(super) fn print(result: &CniResult, version: SpecVersion, original: Option<Original<'_>>) -> Result<Value, Error> {
    if version < SpecVersion::V030 {
        return print_old(result, version);
    }
    let modern = version >= SpecVersion::V100;
    let parts = |key| original.and_then(|original| json::get(original.value.as_object()?, key));
    let lists = |key| parts(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let read = original.map(|original| original.result);

    let mut top = Map::new();
    top.insert("cniVersion".to_owned(), version.as_str().into());
    let interfaces =
        kept(&result.interfaces, read.map(|read| &read.interfaces[..]), lists("interfaces"), |interface| {
            print_interface(interface, modern)
        })?;
    let ips = kept(&result.ips, read.map(|read| &read.ips[..]), lists("ips"), |ip| print_ip(ip, modern))?;
    let routes = kept(&result.routes, read.map(|read| &read.routes[..]), lists("routes"), to_json)?;
    for (key, list) in [("interfaces", interfaces), ("ips", ips), ("routes", routes)] {
        if !list.is_empty() {
            top.insert(key.to_owned(), Value::Array(list));
        }
    }
    match parts("dns") {
        Some(dns) if read.is_some_and(|read| read.dns == result.dns) => top.insert("dns".to_owned(), dns.clone()),
        // Before 1.0.0 `dns` is always there.
        _ if modern && result.dns.is_empty() => None,
        _ => top.insert("dns".to_owned(), to_json(&result.dns)?),
    };
    if let Some(original) = original {
        top.extend(unknown(original.value, &TOP));
    }
    Ok(Value::Object(top))
}

/// Each element as JSON: the original's where the original had one that says the same.
fn kept<T: PartialEq>(
    elements: &[T],
    read: Option<&[T]>,
    values: &[Value],
    print: impl Fn(&T) -> Result<Value, Error>,
) -> Result<Vec<Value>, Error> {
    let read = read.unwrap_or_default();
    let original = |index: usize, element: &T| {
        let place = if read.get(index) == Some(element) { Some(index) } else { read.iter().position(|e| e == element) };
        place.and_then(|place| values.get(place)).cloned()
    };
    elements
        .iter()
        .enumerate()
        .map(|(index, element)| original(index, element).map_or_else(|| print(element), Ok))
        .collect()
}

fn print_interface(interface: &Interface, modern: bool) -> Result<Value, Error> {
    let mut object = Map::new();
    object.insert("name".to_owned(), interface.name.as_str().into());
    optional(&mut object, "mac", &interface.mac)?;
    optional(&mut object, "mtu", &interface.mtu.filter(|_| modern))?;
    optional(&mut object, "sandbox", &interface.sandbox)?;
    let extra = interface.extra.iter().filter(|(key, _)| modern || !is_one_of(key, &INTERFACE_1X));
    object.extend(extra.map(|(key, value)| (key.clone(), value.clone())));
    Ok(Value::Object(object))
}

fn print_ip(ip: &Ip, modern: bool) -> Result<Value, Error> {
    let mut object = Map::new();
    if !modern {
        let version = if ip.address.addr().is_ipv4() { "4" } else { "6" };
        object.insert("version".to_owned(), version.into());
    }
    object.insert("address".to_owned(), to_json(&ip.address)?);
    optional(&mut object, "gateway", &ip.gateway)?;
    optional(&mut object, "interface", &ip.interface)?;
    object.extend(ip.extra.clone());
    Ok(Value::Object(object))
}

fn print_old(result: &CniResult, version: SpecVersion) -> Result<Value, Error> {
    let mut top = Map::new();
    top.insert("cniVersion".to_owned(), version.as_str().into());
    for (key, v4) in [("ip4", true), ("ip6", false)] {
        let Some(ip) = result.ips.iter().find(|ip| ip.address.addr().is_ipv4() == v4) else { continue };
        let mut object = Map::new();
        object.insert("ip".to_owned(), to_json(&ip.address)?);
        optional(&mut object, "gateway", &ip.gateway)?;
        let routes = result.routes.iter().filter(|route| route.dst.addr().is_ipv4() == v4);
        let routes = routes.map(|route| to_json(&Route::new(route.dst, route.gw))).collect::<Result<Vec<_>, _>>()?;
        if !routes.is_empty() {
            object.insert("routes".to_owned(), routes.into());
        }
        top.insert(key.to_owned(), object.into());
    }
    top.insert("dns".to_owned(), to_json(&result.dns)?);
    Ok(Value::Object(top))
}

fn to_json<T: Serialize>(value: &T) -> Result<Value, Error> {
    serde_json::to_value(value).map_err(Error::Encode)
}

fn optional<T: Serialize>(object: &mut Map<String, Value>, key: &str, value: &Option<T>) -> Result<(), Error> {
    if let Some(value) = value {
        object.insert(key.to_owned(), to_json(value)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
