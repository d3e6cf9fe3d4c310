//! Messages: fields, oneofs and reserved numbers that are gone.

use buffa_descriptor::features::JsonFormat;

use super::ranges::{self, Range};
use super::{Finding, Findings};
use crate::index::{Field, Message};
use crate::rule;

/// The highest number of a field, and of one in a message set.
const NUMBER_MAX: i32 = (1 << 29) - 1;
const SET_NUMBER_MAX: i32 = i32::MAX - 1;
/// The option `no_standard_descriptor_accessor` in `DescriptorProto`.
const ACCESSOR: [i32; 2] = [7, 2];

pub(super) fn check(name: &str, old: &Message<'_>, new: &Message<'_>, findings: &mut Findings) {
    check_fields(name, old, new, findings);
    check_oneofs(name, old, new, findings);
    check_required(name, old, new, findings);
    check_reserved(name, old, new, findings);
    check_options(name, old, new, findings);
}

fn check_fields(name: &str, old: &Message<'_>, new: &Message<'_>, findings: &mut Findings) {
    let reserved = reserved(new);
    for (number, old) in &old.fields {
        if new.fields.contains_key(number) {
            continue;
        }
        let gone = Finding::gone(
            &old.at,
            &new.at,
            format!("field {number} {:?} of {name} was deleted", old.name()),
        );
        let finding = gone
            .clone()
            .help("keep the field and mark it deprecated: [deprecated = true]");
        findings.add(rule::FIELD_NO_DELETE, finding);
        if !reserved.iter().any(|range| range.contains(*number)) {
            let finding = gone.clone().help(format!(
                "reserve the number, so that it is not used again: reserved {number};"
            ));
            findings.add(rule::FIELD_NO_DELETE_UNLESS_NUMBER_RESERVED, finding);
        }
        if !new
            .proto
            .reserved_name
            .iter()
            .any(|name| name == old.name())
        {
            let finding = gone.help(format!(
                "reserve the name, so that it is not used again: reserved {:?};",
                old.name()
            ));
            findings.add(rule::FIELD_NO_DELETE_UNLESS_NAME_RESERVED, finding);
        }
    }
}

fn check_oneofs(name: &str, old: &Message<'_>, new: &Message<'_>, findings: &mut Findings) {
    for (index, oneof) in old.proto.oneof_decl.iter().enumerate() {
        // `optional` in proto3 is a oneof that nobody wrote.
        let is_synthetic = old.proto.field.iter().any(|field| {
            field.proto3_optional == Some(true)
                && field.oneof_index.and_then(|at| usize::try_from(at).ok()) == Some(index)
        });
        let mut new_oneofs = new.proto.oneof_decl.iter();
        if is_synthetic || new_oneofs.any(|new| new.name == oneof.name) {
            continue;
        }
        let oneof = oneof.name.as_deref().unwrap_or_default();
        let finding = Finding::gone(
            &old.at,
            &new.at,
            format!("oneof {oneof:?} of {name} was deleted"),
        )
        .help("keep the oneof: code switches over it");
        findings.add(rule::ONEOF_NO_DELETE, finding);
    }
}

fn check_required(name: &str, old: &Message<'_>, new: &Message<'_>, findings: &mut Findings) {
    let is_required = |message: &Message<'_>, number: &i32| {
        let field = message.fields.get(number);
        field.is_some_and(Field::is_required)
    };
    for (number, field) in old.fields.iter().filter(|(_, field)| field.is_required()) {
        if !is_required(new, number) {
            let place = new.fields.get(number).map_or(&new.at, |field| &field.at);
            let message = format!(
                "required field {number} {:?} of {name} was deleted, or is required no longer",
                field.name()
            );
            let finding = Finding::gone(&field.at, place, message)
                .help("keep it required: older readers refuse messages without it");
            findings.add(rule::MESSAGE_SAME_REQUIRED_FIELDS, finding);
        }
    }
    for (number, field) in new.fields.iter().filter(|(_, field)| field.is_required()) {
        if !is_required(old, number) {
            let message = format!(
                "required field {number} {:?} of {name} was added, or became required",
                field.name()
            );
            let finding = Finding {
                place: Some(field.at.place()),
                old_place: old.fields.get(number).map(|field| field.at.place()),
                message,
                was: None,
                now: None,
                help: "make it optional: older writers send messages without it".to_owned(),
            };
            findings.add(rule::MESSAGE_SAME_REQUIRED_FIELDS, finding);
        }
    }
}

