use std::collections::BTreeMap;
use std::net::IpAddr;

use super::*;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Network {
    name: Option<String>,
    #[serde(default)]
    is_gateway: bool,
    mtu: Option<u32>,
    ipam: Option<Ipam>,
    mode: Option<Mode>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ipam {
    #[serde(default)]
    ranges: Vec<Vec<Range>>,
    gateway: Option<IpAddr>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Range {
    subnet: String,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Auto,
}

fn read(text: &str) -> Result<Network, String> {
    from_value(&parse(text.as_bytes()).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn c22_keys_match_without_regard_to_case_and_the_last_wins() {
    let network =
        read(r#"{"NAME": "a", "ISGATEWAY": true, "IPAM": {"RANGES": [[{"SUBNET": "x"}]]}, "labels": {"Key": "v"}}"#)
            .unwrap();
    assert_eq!(network.name.as_deref(), Some("a"));
    assert!(network.is_gateway);
    assert_eq!(network.ipam.unwrap().ranges[0][0].subnet, "x");
    assert_eq!(network.labels.get("Key").map(String::as_str), Some("v"), "keys of maps stay as they are");
    let name = |text| read(text).unwrap().name;
    assert_eq!(name(r#"{"name": "a", "Name": "b"}"#).as_deref(), Some("b"));
    assert_eq!(name(r#"{"Name": "b", "name": "a"}"#).as_deref(), Some("a"));
    assert_eq!(name(r#"{"Name": "b", "name": "a", "Name": "c"}"#).as_deref(), Some("c"));
    assert_eq!(name(r#"{"name": "a", "Name": null}"#).as_deref(), Some("a"));
    assert_eq!(name(r#"{"name": "a", "Name": ""}"#), None);
}

#[test]
fn c21_unknown_keys_are_ignored() {
    let network = read(r#"{"capabilities": {"ips": true}, "x": [[[]]], "name": "a"}"#).unwrap();
    assert_eq!(network, Network { name: Some("a".into()), ..Network::default() });
}

#[test]
fn null_and_the_empty_string_are_absent() {
    let text = r#"{"name": "", "isGateway": null, "mtu": "", "ipam": {"gateway": "", "ranges": null}, "mode": ""}"#;
    assert_eq!(read(text).unwrap(), Network { ipam: Some(Ipam::default()), ..Network::default() });
}

#[test]
fn faults_are_told_with_their_path() {
    let cases = [
        (
            r#"{"ipam": {"ranges": [[{"subnet": "a"}, {"subnet": 5}]]}}"#,
            "ipam.ranges[0][1].subnet: invalid type: integer `5`, expected a string",
        ),
        (r#"{"ipam": {"ranges": [[{"subnet": ""}]]}}"#, "ipam.ranges[0][0]: missing field `subnet`"),
        (r#"{"ipam": {"ranges": [{"subnet": "a"}]}}"#, "ipam.ranges[0]: invalid type: map, expected a sequence"),
        (r#"{"ipam": []}"#, "ipam: invalid type: list, expected an object"),
        (r#"{"ipam": "osvc-ipam"}"#, "ipam: invalid type: string \"osvc-ipam\", expected an object"),
        (r#"{"mtu": "1500"}"#, "mtu: invalid type: string \"1500\", expected u32"),
        (r#"{"mtu": -1}"#, "mtu: invalid value: integer `-1`, expected u32"),
        (r#"{"mtu": 1.5}"#, "mtu: invalid type: floating point `1.5`, expected u32"),
        (r#"{"isGateway": "true"}"#, "isGateway: invalid type: string \"true\", expected a boolean"),
        (r#"{"mode": "never"}"#, "mode: unknown variant `never`, expected `auto`"),
        (r#"{"mode": 5}"#, "mode: invalid type: integer `5`, expected a string"),
        (r#"{"labels": {"a.b": 1}}"#, "labels[\"a.b\"]: invalid type: integer `1`, expected a string"),
        (r#"{"ipam": {"gateway": "banana"}}"#, "ipam.gateway: invalid IP address syntax"),
        (r#"[]"#, "invalid type: list, expected an object"),
    ];
    for (text, expected) in cases {
        assert_eq!(read(text).unwrap_err(), expected, "{text}");
    }
}

#[test]
fn values_pass_through_as_they_are() {
    let text = r#"{"b":1,"a":[null,"",true,-5,1.5,18446744073709551615,{"z":{},"y":[]}],"é":"\u0000x"}"#;
    let value = parse(text.as_bytes()).unwrap();
    assert_eq!(value.to_string(), text, "key order included");
    assert_eq!(from_value::<Value>(&value).unwrap(), value);
}

#[test]
fn nesting_is_limited() {
    let nested = |levels: usize| [vec![b'['; levels], vec![b']'; levels]].concat();
    assert!(parse(&nested(127)).is_ok());
    assert!(parse(&nested(128)).unwrap_err().to_string().starts_with("recursion limit exceeded"));
    assert!(parse(&nested(1_000_000)).is_err());
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        if let Ok(value) = parse(&bytes) {
            let _ = from_value::<Network>(&value);
        }
    }

    #[test]
    fn parsing_agrees_with_serde_json(text in "[\\[\\]{}\",:0-9a-c .eE+-]{0,40}") {
        let ours = parse(text.as_bytes()).map_err(|error| error.to_string());
        let theirs = serde_json::from_str::<Value>(&text).map_err(|error| error.to_string());
        proptest::prop_assert_eq!(ours, theirs);
    }
}
