//! Reading a value by its type, whatever it is in: a field, a list, a map, a
//! oneof, an `Any`, or a method's own message.

use std::any::{Any as Anything, TypeId};
use std::fmt;
use std::marker::PhantomData;

use ::buffa::{MessageField, ProtoBox};
use buffa_types::google::protobuf::{
    Any, BytesValue, DoubleValue, FloatValue, Int32Value, Int64Value, ListValue, Struct,
    UInt32Value, UInt64Value, Value,
};
use serde::de::{DeserializeSeed, Error, Visitor};
use serde::{Deserialize, Deserializer};

use super::{scalars, well_known};

/// Reads the first type of the list that `$type` is by its own function, and what
/// is none of them as it says itself.
macro_rules! read_as {
    ($type:ty, $from:expr, $($special:ty => $read:expr;)*) => {{
        let mut read = None::<$type>;
        let slot: &mut dyn Anything = &mut read;
        $(if let Some(slot) = slot.downcast_mut::<Option<$special>>() {
            *slot = Some($read($from)?);
        } else)* {
            return <$type>::deserialize($from);
        }
        read.ok_or_else(|| Error::custom("the value was read as another type"))
    }};
}

/// Reads a value of type `T`.
///
/// # Errors
/// It is no such value, with a sentence that says which one was expected.
pub fn read<'de, T, D>(from: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + 'static,
    D: Deserializer<'de>,
{
    read_as!(
        T, from,
        i32 => scalars::int32::deserialize;
        u32 => scalars::uint32::deserialize;
        i64 => scalars::int64::deserialize;
        u64 => scalars::uint64::deserialize;
        f32 => scalars::float::deserialize;
        f64 => scalars::double::deserialize;
        Vec<u8> => scalars::bytes::deserialize;
        Int32Value => |from| scalars::int32::deserialize(from).map(Int32Value::from);
        UInt32Value => |from| scalars::uint32::deserialize(from).map(UInt32Value::from);
        Int64Value => |from| scalars::int64::deserialize(from).map(Int64Value::from);
        UInt64Value => |from| scalars::uint64::deserialize(from).map(UInt64Value::from);
        FloatValue => |from| scalars::float::deserialize(from).map(FloatValue::from);
        DoubleValue => |from| scalars::double::deserialize(from).map(DoubleValue::from);
        BytesValue => |from| scalars::bytes::deserialize::<Vec<u8>, _>(from).map(BytesValue::from);
        Struct => well_known::read_struct;
        ListValue => well_known::read_list;
        Value => well_known::read_value;
        Any => well_known::read_any;
    )
}

/// Reads an element of a list or a value of a map: those are never `null`, other
/// than where `null` is a value.
pub(super) struct Element<T>(PhantomData<T>);

impl<T> Default for Element<T> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: Deserialize<'de> + 'static> DeserializeSeed<'de> for Element<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        let has_null = [
            TypeId::of::<Value>(),
            TypeId::of::<well_known::OpenNullValue>(),
        ];
        if has_null.contains(&TypeId::of::<T>()) {
            return read(from);
        }
        from.deserialize_option(self)
    }
}

impl<'de, T: Deserialize<'de> + 'static> Visitor<'de> for Element<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_none<E: Error>(self) -> Result<T, E> {
        self.visit_unit()
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        Err(E::custom("null is no element of a list or a map"))
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        read(from)
    }
}

/// Reads a member of a oneof.
#[derive(Debug)]
pub struct DefaultDeserializeSeed<T>(PhantomData<T>);

impl<T> DefaultDeserializeSeed<T> {
    /// A reader of one value.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it has the library's shape")]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: Deserialize<'de> + 'static> DeserializeSeed<'de> for DefaultDeserializeSeed<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        read(from)
    }
}

/// Reads the field of a message; `null` leaves it unset.
///
/// # Errors
/// It is no such message.
pub fn message_field<'de, T, P, D>(from: D) -> Result<MessageField<T, P>, D::Error>
where
    T: Default + Deserialize<'de> + 'static,
    P: ProtoBox<T>,
    D: Deserializer<'de>,
{
    from.deserialize_option(MessageFieldSeed(PhantomData))
}

/// Reads the field of a message of which `null` is one.
///
/// # Errors
/// It is no such message.
pub fn message_field_always_present<'de, T, P, D>(from: D) -> Result<MessageField<T, P>, D::Error>
where
    T: Default + Deserialize<'de> + 'static,
    P: ProtoBox<T>,
    D: Deserializer<'de>,
{
    read(from).map(MessageField::some)
}

/// [`message_field`] as a seed.
#[derive(Debug)]
pub struct MessageFieldSeed<T, P>(PhantomData<(T, P)>);

impl<T, P> Default for MessageFieldSeed<T, P> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T, P> DeserializeSeed<'de> for MessageFieldSeed<T, P>
where
    T: Default + Deserialize<'de> + 'static,
    P: ProtoBox<T>,
{
    type Value = MessageField<T, P>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        message_field(from)
    }
}

impl<'de, T, P> Visitor<'de> for MessageFieldSeed<T, P>
where
    T: Default + Deserialize<'de> + 'static,
    P: ProtoBox<T>,
{
    type Value = MessageField<T, P>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message or null")
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(MessageField::none())
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(MessageField::none())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        read(from).map(MessageField::some)
    }
}

#[cfg(test)]
mod tests {
    use ::buffa::Message;
    use bytes::Bytes;
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::codec::{BuffaCodec, Codec as _, CodecError, DecodeLimits, Format};

    fn whole<T>(text: &str) -> Result<T, CodecError>
    where
        T: Message + serde::Serialize + DeserializeOwned + 'static,
    {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        BuffaCodec.decode(Format::Json, bytes, &DecodeLimits::default())
    }

    #[test]
    fn a_methods_message_is_read_as_a_field_is() {
        assert_eq!(whole::<Int32Value>(r#""1e1""#).unwrap().value, 10);
        assert_eq!(whole::<UInt64Value>("1e1").unwrap().value, 10);
        assert!(whole::<DoubleValue>(r#""NaN""#).unwrap().value.is_nan());
        assert_eq!(whole::<BytesValue>(r#""_w""#).unwrap().value, [0xff]);
        assert!(whole::<Value>("null").is_ok());
        for error in [
            whole::<Int32Value>(r#""01""#).map(drop),
            whole::<FloatValue>(r#""inf""#).map(drop),
            whole::<BytesValue>(r#""AA=""#).map(drop),
            whole::<Struct>(r#"{"a": 1, "a": 1}"#).map(drop),
            whole::<ListValue>(r#"[{"a": 1, "a": 1}]"#).map(drop),
            whole::<Any>(r#"{"@type": "x", "@type": "x"}"#).map(drop),
        ] {
            assert!(error.is_err());
        }
    }
}
