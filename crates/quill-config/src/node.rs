//! A value of the settings, and where it stands.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// Where a value stands.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A line of the file, from 1; 0 where there is no file.
    Line(u64),
    /// An environment variable.
    Variable(Arc<str>),
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) place: Place,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    /// What a variable holds: a number or a word, as whoever asks for it takes it.
    Raw(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    /// A map without keys, where nothing was said.
    pub(crate) fn empty() -> Self {
        Self {
            value: Value::Map(Vec::new()),
            place: Place::Line(0),
        }
    }

    /// Reads YAML, in which `off` is a word and `no` too (YAML 1.2).
    pub(crate) fn yaml(text: &str) -> Result<Self, serde_saphyr::Error> {
        let options = serde_saphyr::options! { strict_booleans: true };
        serde_saphyr::from_str_with_options(text, options)
    }

    /// Says of a value and all in it that it stands in a variable.
    pub(crate) fn moved_to(mut self, place: &Place) -> Self {
        self.place = place.clone();
        self.value = match self.value {
            Value::List(items) => {
                Value::List(items.into_iter().map(|item| item.moved_to(place)).collect())
            }
            Value::Map(entries) => {
                let entries = entries.into_iter();
                Value::Map(
                    entries
                        .map(|(key, node)| (key, node.moved_to(place)))
                        .collect(),
                )
            }
            other => other,
        };
        self
    }

    /// The place of a key such as `a.b` or `a[0].b`, or of the nearest around it.
    pub(crate) fn place_of(&self, key: &str) -> &Place {
        let mut node = self;
        for step in key.split(['.', '[']) {
            let inner = match &node.value {
                Value::Map(entries) => entries.iter().find(|(name, _)| name == step),
                Value::List(items) => {
                    let index = step.trim_end_matches(']').parse::<usize>();
                    match index.ok().and_then(|index| items.get(index)) {
                        Some(item) => {
                            node = item;
                            continue;
                        }
                        None => None,
                    }
                }
                _ => None,
            };
            match inner {
                Some((_, inner)) => node = inner,
                None => break,
            }
        }
        &node.place
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value>::deserialize(deserializer)?;
        Ok(Self {
            value: spanned.value,
            place: Place::Line(spanned.referenced.line()),
        })
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        // No setting has so large a number; as a float it is refused as what it is.
        Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Integer))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let mut node: Node = entries.next_value()?;
            // A block's own first line may be the next one.
            node.place = Place::Line(key.referenced.line());
            map.push((key.value, node));
        }
        Ok(Value::Map(map))
    }
}
