use proptest::prelude::*;

/// What is done to the list, or to a node. Numbers are taken modulo what there is.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// A name is put into the list.
    Insert {
        name: u8,
        place: u8,
        fixed: Option<u8>,
    },
    /// A node is taken out of it.
    Remove {
        place: u8,
    },
    Swap {
        a: u8,
        b: u8,
    },
    /// `subnet`: some segment, or the node's own, or none.
    Fix {
        place: u8,
        slot: u8,
    },
    FixAsItIs {
        place: u8,
    },
    Unfix {
        place: u8,
    },
    /// The node is gone for good.
    Retire {
        place: u8,
    },
    /// A node sees a version of the list: the newest, or one of before.
    See {
        node: u8,
        version: u8,
    },
    /// The same, by the name of another node of that list: the host name is wrong.
    Mistake {
        node: u8,
        version: u8,
        name: u8,
    },
    /// A node of the list, of that version, is set up for the first time.
    Join {
        node: u8,
        version: u8,
    },
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let fixed = prop::option::weighted(0.2, any::<u8>());
    let any2 = || (any::<u8>(), any::<u8>());
    prop_oneof![
        4 => (any::<u8>(), any::<u8>(), fixed).prop_map(|(name, place, fixed)| Step::Insert { name, place, fixed }),
        2 => any::<u8>().prop_map(|place| Step::Remove { place }),
        1 => any2().prop_map(|(a, b)| Step::Swap { a, b }),
        1 => any2().prop_map(|(place, slot)| Step::Fix { place, slot }),
        3 => any::<u8>().prop_map(|place| Step::FixAsItIs { place }),
        1 => any::<u8>().prop_map(|place| Step::Unfix { place }),
        2 => any::<u8>().prop_map(|place| Step::Retire { place }),
        8 => any2().prop_map(|(node, version)| Step::See { node, version }),
        3 => (any::<u8>(), any::<u8>(), any::<u8>())
            .prop_map(|(node, version, name)| Step::Mistake { node, version, name }),
        6 => any2().prop_map(|(node, version)| Step::Join { node, version }),
    ]
}
