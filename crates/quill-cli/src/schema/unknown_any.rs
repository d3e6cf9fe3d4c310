//! Types that only an `Any` names.

use buffa_descriptor::{DynamicMessage, ReflectMessage, Value, ValueRef};

/// How deep messages are searched, as deep as they are decoded.
const DEPTH_MAX: u32 = 100;

/// The full name of a type that an `Any` in the message holds and that the
/// message's schema lacks; also of one in another `Any`.
pub(super) fn unknown_any(message: &DynamicMessage) -> Option<String> {
    in_message(message, DEPTH_MAX)
}

fn in_message(message: &dyn ReflectMessage, depth: u32) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    if message.message_descriptor().full_name() == "google.protobuf.Any" {
        return in_any(&message.to_dynamic(), depth);
    }
    let mut found = None;
    message.for_each_set(&mut |_, value| {
        if found.is_none() {
            found = in_value(value, depth);
        }
    });
    found
}

fn in_value(value: ValueRef<'_>, depth: u32) -> Option<String> {
    let mut found = None;
    match value {
        ValueRef::Message(message) => found = in_message(&*message, depth),
        ValueRef::List(list) => list.for_each(&mut |value| {
            if found.is_none() {
                found = in_value(value, depth);
            }
        }),
        ValueRef::Map(map) => map.for_each(&mut |_, value| {
            if found.is_none() {
                found = in_value(value, depth);
            }
        }),
        _ => {}
    }
    found
}

fn in_any(any: &DynamicMessage, depth: u32) -> Option<String> {
    let Some(Value::String(type_url)) = any.field_by_number(1) else {
        return None;
    };
    let full_name = type_url.rsplit('/').next().unwrap_or(type_url);
    if any.pool().message_index(full_name).is_none() {
        return Some(full_name.to_owned());
    }
    in_message(&any.unpack_any().ok()?, depth)
}
