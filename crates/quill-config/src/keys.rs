//! The keys that a type has, found by asking it what it would read.

use std::cell::Cell;

use serde::de::value::Error;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, Visitor,
};

/// Settings do not nest deeper; a type that holds itself would for ever.
const DEPTH_MAX: usize = 8;
/// Stands for a name that whoever writes the settings chooses.
const CHOSEN: &str = "NAME";

/// A key that settings may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    name: String,
    is_within_list: bool,
}

impl Key {
    /// The key with those around it: `limits.receive_bytes_max`, `rate_limits[].rate`;
    /// `NAME` stands for a name that is chosen.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The environment's variable that sets it; `None` for what is within a list, or
    /// under a name that is chosen: those are set with the whole list.
    #[must_use]
    pub fn variable(&self, prefix: &str) -> Option<String> {
        let name = self.name.replace('.', "__").to_ascii_uppercase();
        (!self.is_within_list).then(|| format!("{prefix}{name}"))
    }
}

/// The keys of a type, in its own order.
#[must_use]
pub fn keys<T: DeserializeOwned>() -> Vec<Key> {
    let mut keys = Vec::new();
    explore::<T>(&mut Vec::new(), &mut keys);
    keys
}

#[derive(Clone, Copy)]
enum Step {
    Field(&'static str),
    Item,
    Chosen,
}

/// What a type would read at a place.
#[derive(Clone, Copy)]
enum Shape {
    Fields(&'static [&'static str]),
    List,
    Chosen,
    Value,
}

fn explore<T: DeserializeOwned>(path: &mut Vec<Step>, keys: &mut Vec<Key>) {
    let shape = Cell::new(Shape::Value);
    let probe = Probe {
        path,
        shape: &shape,
    };
    // It never gets a value, so that there is nothing but the error that ends it.
    let _ = T::deserialize(probe);
    let mut inner = |step| {
        if path.len() < DEPTH_MAX {
            path.push(step);
            explore::<T>(path, keys);
            path.pop();
        }
    };
    match shape.get() {
        Shape::Fields(fields) => fields.iter().for_each(|field| inner(Step::Field(field))),
        Shape::List => inner(Step::Item),
        Shape::Chosen => inner(Step::Chosen),
        Shape::Value => keys.push(key(path)),
    }
}

fn key(path: &[Step]) -> Key {
    // A list of plain values is one key.
    let plain = matches!(path.last(), Some(Step::Item));
    let path = &path[..path.len() - usize::from(plain)];
    let mut name = String::new();
    for step in path {
        let (dot, step) = match step {
            Step::Field(field) => (".", *field),
            Step::Item => ("", "[]"),
            Step::Chosen => (".", CHOSEN),
        };
        if !name.is_empty() {
            name.push_str(dot);
        }
        name.push_str(step);
    }
    let is_within_list = path.iter().any(|step| !matches!(step, Step::Field(_)));
    Key {
        name,
        is_within_list,
    }
}

/// Goes to one place, notes what is read there, and ends.
struct Probe<'a> {
    path: &'a [Step],
    shape: &'a Cell<Shape>,
}

impl Probe<'_> {
    fn arrived<T>(&self, shape: Shape) -> Result<T, Error> {
        self.shape.set(shape);
        Err(Error::custom("this is the place"))
    }

    /// The next step, and the probe behind it.
    fn next(&self) -> Option<(Step, Probe<'_>)> {
        let (step, path) = self.path.split_first()?;
        let shape = self.shape;
        Some((*step, Probe { path, shape }))
    }
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        self.arrived(Shape::Value)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.next() {
            Some((_, inner)) => visitor.visit_seq(One(Some(("", inner)))),
            None => self.arrived(Shape::List),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.next() {
            Some((_, inner)) => visitor.visit_map(One(Some((CHOSEN, inner)))),
            None => self.arrived(Shape::Chosen),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.next() {
            Some((Step::Field(field), inner)) => visitor.visit_map(One(Some((field, inner)))),
            _ => self.arrived(Shape::Fields(fields)),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct tuple tuple_struct enum identifier ignored_any
    }
}

/// The one entry, or item, on the way.
struct One<'a>(Option<(&'static str, Probe<'a>)>);

impl One<'_> {
    fn take<'de, S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        match self.0.take() {
            Some((_, probe)) => seed.deserialize(probe),
            None => Err(Error::custom("there is one only")),
        }
    }
}

impl<'de> SeqAccess<'de> for One<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        self.take(seed).map(Some)
    }
}

impl<'de> MapAccess<'de> for One<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        let key = self.0.as_ref().map(|(key, _)| *key);
        key.map(|key| seed.deserialize(key.into_deserializer()))
            .transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        self.take(seed)
    }
}
