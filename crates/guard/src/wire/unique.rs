//! Keys that stand twice.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::Fault;
use super::message::Key;

/// Whether some object in `text`, however deep, has a key twice.
pub fn has_duplicates(text: &str) -> Result<bool, Fault> {
    struct Unique;
    impl<'de> Deserialize<'de> for Unique {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Self)
        }
    }
    const TWICE: &str = "a key stands twice";
    impl<'de> Visitor<'de> for Unique {
        type Value = Self;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("JSON")
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
            Ok(self)
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
            Ok(self)
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
            Ok(self)
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
            Ok(self)
        }
        fn visit_str<E>(self, _: &str) -> Result<Self, E> {
            Ok(self)
        }
        fn visit_unit<E>(self) -> Result<Self, E> {
            Ok(self)
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
            while seq.next_element::<Self>()?.is_some() {}
            Ok(self)
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
            let mut seen = rustc_hash::FxHashSet::default();
            while let Some(Key(key)) = map.next_key()? {
                if !seen.insert(key) {
                    return Err(serde::de::Error::custom(TWICE));
                }
                map.next_value::<Self>()?;
            }
            Ok(self)
        }
    }
    match serde_json::from_str::<Unique>(text) {
        Ok(_) => Ok(false),
        Err(error) if error.to_string().starts_with(TWICE) => Ok(true),
        Err(error) => Err(Fault::Syntax(error.to_string())),
    }
}
