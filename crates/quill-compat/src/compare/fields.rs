//! Fields and extensions that have kept their number.

use buffa::editions::Utf8Validation;
use buffa_descriptor::generated::descriptor::Edition;
use buffa_descriptor::generated::descriptor::field_descriptor_proto::Type;
use buffa_descriptor::generated::descriptor::field_options::{CType, JSType};

use super::{Finding, Findings, Pair, default, field_type};
use crate::index::{Cardinality, Field};
use crate::rule;

/// Numbers of fields in `FieldDescriptorProto`, and in its options.
const NAME: [i32; 1] = [1];
const DEFAULT: [i32; 1] = [7];
const JSON_NAME: [i32; 1] = [10];
const CTYPE: [i32; 2] = [8, 1];
const JSTYPE: [i32; 2] = [8, 6];

pub(super) fn check(pair: &Pair<'_>, old: &Field<'_>, new: &Field<'_>, findings: &mut Findings) {
    check_names(old, new, findings);
    field_type::check(pair, old, new, findings);
    if !(old.is_of_map && new.is_of_map) {
        check_cardinality(old, new, findings);
    }
    check_oneof(old, new, findings);
    check_default(pair, old, new, findings);
    check_languages(old, new, findings);
}

/// A change of the field, at one of its parts.
fn changed(old: &Field<'_>, new: &Field<'_>, part: &[i32], what: &str) -> Finding {
    Finding::changed(
        old.at.place_of(part),
        new.at.place_of(part),
        format!("{} {what}", new.described()),
    )
}

fn check_names(old: &Field<'_>, new: &Field<'_>, findings: &mut Findings) {
    let (was, now) = if old.is_extension() {
        (&old.full_name[..], &new.full_name[..])
    } else {
        (old.name(), new.name())
    };
    if was != now {
        let finding = changed(old, new, &NAME, "changed its name")
            .was(format!("{was:?}"))
            .now(format!("{now:?}"))
            .help(format!(
                "call it {was} again; only the binary format does not know names"
            ));
        findings.add(rule::FIELD_SAME_NAME, finding);
    }
    // The JSON name of an extension is its full name.
    let (was, now) = (json_name(old), json_name(new));
    if !old.is_extension() && was != now {
        let finding = changed(old, new, &JSON_NAME, "changed its name in JSON")
            .was(format!("{was:?}"))
            .now(format!("{now:?}"))
            .help(format!("keep the name in JSON: [json_name = {was:?}]"));
        findings.add(rule::FIELD_SAME_JSON_NAME, finding);
    }
}

fn json_name(field: &Field<'_>) -> String {
    if let Some(name) = &field.proto.json_name {
        return name.clone();
    }
    let mut name = String::new();
    let mut upper = false;
    for c in field.name().chars() {
        if c == '_' {
            upper = true;
        } else {
            name.push(if upper { c.to_ascii_uppercase() } else { c });
            upper = false;
        }
    }
    name
}

fn check_cardinality(old: &Field<'_>, new: &Field<'_>, findings: &mut Findings) {
    let (was, now) = (old.cardinality(), new.cardinality());
    if was == now {
        return;
    }
    let finding = changed(old, new, &[], "changed its cardinality")
        .was(was.name())
        .now(now.name())
        .help(format!(
            "keep it {}, or add a new field with a number of its own",
            was.name()
        ));
    if on_the_wire(was) != on_the_wire(now) {
        findings.add(rule::FIELD_WIRE_COMPATIBLE_CARDINALITY, finding.clone());
    }
    if in_json(was) != in_json(now) {
        findings.add(
            rule::FIELD_WIRE_JSON_COMPATIBLE_CARDINALITY,
            finding.clone(),
        );
    }
    findings.add(rule::FIELD_SAME_CARDINALITY, finding);
}

/// Cardinalities that read each other's bytes have the same.
fn on_the_wire(of: Cardinality) -> u8 {
    match of {
        Cardinality::Explicit | Cardinality::Implicit => 0,
        Cardinality::Required => 1,
        Cardinality::Repeated | Cardinality::Map => 2,
    }
}

/// The same, with JSON.
fn in_json(of: Cardinality) -> u8 {
    match of {
        Cardinality::Map => 3,
        of => on_the_wire(of),
    }
}

fn check_oneof(old: &Field<'_>, new: &Field<'_>, findings: &mut Findings) {
    if old.is_extension() || old.oneof == new.oneof {
        return;
    }
    let said = |oneof: Option<&str>| {
        oneof.map_or_else(
            || "in no oneof".to_owned(),
            |name| format!("in oneof {name:?}"),
        )
    };
    let finding = changed(old, new, &[], "changed its oneof")
        .was(said(old.oneof))
        .now(said(new.oneof))
        .help("leave it where it was, and add a new field with a number of its own");
    findings.add(rule::FIELD_SAME_ONEOF, finding);
}

