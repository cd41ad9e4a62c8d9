//! Host ports: translated by maps in tables of our own, remembered in a store, one holder for each.
//!
//! The ports of an attachment are one [`record`] in a [`store`]; the kernel's maps are what the records of this boot and
//! network namespace say, of several of one container the oldest. A port belongs to a container: another one is refused
//! while the holder lives ([`claims`]). Publishing is one small transaction ([`settle`]), whatever else is published; the
//! tables themselves ([`ruleset`]) are made once, and again when somebody took them away ([`restore`](restore()),
//! [`mend`]).

pub mod area;
mod check;
pub mod claims;
pub mod config;
pub mod error;
pub mod keys;
mod list;
pub mod localhost;
pub mod mapping;
mod place;
mod publish;
pub mod record;
mod recover;
mod restore;
pub mod ruleset;
pub mod sets;
pub mod settle;
pub mod store;

pub use check::check;
pub use claims::Judge;
pub use error::Error;
pub use list::{Port, State, list};
pub use mapping::{Mapping, Protocol};
pub use publish::{publish, stand_back, sweep, vacate, withdraw};
pub use record::{Record, Slot};
pub use restore::{Mended, Reconfigured, mend, reconfigure, reopen, restore};
pub use store::{Store, networks, writable};
