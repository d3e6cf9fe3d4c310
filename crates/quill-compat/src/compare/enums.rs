//! Enums: their values, names and reserved numbers.

use std::collections::{BTreeMap, BTreeSet};

use buffa_descriptor::features::{EnumType, JsonFormat};

use super::ranges::{self, Range};
use super::{Finding, Findings};
use crate::index::Enum;
use crate::place::At;
use crate::rule;

/// Numbers of fields in `EnumDescriptorProto` and `EnumValueDescriptorProto`.
const VALUE: i32 = 2;
const VALUE_NUMBER: [i32; 1] = [2];

pub(super) fn check(name: &str, old: &Enum<'_>, new: &Enum<'_>, findings: &mut Findings) {
    check_values(name, old, new, findings);
    check_features(name, old, new, findings);
    check_reserved(name, old, new, findings);
}

/// The names of each number, and where the last is.
struct Names<'a> {
    names: BTreeSet<&'a str>,
    at: At<'a>,
}

fn names_by_number<'a>(of: &Enum<'a>) -> BTreeMap<i32, Names<'a>> {
    let mut numbers: BTreeMap<i32, Names<'a>> = BTreeMap::new();
    for (index, value) in of.proto.value.iter().enumerate() {
        let at = of.at.item(VALUE, index);
        let number = value.number.unwrap_or_default();
        let entry = numbers.entry(number).or_insert_with(|| Names {
            names: BTreeSet::new(),
            at: at.clone(),
        });
        entry
            .names
            .insert(value.name.as_deref().unwrap_or_default());
        entry.at = at;
    }
    numbers
}

fn check_values(name: &str, old: &Enum<'_>, new: &Enum<'_>, findings: &mut Findings) {
    let news = names_by_number(new);
    for (number, value) in names_by_number(old) {
        let was = value.names.iter().copied().collect::<Vec<_>>().join(", ");
        let Some(now) = news.get(&number) else {
            check_deleted(name, number, &value, new, findings);
            continue;
        };
        // A name more, in an alias, takes none away.
        if !value.names.is_subset(&now.names) {
            let place = |at: &At<'_>| at.place_of(&VALUE_NUMBER);
            let message = format!("value {number} of enum {name} changed its name");
            let finding = Finding::changed(place(&value.at), place(&now.at), message)
                .was(was.clone())
                .now(now.names.iter().copied().collect::<Vec<_>>().join(", "))
                .help(format!(
                    "call it {was} again, and give a new value a new number"
                ));
            findings.add(rule::ENUM_VALUE_SAME_NAME, finding);
        }
    }
}

fn check_deleted(
    name: &str,
    number: i32,
    value: &Names<'_>,
    new: &Enum<'_>,
    findings: &mut Findings,
) {
    let was = value.names.iter().copied().collect::<Vec<_>>().join(", ");
    let message = format!("value {number} {was} of enum {name} was deleted");
    let gone = Finding::gone(&value.at, &new.at, message);
    let finding = gone
        .clone()
        .help("keep the value and mark it deprecated: [deprecated = true]");
    findings.add(rule::ENUM_VALUE_NO_DELETE, finding);
    if !reserved(new).iter().any(|range| range.contains(number)) {
        let finding = gone.clone().help(format!(
            "reserve the number, so that it is not used again: reserved {number};"
        ));
        findings.add(rule::ENUM_VALUE_NO_DELETE_UNLESS_NUMBER_RESERVED, finding);
    }
    let is_reserved = |name: &&str| {
        new.proto
            .reserved_name
            .iter()
            .any(|reserved| reserved == name)
    };
    if !value.names.iter().all(is_reserved) {
        let names: Vec<_> = value.names.iter().map(|name| format!("{name:?}")).collect();
        let finding = gone.help(format!(
            "reserve the name, so that it is not used again: reserved {};",
            names.join(", ")
        ));
        findings.add(rule::ENUM_VALUE_NO_DELETE_UNLESS_NAME_RESERVED, finding);
    }
}

fn check_features(name: &str, old: &Enum<'_>, new: &Enum<'_>, findings: &mut Findings) {
    let (was, now) = (old.features.enum_type, new.features.enum_type);
    if was != now {
        let said = |of: EnumType| match of {
            EnumType::Closed => "closed",
            _ => "open",
        };
        let message = format!("enum {name} became {}", said(now));
        let finding = Finding::changed(old.at.place(), new.at.place(), message)
            .was(said(was))
            .now(said(now))
            .help("keep the syntax, or set features.enum_type as it was");
        findings.add(rule::ENUM_SAME_TYPE, finding);
    }
    if old.features.json_format == JsonFormat::Allow
        && new.features.json_format != JsonFormat::Allow
    {
        let message = format!("enum {name} is no longer sure to have a JSON form");
        let finding = Finding::changed(old.at.place(), new.at.place(), message)
            .was("json_format ALLOW")
            .now("json_format LEGACY_BEST_EFFORT")
            .help("keep the syntax, or set features.json_format = ALLOW");
        findings.add(rule::ENUM_SAME_JSON_FORMAT, finding);
    }
}

fn check_reserved(name: &str, old: &Enum<'_>, new: &Enum<'_>, findings: &mut Findings) {
    for (range, missing) in ranges::missing(&reserved(old), &reserved(new)) {
        let missing = ranges::list(&missing, i32::MAX);
        let range = range.text(i32::MAX);
        let message = format!("enum {name} no longer has all of `reserved {range}`");
        let finding = Finding::gone(&old.at, &new.at, message)
            .was(range)
            .now(format!("without {missing}"))
            .help(format!("write it again: reserved {missing};"));
        findings.add(rule::RESERVED_ENUM_NO_DELETE, finding);
    }
    for reserved in &old.proto.reserved_name {
        if !new.proto.reserved_name.contains(reserved) {
            let message = format!("enum {name} no longer reserves the name {reserved:?}");
            let finding = Finding::gone(&old.at, &new.at, message)
                .help(format!("write it again: reserved {reserved:?};"));
            findings.add(rule::RESERVED_ENUM_NO_DELETE, finding);
        }
    }
}

fn reserved(of: &Enum<'_>) -> Vec<Range> {
    let ranges = of.proto.reserved_range.iter();
    let range = ranges.filter_map(|range| Range::to(range.start, range.end));
    range.collect()
}