fn check_default(pair: &Pair<'_>, old: &Field<'_>, new: &Field<'_>, findings: &mut Findings) {
    if !old.can_have_default() || !new.can_have_default() {
        return;
    }
    let (was, now) = (default::of(pair.old, old), default::of(pair.new, new));
    if was.is_same(&now) {
        return;
    }
    let finding = changed(old, new, &DEFAULT, "changed its default")
        .was(was.to_string())
        .now(now.to_string())
        .help("keep the default: it is what readers see where nothing was written");
    findings.add(rule::FIELD_SAME_DEFAULT, finding);
}

/// What only some languages' generated code depends on.
fn check_languages(old: &Field<'_>, new: &Field<'_>, findings: &mut Findings) {
    if is_64_bit(old.kind()) && is_64_bit(new.kind()) && jstype(old) != jstype(new) {
        let finding = changed(old, new, &JSTYPE, "changed its jstype")
            .was(jstype(old))
            .now(jstype(new))
            .help(format!("set it again: [jstype = {}]", jstype(old)));
        findings.add(rule::FIELD_SAME_JSTYPE, finding);
    }
    let is_text = |field: &Field<'_>| matches!(field.kind(), Type::TYPE_STRING | Type::TYPE_BYTES);
    if is_text(old) && is_text(new) && !(old.is_of_map && new.is_of_map) {
        let (was, now) = (CppString::of(old), CppString::of(new));
        // A piece of a string is a string to those who read it.
        let widens = was == CppString::Piece && now == CppString::String;
        if was != now && !widens {
            let finding = changed(old, new, &CTYPE, "changed its string type in C++")
                .was(was.name())
                .now(now.name())
                .help("set ctype, or features.(pb.cpp).string_type, as it was");
            findings.add(rule::FIELD_SAME_CPP_STRING_TYPE, finding);
        }
    }
    if old.kind() != Type::TYPE_STRING || new.kind() != Type::TYPE_STRING {
        return;
    }
    let (was, now) = (old.features.utf8_validation, new.features.utf8_validation);
    if was != now {
        let finding = changed(old, new, &[], "changed its check of UTF-8")
            .was(utf8(was))
            .now(utf8(now))
            .help(format!(
                "set features.utf8_validation = {}, or keep the syntax",
                utf8(was)
            ));
        findings.add(rule::FIELD_SAME_UTF8_VALIDATION, finding);
    }
    let (was, now) = (java_utf8(old), java_utf8(new));
    if was != now {
        let finding = changed(old, new, &[], "changed its check of UTF-8 in Java")
            .was(utf8(was))
            .now(utf8(now))
            .help("set java_string_check_utf8, or features.(pb.java).utf8_validation, as it was");
        findings.add(rule::FIELD_SAME_JAVA_UTF8_VALIDATION, finding);
    }
}

fn is_64_bit(kind: Type) -> bool {
    matches!(
        kind,
        Type::TYPE_INT64
            | Type::TYPE_UINT64
            | Type::TYPE_SINT64
            | Type::TYPE_FIXED64
            | Type::TYPE_SFIXED64
    )
}

fn jstype(field: &Field<'_>) -> &'static str {
    let options = field.proto.options.as_option();
    match options.and_then(|options| options.jstype) {
        None | Some(JSType::JS_NORMAL) => "JS_NORMAL",
        Some(JSType::JS_STRING) => "JS_STRING",
        Some(JSType::JS_NUMBER) => "JS_NUMBER",
    }
}

fn utf8(of: Utf8Validation) -> &'static str {
    match of {
        Utf8Validation::Verify => "VERIFY",
        _ => "NONE",
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CppString {
    String,
    Piece,
    Cord,
    View,
}

impl CppString {
    fn of(field: &Field<'_>) -> Self {
        let edition = field.at.file.proto.edition;
        let has_views =
            edition.is_some_and(|edition| edition as i32 >= Edition::EDITION_2024 as i32);
        let options = field.proto.options.as_option();
        let ctype = options.and_then(|options| options.ctype);
        match ctype.filter(|_| !has_views) {
            Some(CType::CORD) => return Self::Cord,
            Some(CType::STRING_PIECE) => return Self::Piece,
            Some(CType::STRING) => return Self::String,
            None => {}
        }
        // The values of `pb.CppFeatures.StringType`.
        match field.languages.cpp_string_type {
            Some(1) => Self::View,
            Some(2) => Self::Cord,
            Some(3) => Self::String,
            _ if has_views => Self::View,
            _ => Self::String,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::String => "STRING",
            Self::Piece => "STRING_PIECE",
            Self::Cord => "CORD",
            Self::View => "VIEW",
        }
    }
}

fn java_utf8(field: &Field<'_>) -> Utf8Validation {
    let file = field.at.file.proto;
    let options = file.options.as_option();
    let by_option = options.and_then(|options| options.java_string_check_utf8);
    let is_editions = file.syntax.as_deref() == Some("editions");
    let verifies = match by_option {
        Some(verifies) => verifies,
        // `pb.JavaFeatures.Utf8Validation.VERIFY`
        None => is_editions && field.languages.java_utf8_validation == Some(2),
    };
    if verifies {
        Utf8Validation::Verify
    } else {
        field.features.utf8_validation
    }
}