fn check_reserved(name: &str, old: &Message<'_>, new: &Message<'_>, findings: &mut Findings) {
    let is_set = new.proto.options.as_option();
    let is_set = is_set.is_some_and(|options| options.message_set_wire_format == Some(true));
    let number_max = if is_set { SET_NUMBER_MAX } else { NUMBER_MAX };
    let extensions = |message: &Message<'_>| {
        let ranges = message.proto.extension_range.iter();
        let range = ranges.filter_map(|range| Range::until(range.start, range.end));
        range.collect::<Vec<_>>()
    };
    for (rule, kind, olds, news) in [
        (
            rule::RESERVED_MESSAGE_NO_DELETE,
            "reserved",
            reserved(old),
            reserved(new),
        ),
        (
            rule::EXTENSION_MESSAGE_NO_DELETE,
            "extensions",
            extensions(old),
            extensions(new),
        ),
    ] {
        for (range, missing) in ranges::missing(&olds, &news) {
            let message = format!(
                "{name} no longer has all of `{kind} {}`",
                range.text(number_max)
            );
            let finding = Finding::gone(&old.at, &new.at, message)
                .was(range.text(number_max))
                .now(format!("without {}", ranges::list(&missing, number_max)))
                .help(format!(
                    "write it again: {kind} {};",
                    ranges::list(&missing, number_max)
                ));
            findings.add(rule, finding);
        }
    }
    for reserved in &old.proto.reserved_name {
        if !new.proto.reserved_name.contains(reserved) {
            let message = format!("{name} no longer reserves the name {reserved:?}");
            let finding = Finding::gone(&old.at, &new.at, message)
                .help(format!("write it again: reserved {reserved:?};"));
            findings.add(rule::RESERVED_MESSAGE_NO_DELETE, finding);
        }
    }
}

fn check_options(name: &str, old: &Message<'_>, new: &Message<'_>, findings: &mut Findings) {
    let hides = |message: &Message<'_>| {
        let options = message.proto.options.as_option();
        options.is_some_and(|options| options.no_standard_descriptor_accessor == Some(true))
    };
    if !hides(old) && hides(new) {
        let message = format!("{name} lost its descriptor() method");
        let (old, new) = (old.at.place_of(&ACCESSOR), new.at.place_of(&ACCESSOR));
        let finding = Finding::changed(old, new, message)
            .was("no_standard_descriptor_accessor = false")
            .now("no_standard_descriptor_accessor = true")
            .help("take the option away again");
        findings.add(
            rule::MESSAGE_NO_REMOVE_STANDARD_DESCRIPTOR_ACCESSOR,
            finding,
        );
    }
    if let (JsonFormat::Allow, JsonFormat::LegacyBestEffort) =
        (old.features.json_format, new.features.json_format)
    {
        let message = format!("{name} is no longer sure to have a JSON form");
        let finding = Finding::changed(old.at.place(), new.at.place(), message)
            .was("json_format ALLOW")
            .now("json_format LEGACY_BEST_EFFORT")
            .help("set features.json_format = ALLOW, or keep proto3");
        findings.add(rule::MESSAGE_SAME_JSON_FORMAT, finding);
    }
}

fn reserved(message: &Message<'_>) -> Vec<Range> {
    let ranges = message.proto.reserved_range.iter();
    let range = ranges.filter_map(|range| Range::until(range.start, range.end));
    range.collect()
}
