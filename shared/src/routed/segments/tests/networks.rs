use super::*;

#[test]
fn dual_stack_and_large_networks() {
    let both = config_of("b", "a b=fd77:0:0:9::/64 c", json!(["10.11.0.0/16", "fd77::/48"]), json!([22, 64]));
    let plan = Plan::new(&both, None).unwrap();
    assert_eq!(plan.here(), ["10.11.4.0/22".parse().unwrap(), "fd77:0:0:9::/64".parse().unwrap()]);
    assert_eq!(plan.segment("c", true), Some("fd77:0:0:1::/64".parse().unwrap()));
    let mut b = Seen::new("b", "a b c");
    let plan = Plan::new(&both, Some(&b.0)).unwrap();
    assert_eq!((plan.here().len(), plan.refused()), (2, &[][..]), "a second family is planned when it comes");
    b.0 = plan.record().clone();
    assert!(!Plan::new(&config("b", "a b c"), Some(&b.0)).unwrap().is_new(), "and remembered when it goes");
    let wide = config_of("c", "a b c", json!("8000::/1"), json!(126));
    assert_eq!(Plan::new(&wide, None).unwrap().here(), ["8000::8/126".parse().unwrap()]);
}

#[test]
fn an_edited_network_moves_nobody_and_another_one_is_new() {
    let recorded = Seen::new("a", "a b c").0;
    let plan = |network: &str, mask: u8, record| {
        Plan::new(&config_of("a", "a b c d", json!(network), json!(mask)), Some(record)).unwrap()
    };
    let larger = plan("10.10.0.0/15", 22, &recorded);
    assert_eq!(short(&larger), "a0 b1 c2 d3");
    assert_eq!((larger.networks()[0].network.to_string().as_str(), larger.refused().len()), ("10.10.0.0/15", 3));
    let smaller = plan("10.11.0.0/17", 22, &recorded);
    assert_eq!((short(&smaller).as_str(), smaller.refused()), ("a0 b1 c2 d3", &[][..]));
    let too_small = plan("10.11.0.0/21", 22, &recorded);
    assert_eq!((short(&too_small).as_str(), too_small.refused().len()), ("a0 b1 c2", 2), "and none for d");
    assert_eq!(too_small.networks()[0].network.to_string(), "10.11.0.0/16");
    assert_eq!(
        refusals(&too_small)[0],
        "`network` 10.11.0.0/21 leaves out 10.11.8.0/22, which node c has of 10.11.0.0/16: set `network` to \
         10.11.0.0/16, or to one that does not overlap it"
    );
    let elsewhere = plan("10.12.0.0/16", 22, &recorded);
    assert_eq!((elsewhere.here()[0].to_string().as_str(), elsewhere.refused()), ("10.12.0.0/22", &[][..]));
    let back = plan("10.11.0.0/16", 22, elsewhere.record());
    assert_eq!((short(&back).as_str(), back.refused()), ("a0 b1 c2 d3", &[][..]));
    let joined = plan("10.8.0.0/13", 22, back.record());
    assert_eq!((short(&joined).as_str(), joined.refused().len()), ("a0 b1 c2 d3", 1));
    assert!(refusals(&joined)[0].starts_with("`network` 10.8.0.0/13 joins 10.11.0.0/16 and 10.12.0.0/16"));
    assert!(joined.refusal_of("a").is_some());
    let other_size = plan("10.11.0.0/16", 24, &recorded);
    assert_eq!((short(&other_size).as_str(), other_size.refused().len()), ("a0 b1 c2", 4));
}
