//! Lists and maps: modules for serde's `with`.
//!
//! `null` is an empty one; a key comes once.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;

use ::buffa::map_codec::MapStorage;
use ::buffa::{EnumValue, Enumeration};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::value::Element;
use super::well_known::{OpenNullValue, twice};

/// The most elements that memory is set aside for before they are there.
const EXPECTED_MAX: usize = 4096;

/// A map's key, which in JSON is a name.
pub trait Key: Sized {
    /// The key that `name` writes, in the one way in which it is written.
    fn from_name(name: &str) -> Option<Self>;
}

impl Key for String {
    fn from_name(name: &str) -> Option<Self> {
        Some(name.to_owned())
    }
}

impl Key for bool {
    fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

macro_rules! integer_keys {
    ($($type:ty)*) => {$(
        impl Key for $type {
            fn from_name(name: &str) -> Option<Self> {
                let digits = name.strip_prefix('-').unwrap_or(name);
                let is_written_so = !digits.starts_with(['0', '+']) || name == "0";
                name.parse().ok().filter(|_| is_written_so)
            }
        }
    )*};
}

integer_keys!(i32 u32 i64 u64);

struct List<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + 'static> Visitor<'de> for List<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or null")
    }

    fn visit_unit<E: Error>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let expected = elements.size_hint().unwrap_or(0).min(EXPECTED_MAX);
        let mut read = Vec::with_capacity(expected);
        while let Some(element) = elements.next_element_seed(Element::default())? {
            read.push(element);
        }
        Ok(read)
    }
}

/// Reads a map.
fn map<'de, C, D>(from: D) -> Result<C, D::Error>
where
    C: MapStorage + Default,
    C::Key: Key,
    C::Value: Deserialize<'de> + 'static,
    D: Deserializer<'de>,
{
    from.deserialize_any(Map(PhantomData))
}

struct Map<C>(PhantomData<C>);

impl<'de, C> Visitor<'de> for Map<C>
where
    C: MapStorage + Default,
    C::Key: Key,
    C::Value: Deserialize<'de> + 'static,
{
    type Value = C;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or null")
    }

    fn visit_unit<E: Error>(self) -> Result<C, E> {
        Ok(C::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<C, A::Error> {
        let mut read = C::default();
        while let Some(name) = entries.next_key::<String>()? {
            let Some(key) = C::Key::from_name(&name) else {
                return Err(A::Error::custom(format!("{name:?} is no key of this map")));
            };
            let before = read.storage_len();
            read.storage_insert(key, entries.next_value_seed(Element::default())?);
            if read.storage_len() == before {
                return Err(twice(&name));
            }
        }
        Ok(read)
    }
}

/// The modules of maps, all read in one way.
macro_rules! maps {
    ($($(#[$about:meta])* $module:ident, $serialize:path;)*) => {$(
        $(#[$about])*
        pub mod $module {
            use super::*;

            pub use $serialize;

            /// Reads one.
            ///
            /// # Errors
            /// It is no object, has a key twice, or a key or a value that is not
            /// of its type.
            pub fn deserialize<'de, C, D>(from: D) -> Result<C, D::Error>
            where
                C: MapStorage + Default,
                C::Key: Key,
                C::Value: Deserialize<'de> + 'static,
                D: Deserializer<'de>,
            {
                map(from)
            }
        }
    )*};
}

maps! {
    /// A map whose values have a JSON form of their own.
    proto_map, ::buffa::json_helpers::proto_map::serialize;
    /// A map whose keys are no strings.
    string_key_map, ::buffa::json_helpers::string_key_map::serialize;
    /// A map of enums.
    map_enum, super::serialize_enums::serialize;
    /// A map of enums of proto2.
    map_closed_enum, ::buffa::json_helpers::map_closed_enum::serialize;
}

/// A list.
pub mod proto_seq {
    use super::*;

    pub use ::buffa::json_helpers::proto_seq::serialize;

    /// Reads one.
    ///
    /// # Errors
    /// It is no list, or has an element that is not of its type.
    pub fn deserialize<'de, T, C, D>(from: D) -> Result<C, D::Error>
    where
        T: Deserialize<'de> + 'static,
        C: From<Vec<T>>,
        D: Deserializer<'de>,
    {
        from.deserialize_any(List(PhantomData)).map(C::from)
    }
}

/// A list of enums of proto2.
pub mod repeated_closed_enum {
    pub use ::buffa::json_helpers::repeated_closed_enum::serialize;

    pub use super::proto_seq::deserialize;
}

/// A list of enums; of `NullValue`, `null` is the one.
pub mod repeated_enum {
    use super::*;

    pub use super::proto_seq::deserialize;

    /// Writes one.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<E, S>(list: &[EnumValue<E>], to: S) -> Result<S::Ok, S::Error>
    where
        E: Enumeration + 'static,
        S: Serializer,
    {
        if is_null::<EnumValue<E>>() {
            return to.collect_seq(list.iter().map(|_| ()));
        }
        list.serialize(to)
    }
}

mod serialize_enums {
    use super::*;

    /// Writes a map of enums; of `NullValue`, `null` is the one.
    ///
    /// # Errors
    /// The serializer's.
    pub fn serialize<C, S>(map: &C, to: S) -> Result<S::Ok, S::Error>
    where
        C: MapStorage,
        C::Key: Serialize,
        C::Value: Serialize + 'static,
        S: Serializer,
    {
        if is_null::<C::Value>() {
            return to.collect_map(map.storage_iter().map(|(key, _)| (key, ())));
        }
        to.collect_map(map.storage_iter())
    }
}

fn is_null<T: 'static>() -> bool {
    TypeId::of::<T>() == TypeId::of::<OpenNullValue>()
}
