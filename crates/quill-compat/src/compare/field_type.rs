//! The types of fields.

use buffa_descriptor::generated::descriptor::field_descriptor_proto::Type;

use super::{Finding, Findings, Pair};
use crate::index::{Enum, Field};
use crate::rule;

/// Numbers of fields in `FieldDescriptorProto`.
const TYPE: [i32; 1] = [5];
const TYPE_NAME: [i32; 1] = [6];

pub(super) fn check(pair: &Pair<'_>, old: &Field<'_>, new: &Field<'_>, findings: &mut Findings) {
    let (was, now) = (old.kind(), new.kind());
    let renamed = is_named(was) && is_named(now) && old.type_name() != new.type_name();
    if was == now && !renamed {
        return;
    }
    let part = |kind: Type| if is_named(kind) { TYPE_NAME } else { TYPE };
    let finding = Finding::changed(
        old.at.place_of(&part(was)),
        new.at.place_of(&part(now)),
        format!("{} changed its type", new.described()),
    )
    .was(said(old))
    .now(said(new))
    .help(format!(
        "keep {}, or add a new field with a number of its own and reserve {}",
        said(old),
        old.number()
    ));
    findings.add(rule::FIELD_SAME_TYPE, finding.clone());

    let same_enum = was == Type::TYPE_ENUM
        && now == Type::TYPE_ENUM
        && is_same_enum(pair.old.enum_of(old), pair.new.enum_of(new));
    let same_name = !renamed || same_enum;
    // Text is bytes, but bytes may be no text.
    let widens = was == Type::TYPE_STRING && now == Type::TYPE_BYTES;
    if !widens && (on_the_wire(was) != on_the_wire(now) || !same_name) {
        findings.add(rule::FIELD_WIRE_COMPATIBLE_TYPE, finding.clone());
    }
    if in_json(was) != in_json(now) || !same_name {
        findings.add(rule::FIELD_WIRE_JSON_COMPATIBLE_TYPE, finding);
    }
}

/// Whether the type has a name of its own.
fn is_named(kind: Type) -> bool {
    matches!(
        kind,
        Type::TYPE_ENUM | Type::TYPE_MESSAGE | Type::TYPE_GROUP
    )
}

/// The type as the language writes it.
fn said(field: &Field<'_>) -> String {
    match field.kind() {
        Type::TYPE_GROUP => format!("{} (delimited)", field.type_name()),
        kind if is_named(kind) => field.type_name().to_owned(),
        kind => scalar(kind).to_owned(),
    }
}

fn scalar(kind: Type) -> &'static str {
    match kind {
        Type::TYPE_DOUBLE => "double",
        Type::TYPE_FLOAT => "float",
        Type::TYPE_INT64 => "int64",
        Type::TYPE_UINT64 => "uint64",
        Type::TYPE_INT32 => "int32",
        Type::TYPE_FIXED64 => "fixed64",
        Type::TYPE_FIXED32 => "fixed32",
        Type::TYPE_BOOL => "bool",
        Type::TYPE_STRING => "string",
        Type::TYPE_BYTES => "bytes",
        Type::TYPE_UINT32 => "uint32",
        Type::TYPE_SFIXED32 => "sfixed32",
        Type::TYPE_SFIXED64 => "sfixed64",
        Type::TYPE_SINT32 => "sint32",
        Type::TYPE_SINT64 => "sint64",
        Type::TYPE_GROUP => "group",
        Type::TYPE_MESSAGE => "message",
        Type::TYPE_ENUM => "enum",
    }
}

/// Types that read each other's bytes have the same group; of integers, what
/// does not fit is cut off, as the language's guide to updates allows.
fn on_the_wire(kind: Type) -> u8 {
    match kind {
        Type::TYPE_INT32
        | Type::TYPE_INT64
        | Type::TYPE_UINT32
        | Type::TYPE_UINT64
        | Type::TYPE_BOOL => 0,
        Type::TYPE_SINT32 | Type::TYPE_SINT64 => 1,
        Type::TYPE_FIXED32 | Type::TYPE_SFIXED32 => 2,
        Type::TYPE_FIXED64 | Type::TYPE_SFIXED64 => 3,
        other => alone(other),
    }
}

/// Types that read each other's bytes and JSON: 64 bits are a string there,
/// and a bool is none of the numbers.
fn in_json(kind: Type) -> u8 {
    match kind {
        Type::TYPE_INT32 | Type::TYPE_UINT32 => 0,
        Type::TYPE_INT64 | Type::TYPE_UINT64 => 1,
        Type::TYPE_FIXED32 | Type::TYPE_SFIXED32 => 2,
        Type::TYPE_FIXED64 | Type::TYPE_SFIXED64 => 3,
        other => alone(other),
    }
}

/// A group for each type.
fn alone(kind: Type) -> u8 {
    32 + kind as u8
}

/// Whether an enum goes on under another full name: with the same own name, and
/// all values of before.
fn is_same_enum(old: Option<&Enum<'_>>, new: Option<&Enum<'_>>) -> bool {
    let (Some(old), Some(new)) = (old, new) else {
        return false;
    };
    let has = |name: &Option<String>, number: Option<i32>| {
        let mut values = new.proto.value.iter();
        values.any(|value| value.name == *name && value.number == number)
    };
    let mut values = old.proto.value.iter();
    old.proto.name == new.proto.name && values.all(|value| has(&value.name, value.number))
}
