//! JSON that a user wrote, checked against its message type.
//!
//! Messages of types that are known at run time only are read by the message
//! library, which takes more than ProtoJSON has and does not say what it waited
//! for. So what is written is held to the rules of generated messages first, by
//! the very functions that these are read with. Names, oneofs and times are left
//! to the library.

use std::collections::HashSet;
use std::fmt;

use buffa_descriptor::{DescriptorPool, FieldKind, MessageIndex, ScalarType, SingularKind};
use quill::types::google::protobuf::{
    BytesValue, DoubleValue, FloatValue, Int32Value, Int64Value, ListValue, Struct, UInt32Value,
    UInt64Value, Value,
};
use quill_core::json::{self, Key};
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Checks a message of this type.
#[derive(Clone, Copy)]
pub(crate) struct MessageCheck<'a> {
    pub(crate) pool: &'a DescriptorPool,
    pub(crate) index: MessageIndex,
}

impl<'de> DeserializeSeed<'de> for MessageCheck<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let full_name = self.pool.message(self.index).full_name();
        match full_name.strip_prefix("google.protobuf.") {
            Some("Int32Value") => json::read::<Int32Value, _>(from).map(drop),
            Some("UInt32Value") => json::read::<UInt32Value, _>(from).map(drop),
            Some("Int64Value") => json::read::<Int64Value, _>(from).map(drop),
            Some("UInt64Value") => json::read::<UInt64Value, _>(from).map(drop),
            Some("FloatValue") => json::read::<FloatValue, _>(from).map(drop),
            Some("DoubleValue") => json::read::<DoubleValue, _>(from).map(drop),
            Some("BytesValue") => json::read::<BytesValue, _>(from).map(drop),
            Some("BoolValue") => bool::deserialize(from).map(drop),
            Some("StringValue") => String::deserialize(from).map(drop),
            Some("Struct") => json::read::<Struct, _>(from).map(drop),
            Some("ListValue") => json::read::<ListValue, _>(from).map(drop),
            Some("Value") => json::read::<Value, _>(from).map(drop),
            Some("Any") => self.any(from),
            Some("Timestamp" | "Duration" | "FieldMask") => ignore(from),
            _ => from.deserialize_map(self),
        }
    }
}

impl MessageCheck<'_> {
    /// The type's name may stand behind the fields, so those are taken as JSON.
    fn any<'de, D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        let mut any = json::distinct(from)?;
        let url = any.get("@type").and_then(serde_json::Value::as_str);
        let name = url.and_then(|url| url.rsplit('/').next());
        let Some(index) = name.and_then(|name| self.pool.message_index(name)) else {
            return Ok(());
        };
        let inner = Self { index, ..self };
        let full_name = self.pool.message(index).full_name();
        if full_name.starts_with("google.protobuf.")
            && let Some(value) = any.get_mut("value")
        {
            any = value.take();
        }
        inner.deserialize(any).map_err(D::Error::custom)
    }
}

impl<'de> Visitor<'de> for MessageCheck<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let full_name = self.pool.message(self.index).full_name();
        write!(f, "an object, as {full_name} is a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            match self.pool.message(self.index).field_by_name(&name) {
                Some(field) => fields.next_value_seed(FieldCheck {
                    pool: self.pool,
                    kind: field.kind(),
                })?,
                None => fields.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(())
    }
}

/// Checks a field; `null` leaves it unset.
#[derive(Clone, Copy)]
struct FieldCheck<'a> {
    pool: &'a DescriptorPool,
    kind: FieldKind,
}

impl<'de> DeserializeSeed<'de> for FieldCheck<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for FieldCheck<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            FieldKind::Singular(_) => "a value or null",
            FieldKind::List(_) => "a list or null",
            FieldKind::Map { .. } => "an object or null",
        })
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self.kind {
            FieldKind::Singular(kind) => self.of(kind).deserialize(from),
            FieldKind::List(_) => from.deserialize_seq(self),
            FieldKind::Map { .. } => from.deserialize_map(self),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let FieldKind::List(kind) = self.kind else {
            return Ok(());
        };
        while elements.next_element_seed(self.of(kind))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let FieldKind::Map { key, value } = self.kind else {
            return Ok(());
        };
        let mut names = HashSet::new();
        while let Some(name) = entries.next_key::<String>()? {
            if !is_key(key, &name) {
                return Err(A::Error::custom(format!("{name:?} is no key of this map")));
            }
            entries.next_value_seed(self.of(value))?;
            if names.contains(&name) {
                return Err(A::Error::custom(format!("the name {name:?} comes twice")));
            }
            names.insert(name);
        }
        Ok(())
    }
}

impl<'a> FieldCheck<'a> {
    fn of(self, kind: SingularKind) -> ValueCheck<'a> {
        let pool = self.pool;
        ValueCheck { pool, kind }
    }
}

/// Checks what is no `null`, and an element of a list or a map, which the
/// library refuses to be one.
struct ValueCheck<'a> {
    pool: &'a DescriptorPool,
    kind: SingularKind,
}

impl<'de> DeserializeSeed<'de> for ValueCheck<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        match self.kind {
            SingularKind::Scalar(scalar) => check_scalar(scalar, from),
            SingularKind::Enum(_) => ignore(from),
            SingularKind::Message(index) => MessageCheck {
                pool: self.pool,
                index,
            }
            .deserialize(from),
        }
    }
}

fn check_scalar<'de, D: Deserializer<'de>>(scalar: ScalarType, from: D) -> Result<(), D::Error> {
    match scalar {
        ScalarType::Bool => bool::deserialize(from).map(drop),
        ScalarType::String => String::deserialize(from).map(drop),
        ScalarType::Bytes => json::read::<Vec<u8>, _>(from).map(drop),
        ScalarType::Float => json::read::<f32, _>(from).map(drop),
        ScalarType::Double => json::read::<f64, _>(from).map(drop),
        ScalarType::Int32 | ScalarType::Sint32 | ScalarType::Sfixed32 => {
            json::read::<i32, _>(from).map(drop)
        }
        ScalarType::Int64 | ScalarType::Sint64 | ScalarType::Sfixed64 => {
            json::read::<i64, _>(from).map(drop)
        }
        ScalarType::Uint32 | ScalarType::Fixed32 => json::read::<u32, _>(from).map(drop),
        ScalarType::Uint64 | ScalarType::Fixed64 => json::read::<u64, _>(from).map(drop),
    }
}

fn is_key(scalar: ScalarType, name: &str) -> bool {
    match scalar {
        ScalarType::Bool => bool::from_name(name).is_some(),
        ScalarType::Int32 | ScalarType::Sint32 | ScalarType::Sfixed32 => {
            i32::from_name(name).is_some()
        }
        ScalarType::Int64 | ScalarType::Sint64 | ScalarType::Sfixed64 => {
            i64::from_name(name).is_some()
        }
        ScalarType::Uint32 | ScalarType::Fixed32 => u32::from_name(name).is_some(),
        ScalarType::Uint64 | ScalarType::Fixed64 => u64::from_name(name).is_some(),
        ScalarType::String | ScalarType::Bytes | ScalarType::Float | ScalarType::Double => true,
    }
}

fn ignore<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
    IgnoredAny::deserialize(from).map(drop)
}
