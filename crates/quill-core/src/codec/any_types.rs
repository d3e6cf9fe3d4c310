//! The types that an `Any` may hold where it is JSON: ProtoJSON writes the
//! message in it by its fields, so its type has to be known.

use std::any::Any as Anything;
use std::collections::HashMap;
use std::ptr;
use std::sync::{Mutex, Once, PoisonError};

use ::buffa::type_registry::{JsonAnyEntry, TypeRegistry, set_type_registry};
use ::buffa::{Message, MessageField, ProtoBox};
use buffa_types::google::protobuf::Any;

use super::json;

/// A function that names a package's types: the generated `register_types`.
type Register = fn(&mut TypeRegistry);

/// What was registered so far, as a registry that is in use cannot grow.
static PACKAGES: Mutex<Vec<Register>> = Mutex::new(Vec::new());

/// Lets an `Any` hold the messages of one more package where it is JSON.
///
/// Generated servers and clients do this for their own package, and protobuf's
/// well-known types are always there. A package of messages alone is registered
/// by the program, before its first call: `register_types(common::v1::register_types)`.
/// Doing so twice is harmless.
pub fn register_types(package: fn(&mut TypeRegistry)) {
    let mut packages = PACKAGES.lock().unwrap_or_else(PoisonError::into_inner);
    if packages
        .iter()
        .any(|known| ptr::fn_addr_eq(*known, package))
    {
        return;
    }
    packages.push(package);
    install(&packages);
}

/// Makes sure that the well-known types are registered.
pub(super) fn register_well_known() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| install(&PACKAGES.lock().unwrap_or_else(PoisonError::into_inner)));
}

/// Each registry stays in memory, as somebody may be reading in it: one for
/// each package, once in the life of a program.
fn install(packages: &[Register]) {
    let mut types = TypeRegistry::new();
    buffa_types::register_wkt_types(&mut types);
    json::register(&mut types);
    // In place of the library's entry, which lets an unknown type through.
    types.register_json_any(JsonAnyEntry {
        type_url: Any::TYPE_URL,
        to_json: |bytes| {
            let inner = Any::decode_from_slice(bytes).map_err(|error| error.to_string())?;
            inner.check_types()?;
            serde_json::to_value(&inner).map_err(|error| error.to_string())
        },
        from_json: |value| {
            let inner: Any =
                json::read(value).map_err(|error: serde_json::Error| error.to_string())?;
            inner.check_types()?;
            inner.try_encode_to_vec().map_err(|error| error.to_string())
        },
        is_wkt: true,
    });
    for package in packages {
        package(&mut types);
    }
    set_type_registry(types);
}

/// A message, or a part of one, that has an `Any` among its own fields.
///
/// Generated code implements it for such messages and asks on the way to JSON
/// and from there; a message without an `Any` has nothing to ask.
pub trait HoldsAny {
    /// Whether the types of all these `Any` are known.
    ///
    /// # Errors
    /// A sentence with the first type that is not, and what to do about it.
    fn check_types(&self) -> Result<(), String>;
}

impl HoldsAny for Any {
    fn check_types(&self) -> Result<(), String> {
        let url = self.type_url.as_str();
        // Nothing is in an `Any` without a type: it is `{}`.
        let is_known = url.is_empty()
            || ::buffa::any_registry::with_any_registry(|types| {
                types.is_some_and(|types| types.lookup(url).is_some())
            });
        if is_known {
            return Ok(());
        }
        Err(format!(
            "an Any holds the type {url:?}, which is not known here: \
             register its package with quill::types::register_types"
        ))
    }
}

impl<T: HoldsAny + Default, P: ProtoBox<T>> HoldsAny for MessageField<T, P> {
    fn check_types(&self) -> Result<(), String> {
        self.as_option().map_or(Ok(()), T::check_types)
    }
}

impl<T: HoldsAny> HoldsAny for Option<T> {
    fn check_types(&self) -> Result<(), String> {
        self.as_ref().map_or(Ok(()), T::check_types)
    }
}

impl<T: HoldsAny> HoldsAny for Box<T> {
    fn check_types(&self) -> Result<(), String> {
        (**self).check_types()
    }
}

impl<T: HoldsAny> HoldsAny for Vec<T> {
    fn check_types(&self) -> Result<(), String> {
        self.iter().try_for_each(T::check_types)
    }
}

impl<K, T: HoldsAny, S> HoldsAny for HashMap<K, T, S> {
    fn check_types(&self) -> Result<(), String> {
        self.values().try_for_each(T::check_types)
    }
}

/// A method's message may be an `Any` itself, which no generated code is around.
pub(super) fn check_whole<T: 'static>(message: &T) -> Result<(), String> {
    match (message as &dyn Anything).downcast_ref::<Any>() {
        Some(any) => any.check_types(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};

    use super::*;
    use crate::codec::{BuffaCodec, Codec as _, CodecError, DecodeLimits, Format};

    const UNKNOWN: &str = r#"{"@type":"type.googleapis.com/no.Such","value":"AA=="}"#;

    fn parsed(text: &str) -> Result<Any, CodecError> {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        BuffaCodec.decode(Format::Json, bytes, &DecodeLimits::default())
    }

    fn printed(any: &Any) -> Result<String, CodecError> {
        let mut out = BytesMut::new();
        BuffaCodec.encode(Format::Json, any, &mut out)?;
        Ok(String::from_utf8(out.to_vec()).unwrap())
    }

    #[test]
    fn well_known_types_need_no_registration() {
        for text in [
            "{}",
            r#"{"@type":"type.googleapis.com/google.protobuf.Duration","value":"1s"}"#,
            r#"{"@type":"type.googleapis.com/google.protobuf.Any","value":{}}"#,
        ] {
            assert_eq!(printed(&parsed(text).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn an_unknown_type_is_an_error_both_ways_and_at_any_depth() {
        let unknown = Any {
            type_url: "type.googleapis.com/no.Such".to_owned(),
            ..Any::default()
        };
        let nested =
            format!(r#"{{"@type":"type.googleapis.com/google.protobuf.Any","value":{UNKNOWN}}}"#);
        let errors = [
            parsed(UNKNOWN).map(drop),
            parsed(&nested).map(drop),
            printed(&unknown).map(drop),
            printed(&Any::pack(&unknown, Any::TYPE_URL)).map(drop),
        ];
        for error in errors {
            let text = error.unwrap_err().to_string();
            assert!(text.contains("\"type.googleapis.com/no.Such\""), "{text}");
            assert!(text.contains("register_types"), "{text}");
        }
    }

    #[test]
    fn every_place_of_a_field_is_looked_at() {
        let fine = Any::default();
        let unknown = Any {
            type_url: "a/b".to_owned(),
            ..Any::default()
        };
        for (any, is_fine) in [(fine, true), (unknown, false)] {
            let field: MessageField<Any> = MessageField::some(any.clone());
            assert_eq!(field.check_types().is_ok(), is_fine);
            assert_eq!(Some(Box::new(any.clone())).check_types().is_ok(), is_fine);
            let list = vec![Any::default(), any.clone()];
            assert_eq!(list.check_types().is_ok(), is_fine);
            assert_eq!(HashMap::from([(1, any)]).check_types().is_ok(), is_fine);
        }
    }
}
