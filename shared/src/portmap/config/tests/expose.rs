use super::*;

fn expose(value: Value) -> Result<PortmapConfig, ConfigError> {
    config(&json!({"args": {"cni": {"osvc.expose": value}}}))
}

#[test]
fn both_forms_say_the_same() {
    for (text, expected) in [
        ("80:8001/tcp", "8001->80/tcp"),
        ("80/tcp:8001", "8001->80/tcp"),
        ("53/UDP:5353", "5353->53/udp"),
        ("9:65535/sctp", "65535->9/sctp"),
        ("80/tcp4:8001", "0.0.0.0:8001->80/tcp"),
        ("80:8001/udp6", "[::]:8001->80/udp"),
    ] {
        let config = expose(text.into()).unwrap();
        assert_eq!(shown(&config), [expected]);
        assert_eq!(config.entries, [format!("osvc.expose[0] ({text:?})")]);
    }
}

#[test]
fn strings_and_lists_are_words() {
    let expected = ["8001->80/tcp", "8002->81/udp"];
    for value in [
        json!("80:8001/tcp 443/tcp\n\t81/udp:8002"),
        json!(["80:8001/tcp", "443/tcp", "81/udp:8002"]),
        json!([" 80:8001/tcp ", null, "", "443/tcp6 81/udp:8002", "80/tcp:8001"]),
    ] {
        let config = expose(value).unwrap();
        assert_eq!(shown(&config), expected);
        assert_eq!(config.entries[1], "osvc.expose[2] (\"81/udp:8002\")");
    }
    assert!(expose("443/tcp".into()).unwrap().mappings.is_empty(), "no host port: nothing is published");
    let other_case = config(&json!({"ARGS": {"cni": {"OSVC.Expose": "80:8001/tcp"}}})).unwrap();
    assert_eq!(shown(&other_case), ["8001->80/tcp"]);
}

#[test]
fn both_places_are_joined() {
    let join = |text: &str| {
        config(&json!({
            "runtimeConfig": {"portMappings": [{"hostPort": 8080, "containerPort": 80}]},
            "args": {"cni": {"osvc.expose": text}}
        }))
    };
    assert_eq!(shown(&join("80/tcp:8080 81/tcp:8081").unwrap()), ["8080->80/tcp", "8081->81/tcp"]);
    let expected = "osvc.expose[1] (\"82:8080/tcp\"): it publishes the same host port as portMappings[0] (8080->80/tcp) \
                    for another port of the container: remove one of them";
    assert_eq!(refused(join("443/tcp 82:8080/tcp")), (Code::InvalidConfig, expected.to_owned()));
}

#[test]
fn faults_are_named_with_the_word() {
    let (host, container) = ("Invalid host port number: ", "Invalid container port number: ");
    let (form, protocol) = ("the forms are ", "the protocol must be ");
    for (word, expected) in [
        ("80:x/tcp", host),
        ("80:0/tcp", host),
        ("80:65536/tcp", host),
        ("80:+8001/tcp", host),
        ("80:-1/tcp", host),
        ("80:/tcp", host),
        ("80/tcp:", host),
        ("80/tcp:80/tcp", host),
        ("80:1:2/tcp", host),
        ("80/tcp:1:2", host),
        ("80:８０/tcp", host),
        (":8001/tcp", container),
        ("/tcp:8001", container),
        ("0:8001/tcp", container),
        ("70000/tcp", container),
        ("1.5:8001/tcp", container),
        ("tcp/80:8001", container),
        ("80:8001/icmp", protocol),
        ("80/:8001", protocol),
        ("80/tcp46:8001", protocol),
        ("443/https", protocol),
        ("80:8001/tcp;flush", protocol),
        ("80", form),
        ("80:8001", form),
        ("80:8001/tcp:8002", form),
        ("}", form),
    ] {
        let (code, text) = refused(expose(json!(["1:1/tcp", word])));
        assert_eq!(code, Code::InvalidConfig);
        let start = format!("osvc.expose[1] ({}): {expected}", json!(word));
        assert!(text.starts_with(&start), "{text}");
    }
}
