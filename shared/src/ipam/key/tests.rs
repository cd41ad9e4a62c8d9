use serde_json::json;

use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn derive_all(
    args: &str,
    cni: Option<Value>,
    id: &str,
    template: Option<&str>,
) -> (Key, Option<String>, Option<String>) {
    let template = template.map(|text| text.parse::<KeyTemplate>().unwrap());
    Key::derive(&CniArgs::parse(args), cni.as_ref(), &id.parse().unwrap(), template.as_ref())
}

fn derive(args: &str, id: &str) -> (KeySource, String) {
    let (key, ..) = derive_all(args, None, id, None);
    (key.source, key.text)
}

fn key(source: KeySource, text: &str) -> (KeySource, String) {
    (source, text.to_owned())
}

#[test]
fn each_runtime_of_the_table_has_its_key() {
    // podman: container, or the pod of an infra container; a named key by its environment.
    assert_eq!(derive("IgnoreUnknown=1;K8S_POD_NAME=web", ID), key(KeySource::Podman, "web"));
    assert_eq!(derive("IgnoreUnknown=1;K8S_POD_NAME=web;OSVC_KEY=x", ID), key(KeySource::Osvc, "x"));
    // CRI, CRI-O, multus (which repeats).
    let cri = "K8S_POD_NAMESPACE=prod;K8S_POD_NAME=db-0;K8S_POD_INFRA_CONTAINER_ID=x;K8S_POD_UID=y;IgnoreUnknown=1";
    assert_eq!(derive(cri, ID), key(KeySource::K8s, "prod/db-0"));
    assert_eq!(derive(&format!("{cri};{cri}"), ID), key(KeySource::K8s, "prod/db-0"));
    // ctr and cnitool: nothing but the id.
    assert_eq!(derive("", "default-web"), key(KeySource::Container, "default-web"));
    assert_eq!(derive("IgnoreUnknown=1", "cnitool-77383ca0a"), key(KeySource::Container, "cnitool-77383ca0a"));
    // Nomad.
    let nomad = "IgnoreUnknown=true;NOMAD_REGION=global;NOMAD_NAMESPACE=default;NOMAD_JOB_ID=web;NOMAD_GROUP_NAME=g;\
                 NOMAD_ALLOC_ID=a";
    assert_eq!(derive(nomad, ID), key(KeySource::Nomad, "default/web/g"));
    assert_eq!(derive("NOMAD_JOB_ID=web;NOMAD_GROUP_NAME=g", "a1"), key(KeySource::Container, "a1"));
    // OpenSVC.
    assert_eq!(
        derive("OSVC_OBJECT=test/svc/web;OSVC_RID=ip#0;K8S_POD_NAME=p", "4242"),
        key(KeySource::Osvc, "test/svc/web!ip#0")
    );
    assert_eq!(derive("OSVC_OBJECT=test/svc/web", "4242"), key(KeySource::Container, "4242"));
}

#[test]
fn nerdctl_host_names_made_of_the_id_are_no_keys() {
    let id = format!("default-{ID}");
    let made = format!("NERDCTL_CNI_DHCP_HOSTNAME={}", &ID[..12]);
    assert_eq!(derive(&made, &id), key(KeySource::Container, &id));
    assert_eq!(derive(&made, ID), key(KeySource::Container, ID));
    assert_eq!(derive("NERDCTL_CNI_DHCP_HOSTNAME=web", &id), key(KeySource::Nerdctl, "web"));
    assert_eq!(derive("NERDCTL_CNI_DHCP_HOSTNAME=", &id), key(KeySource::Container, &id));
    // The containerd namespace itself, and the whole id.
    assert_eq!(derive("NERDCTL_CNI_DHCP_HOSTNAME=default", &id), key(KeySource::Container, &id));
    assert_eq!(derive(&format!("NERDCTL_CNI_DHCP_HOSTNAME={id}"), &id), key(KeySource::Container, &id));
}

#[test]
fn the_first_that_is_present_counts() {
    let args = [
        "OSVC_KEY=explicit",
        "OSVC_OBJECT=o",
        "OSVC_RID=r",
        "K8S_POD_NAMESPACE=ns",
        "K8S_POD_NAME=pod",
        "NOMAD_NAMESPACE=ns",
        "NOMAD_JOB_ID=job",
        "NOMAD_GROUP_NAME=group",
        "NERDCTL_CNI_DHCP_HOSTNAME=host",
    ];
    let cni = json!({"osvc.key": "json"});
    let (first, ..) = derive_all(&args.join(";"), Some(cni), "c", None);
    assert_eq!((first.source, first.text), key(KeySource::Osvc, "json"));
    for (gone, expected) in [
        (0, key(KeySource::Osvc, "explicit")),
        (1, key(KeySource::Osvc, "o!r")),
        (2, key(KeySource::K8s, "ns/pod")),
        (4, key(KeySource::Podman, "pod")),
        (5, key(KeySource::Nomad, "ns/job/group")),
        (6, key(KeySource::Nerdctl, "host")),
        (9, key(KeySource::Container, "c")),
    ] {
        assert_eq!(derive(&args[gone..].join(";"), "c"), expected);
    }
}

