//! The allocator against a model that knows only who should have what.

use std::collections::HashMap;
use std::net::IpAddr;

use proptest::prelude::*;

use super::Error;
use super::world::World;

#[derive(Debug, Clone)]
enum Step {
    Add { key: u8, container: u8 },
    Del { container: u8 },
    Die { container: u8 },
    Reboot,
    Damage { what: u8 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..7u8, 0..9u8).prop_map(|(key, container)| Step::Add { key, container }),
        4 => (0..9u8).prop_map(|container| Step::Del { container }),
        2 => (0..9u8).prop_map(|container| Step::Die { container }),
        1 => Just(Step::Reboot),
        1 => (0..5u8).prop_map(|what| Step::Damage { what }),
    ]
}

/// Who lives where, and whose each address was last.
#[derive(Default)]
struct Model {
    living: HashMap<u8, (u8, IpAddr)>,
    last_key: HashMap<IpAddr, u8>,
    /// What each of two namespaces may hold.
    claim: Option<u64>,
    reboots: u32,
}

impl Model {
    fn is_taken(&self, address: IpAddr, but_for: u8) -> bool {
        self.living.iter().any(|(container, (_, there))| *there == address && *container != but_for)
    }

    /// How many addresses the living of a namespace have.
    fn held(&self, namespace: u8) -> u64 {
        self.living.values().filter(|(key, _)| key % 2 == namespace).count() as u64
    }

    fn add(&mut self, world: &mut World, key: u8, container: u8) -> Result<(), TestCaseError> {
        let own: Vec<IpAddr> = self
            .last_key
            .iter()
            .filter(|(address, last)| **last == key && !self.is_taken(**address, container))
            .map(|(address, _)| *address)
            .collect();
        let id = format!("c{container}");
        let said = world.said.of.remove(&id);
        let added = world.try_add(&format!("n{}/k{key}", key % 2), &id);
        // What was dead under this id is still dead, when nothing came of it.
        if let (Err(_), Some(said)) = (&added, said) {
            world.said.of.insert(id, said);
        }
        match added {
            Ok(addresses) => {
                let address = addresses[0];
                prop_assert!(!self.is_taken(address, container), "{address} is somebody's");
                prop_assert!(own.is_empty() || own.contains(&address), "{address} though the key had {own:?}");
                if let Some((same, before)) = self.living.get(&container)
                    && *same == key
                {
                    prop_assert_eq!(*before, address, "ADD is idempotent");
                }
                self.living.insert(container, (key, address));
                self.last_key.insert(address, key);
            }
            Err(Error::Claim(error)) => {
                prop_assert_eq!((Some(error.held), Some(error.limit)), (self.claim, self.claim), "{}", error);
                prop_assert_eq!(self.held(key % 2), error.held, "refused only if the living have all of it");
            }
            Err(Error::Full { .. }) => {
                let taken: std::collections::HashSet<_> = self.living.values().map(|(_, address)| address).collect();
                prop_assert_eq!(taken.len(), 5, "full only if the living have all five");
                prop_assert!(own.is_empty(), "never full for a key that has an address");
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
        Ok(())
    }

    fn run(&mut self, world: &mut World, step: &Step) -> Result<(), TestCaseError> {
        match *step {
            Step::Add { key, container } => self.add(world, key, container)?,
            Step::Del { container } => {
                world.del(&format!("c{container}"));
                self.living.remove(&container);
            }
            Step::Die { container } => {
                world.die(&format!("c{container}"));
                self.living.remove(&container);
            }
            Step::Reboot => {
                self.reboots += 1;
                world.reboot(&format!("boot {}", self.reboots));
                self.living.clear();
            }
            Step::Damage { what } => {
                let name = ["by-key", "by-attachment", "bitmap", "queue", "by-namespace"][usize::from(what)];
                let _ = std::fs::remove_dir_all(world.path().join(name));
                if name == "queue" {
                    // Found without it, too, but in another order; the folder is made again with the rest.
                    let _ = std::fs::remove_file(world.path().join("index"));
                }
            }
        }
        for namespace in 0..2 {
            prop_assert!(self.claim.is_none_or(|claim| self.held(namespace) <= claim), "more than the claim is held");
        }
        for (container, (_, address)) in &self.living {
            let held = world.held(&format!("c{container}"));
            prop_assert_eq!(held, vec![*address], "c{} keeps what it was given", container);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_two_share_and_every_key_comes_home(
        steps in prop::collection::vec(step(), 1..60),
        claim in prop::option::of(0..4u64),
    ) {
        let mut world = World::new(&["10.0.0.0/29"]);
        let mut model = Model { claim, ..Model::default() };
        world.claims = claim.map(|claim| super::claims::of(&[("*", claim)])).unwrap_or_default();
        for step in &steps {
            model.run(&mut world, step)?;
        }
    }
}
