use super::*;
use crate::Code;

fn low(json: &str) -> Low {
    serde_json::from_str(json).unwrap()
}

/// The VLANs of a port on a bridge whose default one is 1: `100n 1u 200t`.
fn shown(json: &str) -> String {
    let vlans = Vlans::new(&low(json)).unwrap().of_port(1);
    let letter = |how: &PortVlan| match how {
        PortVlan::Native => "n",
        PortVlan::Untagged => "u",
        PortVlan::Tagged => "t",
    };
    vlans.iter().map(|(id, how)| format!("{id}{}", letter(how))).collect::<Vec<_>>().join(" ")
}

#[test]
fn b5_6_the_vlans_of_a_port() {
    for (config, vlans) in [
        (r#"{}"#, "1n"),
        (r#"{"preserveDefaultVlan": true}"#, "1n"),
        (r#"{"vlan": 100}"#, "100n"),
        (r#"{"vlan": 1}"#, "1n"),
        (r#"{"vlan": 100, "preserveDefaultVlan": true}"#, "1u 100n"),
        (r#"{"vlanTrunk": [{"id": 101}, {"minID": 200, "maxID": 202}]}"#, "1n 101t 200t 201t 202t"),
        (r#"{"vlanTrunk": [{"id": 101, "minID": 103, "maxID": 103}], "preserveDefaultVlan": true}"#, "1n 101t 103t"),
        (r#"{"vlan": 100, "vlanTrunk": [{"id": 101}]}"#, "100n 101t"),
        (r#"{"vlan": 100, "vlanTrunk": [{"id": 100}, {"id": 1}]}"#, "1t 100n"),
        (r#"{"vlan": 100, "vlanTrunk": [{"id": 101}], "preserveDefaultVlan": true}"#, "1u 100n 101t"),
    ] {
        assert_eq!(shown(config), vlans, "{config}");
    }
    assert!(Vlans::default().of_port(0).is_empty(), "a bridge that puts new ports into none");
}

#[test]
fn br25_spans_ids_and_both() {
    let trunk = |json: &str| Vlans::new(&low(json)).unwrap().trunk.into_iter().collect::<Vec<_>>();
    assert_eq!(trunk(r#"{"vlanTrunk": []}"#), [0; 0]);
    assert_eq!(trunk(r#"{"vlanTrunk": [{}]}"#), [0; 0]);
    assert_eq!(trunk(r#"{"vlanTrunk": [{"minID": 10, "maxID": 12}]}"#), [10, 11, 12]);
    assert_eq!(
        trunk(r#"{"vlanTrunk": [{"id": 101}, {"id": 101}, {"minID": 1, "maxID": 2, "id": 4094}]}"#),
        [1, 2, 101, 4094]
    );
}

/// BR24, and the nine of BR25.
#[test]
fn br24_br25_a_wrong_id_is_named_with_its_entry() {
    for (config, named) in [
        (r#"{"vlan": -100}"#, "cannot honour vlan -100: invalid VLAN ID -100 (must be between 0 and 4094)"),
        (r#"{"vlan": 5000}"#, "cannot honour vlan 5000: invalid VLAN ID 5000 (must be between 0 and 4094)"),
        (r#"{"vlan": 4095}"#, "cannot honour vlan 4095: invalid VLAN ID 4095 (must be between 0 and 4094)"),
        (
            r#"{"vlanTrunk": [{"minID": 10}]}"#,
            r#"{"minID":10}: minID and maxID should be configured simultaneously, maxID is missing"#,
        ),
        (
            r#"{"vlanTrunk": [{"maxID": 10}]}"#,
            r#"{"maxID":10}: minID and maxID should be configured simultaneously, minID is missing"#,
        ),
        (r#"{"vlanTrunk": [{"minID": 10, "maxID": 5}]}"#, "minID is greater than maxID in trunk parameter"),
        (r#"{"vlanTrunk": [{"minID": 0, "maxID": 5}]}"#, "incorrect trunk minID parameter"),
        (r#"{"vlanTrunk": [{"minID": 4095, "maxID": 4096}]}"#, "incorrect trunk minID parameter"),
        (r#"{"vlanTrunk": [{"minID": 5, "maxID": 4095}]}"#, "incorrect trunk maxID parameter"),
        (r#"{"vlanTrunk": [{"minID": -1, "maxID": 5}]}"#, "incorrect trunk minID parameter"),
        (r#"{"vlanTrunk": [{"id": 4095}]}"#, "incorrect trunk id parameter"),
        (r#"{"vlanTrunk": [{"id": 101}, {"id": 0}]}"#, r#"vlanTrunk {"id":0}: incorrect trunk id parameter"#),
    ] {
        let error = Vlans::new(&low(config)).unwrap_err();
        assert_eq!(error.code(), Code::UnsupportedField, "{config}");
        assert!(error.to_string().contains(named), "{config}: {error}");
    }
}