#[test]
fn object_and_rid_come_with_the_key() {
    let pair = |args: &str| {
        let (_, object, rid) = derive_all(args, None, "c", None);
        (object, rid)
    };
    let both = (Some("test/svc/web".to_owned()), Some("ip#0".to_owned()));
    assert_eq!(pair("OSVC_OBJECT=test/svc/web;OSVC_RID=ip#0"), both);
    assert_eq!(pair("OSVC_KEY=test/svc/web!ip#0"), both);
    assert_eq!(pair("OSVC_KEY=other;OSVC_OBJECT=test/svc/web;OSVC_RID=ip#0"), both);
    for none in ["OSVC_KEY=plain", "OSVC_KEY=!ip#0", "OSVC_KEY=web!", "K8S_POD_NAME=a!b"] {
        assert_eq!(pair(none), (None, None), "{none}");
    }
}

#[test]
fn odd_values_of_the_json_key() {
    let text = |value: Value| derive_all("", Some(json!({"osvc.key": value})), "c", None).0.text;
    assert_eq!(derive_all("", Some(json!({"OSVC.Key": "a"})), "c", None).0.text, "a", "C22: in any case");
    assert_eq!(text(json!("a b;c=d")), "a b;c=d");
    assert_eq!(text(json!(7)), "7");
    for absent in [json!(""), json!(null), json!([]), json!({})] {
        assert_eq!(text(absent), "c");
    }
    assert_eq!(derive_all("", Some(json!([])), "c", None).0.text, "c");
}

#[test]
fn a_template_overrides_the_order_when_all_of_it_is_there() {
    let args = "K8S_POD_NAMESPACE=prod;K8S_POD_NAME=db;OSVC_KEY=k";
    let templated = |template: &str| {
        let (key, ..) = derive_all(args, None, "c1", Some(template));
        (key.source, key.text)
    };
    assert_eq!(templated("${K8S_POD_NAME}.${K8S_POD_NAMESPACE}"), key(KeySource::Template, "db.prod"));
    assert_eq!(templated("$x-${CNI_CONTAINERID}-}"), key(KeySource::Template, "$x-c1-}"));
    assert_eq!(templated("${ABSENT}/${K8S_POD_NAME}"), key(KeySource::Osvc, "k"));
    assert_eq!("a${b".parse::<KeyTemplate>(), Err(TemplateError::Open(1)));
    assert_eq!("a${}".parse::<KeyTemplate>(), Err(TemplateError::Name(String::new())));
    assert_eq!("${a b}".parse::<KeyTemplate>(), Err(TemplateError::Name("a b".into())));
}

#[test]
fn two_sources_never_share_a_key() {
    let keys: Vec<Key> = KeySource::ALL.map(|source| Key { source, text: "default/web/g".into() }).to_vec();
    for (index, one) in keys.iter().enumerate() {
        for other in &keys[index + 1..] {
            assert_ne!(one.digest(0), other.digest(0));
            assert_ne!(one.hash(), other.hash());
        }
    }
    let of = |text: &str| Key { source: KeySource::Osvc, text: text.into() };
    assert_ne!(of("a").digest(11), of("a\u{0}1").digest(1), "an instance holds no NUL");
}

#[test]
fn digest_and_hash_are_part_of_the_format() {
    // printf 'podman\0web\0000' | sha256sum; printf 'podman\0web' | sha256sum
    let key = Key { source: KeySource::Podman, text: "web".into() };
    assert_eq!(hex(&key.digest(0)), "38a79422a98dcf1782107cd4396c8d03e72148419d078a1370ee6cb30c48ac46");
    assert_eq!(hex(&key.digest(10)), "e00cb86c531146d4eb85c46ff94d8a1029bdd15dd51d0ea5c72bed58fe5b756d");
    assert_eq!(key.hash(), "6cac94537b249489772001c834812822");
    assert_eq!(serde_json::to_string(&key).unwrap(), r#"{"source":"podman","text":"web"}"#);
    for source in KeySource::ALL {
        assert_eq!(serde_json::to_value(source).unwrap(), json!(source.name()));
        assert_eq!(KeySource::from_name(source.name()), Some(source));
    }
}

#[test]
fn namespaces() {
    let namespace = |text: &str| Key { source: KeySource::Osvc, text: text.into() }.namespace().to_owned();
    assert_eq!(namespace("prod/svc/web!ip#0"), "prod");
    assert_eq!(namespace("web"), "default");
    assert_eq!(namespace("/web"), "default");
}
