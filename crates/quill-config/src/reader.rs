//! Settings as serde reads them: each error gets the key and the place it is about.

use std::fmt;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};

use crate::error::ConfigError;
use crate::keys::keys;
use crate::nearest::nearest;
use crate::node::{Node, Place, Value};
use crate::sources::Read;

/// Reads one value.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a>(&'a Node);

impl<'a> Reader<'a> {
    pub(crate) const fn new(node: &'a Node) -> Self {
        Self(node)
    }

    /// Hands over a value of whatever kind it is.
    fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let read = match &self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Integer(value) => visit_integer(*value, visitor),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::Text(text) | Value::Raw(text) => visitor.visit_str(text),
            Value::List(items) => visitor.visit_seq(Items(items.iter().enumerate())),
            Value::Map(entries) => visitor.visit_map(Entries {
                entries: entries.iter(),
                value: None,
            }),
        };
        read.map_err(|fault| fault.at(&self.0.place))
    }

    /// As [`visit`](Self::visit), where a variable's text may be a number.
    fn visit_number<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let Value::Raw(text) = &self.0.value else {
            return self.visit(visitor);
        };
        let read = match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(integer), _) => visit_integer(integer, visitor),
            (_, Ok(float)) => visitor.visit_f64(float),
            _ => visitor.visit_str(text),
        };
        read.map_err(|fault| fault.at(&self.0.place))
    }

    fn is_null(self) -> bool {
        matches!(self.0.value, Value::Null)
    }
}

fn visit_integer<'de, V: Visitor<'de>>(value: i64, visitor: V) -> Result<V::Value, Fault> {
    match u64::try_from(value) {
        Ok(value) => visitor.visit_u64(value),
        Err(_) => visitor.visit_i64(value),
    }
}

macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            self.visit_number(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.visit(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Raw(text) if text == "true" => visitor.visit_bool(true),
            Value::Raw(text) if text == "false" => visitor.visit_bool(false),
            _ => self.visit(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.is_null() {
            true => visitor.visit_none(),
            false => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.is_null() {
            true => visitor.visit_seq(Items([].iter().enumerate())),
            false => self.visit(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.is_null() {
            true => Reader(&Node::empty()).visit(visitor),
            false => self.visit(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Text(text) | Value::Raw(text) => visitor.visit_enum(Word(text)),
            other => Err(Fault::new(Kind::Told(format!(
                "{} can't be used: allowed is one of {}",
                described(other.unexpected()),
                variants.join(", ")
            )))),
        }
        .map_err(|fault| fault.at(&self.0.place))
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_f32 deserialize_f64
    }

    serde::forward_to_deserialize_any! {
        i128 u128 char str string bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

impl Value {
    fn unexpected(&self) -> Unexpected<'_> {
        match self {
            Self::Null => Unexpected::Unit,
            Self::Bool(value) => Unexpected::Bool(*value),
            Self::Integer(value) => Unexpected::Signed(*value),
            Self::Float(value) => Unexpected::Float(*value),
            Self::Text(text) | Self::Raw(text) => Unexpected::Str(text),
            Self::List(_) => Unexpected::Seq,
            Self::Map(_) => Unexpected::Map,
        }
    }
}

struct Items<'a>(std::iter::Enumerate<std::slice::Iter<'a, Node>>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some((index, item)) = self.0.next() else {
            return Ok(None);
        };
        let read = seed.deserialize(Reader(item));
        read.map(Some)
            .map_err(|fault| fault.under(format!("[{index}]")))
    }
}

struct Entries<'a> {
    entries: std::slice::Iter<'a, (String, Node)>,
    value: Option<(&'a str, &'a Node)>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Fault> {
        let Some((key, node)) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some((key, node));
        let read = seed.deserialize(key.as_str().into_deserializer());
        read.map(Some)
            .map_err(|fault: Fault| fault.at(&node.place).under(key.clone()))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Fault> {
        let Some((key, node)) = self.value.take() else {
            return Err(Fault::custom("a value was asked for before its key"));
        };
        let read = seed.deserialize(Reader(node));
        read.map_err(|fault| fault.at(&node.place).under(key.to_owned()))
    }
}

/// The name of a variant.
struct Word<'a>(&'a str);

impl<'de> EnumAccess<'de> for Word<'_> {
    type Error = Fault;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Fault> {
        let variant = seed.deserialize(self.0.into_deserializer())?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, _: S) -> Result<S::Value, Fault> {
        Err(Fault::custom("this word needs a value"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Fault> {
        Err(Fault::custom("this word needs a list"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Fault> {
        Err(Fault::custom("this word needs keys below it"))
    }
}

/// What is wrong, and about which key.
#[derive(Debug)]
pub(crate) struct Fault(Box<Inner>);

#[derive(Debug)]
struct Inner {
    /// From the inside out.
    steps: Vec<String>,
    place: Option<Place>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// The step that was taken last names no key; these are there.
    Unknown(&'static [&'static str]),
    Missing(&'static str),
    Told(String),
}

impl Fault {
    fn new(kind: Kind) -> Self {
        Self(Box::new(Inner {
            steps: Vec::new(),
            place: None,
            kind,
        }))
    }

    /// The innermost place counts.
    fn at(mut self, place: &Place) -> Self {
        self.0.place.get_or_insert_with(|| place.clone());
        self
    }

    fn under(mut self, step: String) -> Self {
        self.0.steps.push(step);
        self
    }

    /// As whoever wrote the settings is told. `T` has all keys.
    pub(crate) fn told<T: DeserializeOwned>(self, read: &Read<()>) -> ConfigError {
        let Inner {
            mut steps,
            place,
            kind,
        } = *self.0;
        let place = read.shown(place.as_ref().unwrap_or(&Place::Line(0)));
        steps.reverse();
        let message = match kind {
            Kind::Told(message) => message,
            Kind::Missing(field) => {
                steps.push(field.to_owned());
                "it is missing, and has to be said".to_owned()
            }
            Kind::Unknown(known) => unknown::<T>(&steps, known),
        };
        ConfigError::new(place, joined(&steps), message)
    }
}

/// What to say of a key that is not there, whose last step is not among `known`.
fn unknown<T: DeserializeOwned>(steps: &[String], known: &'static [&'static str]) -> String {
    let Some((typed, around)) = steps.split_last() else {
        return "there is no such key".to_owned();
    };
    if let Some(near) = nearest(typed, known.iter().copied()) {
        let mut meant = around.to_vec();
        meant.push(near.to_owned());
        return format!("there is no such key; did you mean {}?", joined(&meant));
    }
    let all = keys::<T>();
    let mut names = all.iter().map(crate::Key::name);
    let elsewhere = names.find(|name| name.rsplit('.').next() == Some(typed));
    match elsewhere {
        Some(name) => format!("there is no such key; did you mean {name}?"),
        None => format!("there is no such key; allowed are {}", known.join(", ")),
    }
}

fn joined(steps: &[String]) -> String {
    let mut key = String::new();
    for step in steps {
        if !key.is_empty() && !step.starts_with('[') {
            key.push('.');
        }
        key.push_str(step);
    }
    key
}

/// A value as it was written.
fn described(value: Unexpected<'_>) -> String {
    match value {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Float(value) => value.to_string(),
        Unexpected::Str(text) => format!("{text:?}"),
        Unexpected::Unit => "an empty value".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a block of keys".to_owned(),
        other => other.to_string(),
    }
}

/// What is allowed, for whoever does not write Rust.
fn allowed(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    match expected.as_str() {
        "u8" => "a whole number from 0 to 255".to_owned(),
        "u16" => "a whole number from 0 to 65535".to_owned(),
        "u32" => "a whole number from 0 to 4294967295".to_owned(),
        "u64" | "usize" => "a whole number from 0".to_owned(),
        "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" => "a text (in quotes, where it looks like a number)".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a block of keys".to_owned(),
        other if other.starts_with("struct ") => "a block of keys".to_owned(),
        _ => expected,
    }
}

impl Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(Kind::Told(message.to_string()))
    }

    fn invalid_type(value: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_value(value, expected)
    }

    fn invalid_value(value: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (value, allowed) = (described(value), allowed(expected));
        Self::custom(format!("{value} can't be used: allowed is {allowed}"))
    }

    fn unknown_variant(word: &str, allowed: &'static [&'static str]) -> Self {
        let allowed = allowed.join(", ");
        Self::custom(format!(
            "{word:?} can't be used: allowed is one of {allowed}"
        ))
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        Self::new(Kind::Unknown(known))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(Kind::Missing(field))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Fault {}
