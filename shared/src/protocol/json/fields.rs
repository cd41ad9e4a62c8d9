//! The keys that a type reads: what a configuration may hold cannot differ from what is looked for in it.

use std::cell::Cell;

use serde::de::{Deserialize, Deserializer, Error as _, Visitor};
use serde::forward_to_deserialize_any;

use super::JsonError;

/// The keys of a type that is read from an object; none for any other type.
pub fn fields<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let known = Cell::new(&[][..]);
    // It is asked what it wants, and given nothing.
    let _ = T::deserialize(Asked(&known));
    known.get()
}

struct Asked<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Asked<'_> {
    type Error = JsonError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, JsonError> {
        self.0.set(fields);
        Err(JsonError::custom("nothing is read"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, JsonError> {
        Err(JsonError::custom("no object"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::fields;
    use crate::ipam::config::low::Route;

    #[test]
    fn the_keys_are_those_that_are_read() {
        assert_eq!(fields::<Route>(), ["dst", "gw", "mtu", "advmss", "priority", "table", "scope"]);
        assert_eq!(fields::<crate::network::config::LowTrunk>(), ["id", "minID", "maxID"]);
        assert!(fields::<crate::network::config::Low>().contains(&"hairpinMode"));
        assert!(fields::<u8>().is_empty());
    }
}
