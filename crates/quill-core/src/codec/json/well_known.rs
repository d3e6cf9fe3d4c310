//! Well-known types that the message library reads with less care than the rest:
//! a name in a `Struct` comes once, and so does one in an `Any`.

use std::fmt;

use ::buffa::type_registry::{JsonAnyEntry, TypeRegistry, any_to_json};
use ::buffa::{EnumValue, Message};
use buffa_types::google::protobuf::{
    Any, BytesValue, DoubleValue, FloatValue, Int32Value, Int64Value, ListValue, NullValue, Struct,
    UInt32Value, UInt64Value, Value,
};
use serde::de::{DeserializeOwned, DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::value::read;

/// A field of `NullValue`, of which `null` is the one value.
pub(super) type OpenNullValue = EnumValue<NullValue>;

/// Lets an `Any` hold the types that are read here, in place of the library's entries.
pub(in super::super) fn register(types: &mut TypeRegistry) {
    macro_rules! register {
        ($($type:ident)*) => {$(types.register_json_any(JsonAnyEntry {
            type_url: $type::TYPE_URL,
            to_json: any_to_json::<$type>,
            from_json: any_from_json::<$type>,
            is_wkt: true,
        });)*};
    }
    register!(
        BytesValue DoubleValue FloatValue Int32Value Int64Value ListValue Struct UInt32Value
        UInt64Value Value
    );
}

fn any_from_json<T>(value: serde_json::Value) -> Result<Vec<u8>, String>
where
    T: Message + DeserializeOwned + 'static,
{
    let message: T = read(value).map_err(|error| error.to_string())?;
    message
        .try_encode_to_vec()
        .map_err(|error| error.to_string())
}

/// Reads an `Any`. Its names are looked at before the type is known that they
/// belong to, so it is taken as JSON first.
pub(super) fn read_any<'de, D: Deserializer<'de>>(from: D) -> Result<Any, D::Error> {
    Any::deserialize(distinct(from)?).map_err(Error::custom)
}

/// Reads any JSON in which no object has a name twice.
///
/// # Errors
/// An object has, with the name.
pub fn distinct<'de, D: Deserializer<'de>>(from: D) -> Result<serde_json::Value, D::Error> {
    Distinct.deserialize(from)
}

/// Reads a `Struct`.
pub(super) fn read_struct<'de, D: Deserializer<'de>>(from: D) -> Result<Struct, D::Error> {
    struct Object;
    impl<'de> Visitor<'de> for Object {
        type Value = Struct;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Struct, A::Error> {
            let mut read = Struct::default();
            while let Some(name) = fields.next_key::<String>()? {
                if read.fields.contains_key(&name) {
                    return Err(twice(&name));
                }
                read.fields.insert(name, fields.next_value_seed(AnyValue)?);
            }
            Ok(read)
        }
    }
    from.deserialize_map(Object)
}

/// Reads a `ListValue`.
pub(super) fn read_list<'de, D: Deserializer<'de>>(from: D) -> Result<ListValue, D::Error> {
    struct List;
    impl<'de> Visitor<'de> for List {
        type Value = ListValue;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<ListValue, A::Error> {
            let mut read = ListValue::default();
            while let Some(element) = elements.next_element_seed(AnyValue)? {
                read.values.push(element);
            }
            Ok(read)
        }
    }
    from.deserialize_seq(List)
}

/// Reads a `Value`.
pub(super) fn read_value<'de, D: Deserializer<'de>>(from: D) -> Result<Value, D::Error> {
    from.deserialize_any(AnyValue)
}

/// Whatever JSON has, as a `Value`.
struct AnyValue;

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        read_value(from)
    }
}

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::null())
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::null())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    #[allow(clippy::cast_precision_loss, reason = "a Value's numbers are doubles")]
    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value as f64))
    }

    #[allow(clippy::cast_precision_loss, reason = "a Value's numbers are doubles")]
    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value as f64))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Value, A::Error> {
        let fields = serde::de::value::MapAccessDeserializer::new(fields);
        read_struct(fields).map(Value::from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<Value, A::Error> {
        let elements = serde::de::value::SeqAccessDeserializer::new(elements);
        read_list(elements).map(Value::from)
    }
}

/// JSON in which no object has a name twice.
struct Distinct;

impl<'de> DeserializeSeed<'de> for Distinct {
    type Value = serde_json::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<serde_json::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Distinct {
    type Value = serde_json::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(serde_json::Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(text.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut read = serde_json::Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            if read.contains_key(&name) {
                return Err(twice(&name));
            }
            read.insert(name, fields.next_value_seed(Self)?);
        }
        Ok(read.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut read = Vec::new();
        while let Some(element) = elements.next_element_seed(Self)? {
            read.push(element);
        }
        Ok(read.into())
    }
}

/// The error for a name that comes twice.
pub(super) fn twice<E: Error>(name: &str) -> E {
    E::custom(format!("the name {name:?} comes twice"))
}
