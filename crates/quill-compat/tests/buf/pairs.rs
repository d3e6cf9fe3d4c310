//! Pairs of schemas: the base with one edit, with several, and small schemas
//! for every combination of types, cardinalities and options.

use std::collections::BTreeMap;

use crate::edits::{EDITS, Edit, LEGACY, SHOP, TYPES};
use crate::oracle;

/// Names and texts of files.
pub(crate) type Files = BTreeMap<String, String>;

pub(crate) struct Pair {
    pub(crate) name: String,
    pub(crate) old: Files,
    pub(crate) new: Files,
}

/// Every pair whose schemas the compiler of this workspace reads.
pub(crate) fn all() -> Vec<Pair> {
    let mut pairs = vec![pair("nothing changes", base(), base())];
    pairs.extend(
        EDITS
            .iter()
            .map(|edit| pair(edit.0, base(), edited(base(), edit).unwrap())),
    );
    pairs.extend(backwards());
    pairs.extend(mixtures());
    pairs.extend(moves());
    pairs.extend(scalars());
    pairs.extend(cardinalities());
    pairs.extend(file_options());
    pairs
}

fn pair(name: &str, old: Files, new: Files) -> Pair {
    let name = name.to_owned();
    Pair { name, old, new }
}

fn base() -> Files {
    let files = [
        (SHOP, include_str!("base/shop/v1/shop.proto")),
        (TYPES, include_str!("base/shop/v1/types.proto")),
        (LEGACY, include_str!("base/legacy/v1/legacy.proto")),
    ];
    let files = files.map(|(name, text)| (name.to_owned(), text.to_owned()));
    files.into()
}

/// The files with an edit; `None` when another edit took its place away.
fn edited(mut files: Files, (name, file, from, to): &Edit) -> Option<Files> {
    let text = files.get_mut(*file)?;
    let places = text.matches(from).count();
    if places == 0 {
        return None;
    }
    assert_eq!(places, 1, "{name}: {from:?} is not once in {file}");
    *text = text.replacen(from, to, 1);
    // Some edits need their uses, or what they no longer use, to follow.
    let follow: &[(&str, &str)] = match *name {
        "rename nested message" => &[
            ("Item item ", "Thing item "),
            ("repeated Item", "repeated Thing"),
        ],
        "nested enum is renamed" => &[("Size size", "Extent size")],
        "nested message moves out" => &[("  Item item ", "  .shop.v1.Item item ")],
        "import goes" => &[("import \"google/protobuf/timestamp.proto\";\n", "")],
        _ => &[],
    };
    for (from, to) in follow {
        *text = text.replace(from, to);
    }
    Some(files)
}

/// What an edit adds goes, and what it takes away comes.
fn backwards() -> impl Iterator<Item = Pair> {
    let edits = EDITS.iter().step_by(3);
    edits.map(|edit| {
        let name = format!("undone, {}", edit.0);
        pair(&name, edited(base(), edit).unwrap(), base())
    })
}

/// Several edits at once, by a generator of numbers that always gives the same.
fn mixtures() -> Vec<Pair> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % below as u64).unwrap()
    };
    let mut pairs = Vec::new();
    while pairs.len() < 60 {
        let mut files = base();
        let mut names: Vec<&str> = Vec::new();
        for _ in 0..2 + next(4) {
            let edit = &EDITS[next(EDITS.len())];
            // Two edits of one line may contradict each other.
            let is_apart = |name: &&str| {
                let other = EDITS.iter().find(|edit| edit.0 == *name).unwrap();
                other.1 != edit.1 || !(other.2.contains(edit.2) || edit.2.contains(other.2))
            };
            if !names.iter().all(is_apart) {
                continue;
            }
            if let Some(more) = edited(files.clone(), edit) {
                files = more;
                names.push(edit.0);
            }
        }
        let name = format!("mixed {}, {}", pairs.len(), names.join(" + "));
        // One may have taken what another needs.
        if names.len() > 1 && oracle::try_compile(&files).is_some() {
            pairs.push(pair(&name, base(), files));
        }
    }
    pairs
}

/// Declarations and files that go elsewhere.
fn moves() -> Vec<Pair> {
    let without = |files: &mut Files, file: &str, text: &str| {
        let from = files.get_mut(file).unwrap();
        assert!(from.contains(text), "{text}");
        *from = from.replacen(text, "", 1);
    };
    let status = "enum Status {\n  STATUS_UNSPECIFIED = 0;\n  STATUS_OPEN = 1;\n  STATUS_CLOSED = 2;\n  STATUS_LOST = 3;\n}\n";
    let address = "message Address {\n  string street = 1;\n  string city = 2;\n}\n";
    let admin = "service Admin {\n  rpc Purge(Empty) returns (Empty);\n}\n";
    let rank = "extend Account {\n  optional int32 rank = 30;\n}\n";
    let mut pairs = Vec::new();
    for (name, text) in [("enum", status), ("service", admin)] {
        let mut new = base();
        without(&mut new, SHOP, text);
        let file = if name == "enum" {
            TYPES
        } else {
            "shop/v1/admin.proto"
        };
        let head = "syntax = \"proto3\";\n\npackage shop.v1;\n\nimport \"shop/v1/shop.proto\";\n\n";
        new.entry(file.to_owned())
            .or_insert_with(|| head.to_owned())
            .push_str(text);
        pairs.push(pair(&format!("{name} moves to another file"), base(), new));
    }
    let mut new = base();
    without(&mut new, TYPES, address);
    new.get_mut(SHOP).unwrap().push_str(address);
    pairs.push(pair("message moves to another file", base(), new));
    let mut new = base();
    without(&mut new, LEGACY, rank);
    new.insert(
        "legacy/v1/ranks.proto".to_owned(),
        format!("syntax = \"proto2\";\n\npackage legacy.v1;\n\nimport \"legacy/v1/legacy.proto\";\n\n{rank}"),
    );
    pairs.push(pair("extension moves to another file", base(), new));

    let mut new = base();
    new.remove(LEGACY);
    pairs.push(pair("file is deleted with its package", base(), new));
    let mut new = base();
    let text = new.remove(LEGACY).unwrap();
    new.insert("legacy/v1/account.proto".to_owned(), text);
    pairs.push(pair("file is renamed", base(), new));
    let mut new = base();
    let text = new.get_mut(LEGACY).unwrap();
    *text = text.replace("package legacy.v1;", "package legacy.v2;");
    pairs.push(pair("package changes", base(), new));
    let mut new = base();
    let text = new
        .remove(LEGACY)
        .unwrap()
        .replace("legacy.v1", "legacy.v2");
    new.insert("legacy/v2/legacy.proto".to_owned(), text);
    pairs.push(pair("file moves to another package", base(), new));
    let mut new = base();
    let text = new[LEGACY].replace("legacy.v1", "legacy.v2");
    new.insert("legacy/v2/legacy.proto".to_owned(), text);
    pairs.push(pair("package comes", base(), new));
    let mut new = base();
    let text = new.get_mut(LEGACY).unwrap();
    *text = text.replace("package legacy.v1;\n", "");
    pairs.push(pair("package goes", base(), new));
    let mut new = base();
    for text in new.values_mut() {
        *text = text.replace("Address", "Location");
    }
    pairs.push(pair("message is renamed everywhere", base(), new));
    let mut new = base();
    for text in new.values_mut() {
        *text = text.replace("Colour", "Color");
    }
    pairs.push(pair("enum is renamed everywhere", base(), new));
    let mut new = base();
    let text = new.get_mut(LEGACY).unwrap();
    *text = text.replace("syntax = \"proto2\";\n\n", "");
    pairs.push(pair("syntax is left out", base(), new));
    let text = "message M { optional string s = 1; repeated int32 n = 2; optional E e = 3; }\nenum E { E_ZERO = 0; }\n";
    let (proto2, proto3) = (one_file("proto2", text), one_file("proto3", text));
    pairs.push(pair("proto2 to proto3", proto2.clone(), proto3.clone()));
    pairs.push(pair("proto3 to proto2", proto3, proto2));
    let mut old = base();
    old.clear();
    old.insert(
        "a.proto".to_owned(),
        "syntax = \"proto3\";\nmessage A { B b = 1; }\nmessage B { int32 n = 1; }\n".to_owned(),
    );
    let mut new = old.clone();
    new.insert(
        "a.proto".to_owned(),
        "syntax = \"proto3\";\nmessage A { B b = 1; message B { int32 n = 1; } }\n".to_owned(),
    );
    pairs.push(pair("message becomes nested", old.clone(), new.clone()));
    pairs.push(pair("message is nested no longer", new, old));
    pairs
}

const SCALARS: &[&str] = &[
    "double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes",
    "uint32", "sfixed32", "sfixed64", "sint32", "sint64",
];

/// From every type to every other.
fn scalars() -> Vec<Pair> {
    let file = |name: &str| {
        one_file(
            "proto3",
            &format!("message M {{ {name} f = 1; }}\nmessage N {{}}\nenum E {{ E_ZERO = 0; }}\n"),
        )
    };
    let types = || SCALARS.iter().chain(&["N", "E"]);
    let mut pairs = Vec::new();
    for old in types() {
        for new in types().filter(|new| *new != old) {
            pairs.push(pair(&format!("type {old} to {new}"), file(old), file(new)));
        }
    }
    pairs
}

fn one_file(syntax: &str, text: &str) -> Files {
    let text = format!("syntax = \"{syntax}\";\n\npackage a.v1;\n\n{text}");
    [(ONE_FILE.to_owned(), text)].into()
}

/// The file of pairs that have one, in a package of its own.
pub(crate) const ONE_FILE: &str = "a/v1/a.proto";

/// A pair's only file, which many pairs may be looked at with at once when the
/// package is `to`.
pub(crate) fn only_file(files: &Files, to: &str) -> Option<String> {
    let text = files.get(ONE_FILE).filter(|_| files.len() == 1)?;
    Some(text.replace("package a.v1;", &format!("package {to};")))
}

/// From every cardinality to every other, in both syntaxes, of a number and of
/// a message.
fn cardinalities() -> Vec<Pair> {
    let mut pairs = Vec::new();
    for syntax in ["proto2", "proto3"] {
        let labels: &[(&str, &str)] = if syntax == "proto2" {
            &[
                ("optional", "optional T f = 1;"),
                ("required", "required T f = 1;"),
            ]
        } else {
            &[("plain", "T f = 1;"), ("optional", "optional T f = 1;")]
        };
        let more = [
            ("repeated", "repeated T f = 1;"),
            ("map", "map<string, T> f = 1;"),
            ("oneof", "oneof o { T f = 1; }"),
        ];
        let labels: Vec<_> = labels.iter().copied().chain(more).collect();
        for of in ["int32", "string", "N"] {
            let file = |field: &str| {
                one_file(
                    syntax,
                    &format!(
                        "message M {{ {} }}\nmessage N {{}}\n",
                        field.replace('T', of)
                    ),
                )
            };
            for (old_name, old) in &labels {
                for (new_name, new) in labels.iter().filter(|(name, _)| name != old_name) {
                    let name = format!("{syntax} {of}, {old_name} to {new_name}");
                    pairs.push(pair(&name, file(old), file(new)));
                }
            }
        }
    }
    pairs
}

/// Options of files: unset, one value and another.
fn file_options() -> Vec<Pair> {
    let texts = [
        "java_package",
        "java_outer_classname",
        "go_package",
        "objc_class_prefix",
        "csharp_namespace",
        "swift_prefix",
        "php_class_prefix",
        "php_namespace",
        "php_metadata_namespace",
        "ruby_package",
    ];
    let flags = [
        "java_multiple_files",
        "cc_generic_services",
        "java_generic_services",
        "py_generic_services",
        "cc_enable_arenas",
        "deprecated",
    ];
    let mut values: Vec<(&str, [&str; 2])> = vec![("optimize_for", ["SPEED", "CODE_SIZE"])];
    values.extend(texts.map(|name| (name, ["\"A\"", "\"B\""])));
    values.extend(flags.map(|name| (name, ["false", "true"])));
    let file = |option: &str| one_file("proto3", &format!("{option}\nmessage M {{}}\n"));
    let mut pairs = Vec::new();
    for (name, [one, other]) in values {
        let option = |value: &str| file(&format!("option {name} = {value};"));
        pairs.push(pair(
            &format!("option {name} comes as {one}"),
            file(""),
            option(one),
        ));
        pairs.push(pair(
            &format!("option {name} comes as {other}"),
            file(""),
            option(other),
        ));
        pairs.push(pair(
            &format!("option {name} changes"),
            option(one),
            option(other),
        ));
        pairs.push(pair(
            &format!("option {name} goes"),
            option(other),
            file(""),
        ));
    }
    pairs
}

/// Pairs with editions.
pub(crate) fn editions() -> Vec<Pair> {
    let file = |options: &str, text: &str| -> Files {
        let text = format!("edition = \"2023\";\n\npackage a.v1;\n\n{options}\n{text}\n");
        [("a/v1/a.proto".to_owned(), text)].into()
    };
    let text = "message M { string s = 1; int32 n = 2; M m = 3; E e = 4; repeated int32 l = 5; }\nenum E { E_ZERO = 0; }";
    let base = || file("", text);
    let with = |from: &str, to: &str| file("", &text.replace(from, to));
    let proto3 = || one_file("proto3", text);
    let mut pairs = vec![
        pair("nothing", base(), base()),
        pair("from proto3", proto3(), base()),
        pair(
            "from proto3, kept",
            proto3(),
            file("option features.field_presence = IMPLICIT;", text),
        ),
        pair("to proto3", base(), proto3()),
        pair(
            "field implicit",
            base(),
            with("n = 2", "n = 2 [features.field_presence = IMPLICIT]"),
        ),
        pair(
            "delimited",
            base(),
            with("m = 3", "m = 3 [features.message_encoding = DELIMITED]"),
        ),
        pair(
            "expanded",
            base(),
            with(
                "l = 5",
                "l = 5 [features.repeated_field_encoding = EXPANDED]",
            ),
        ),
        pair(
            "utf8 of a field",
            base(),
            with("s = 1", "s = 1 [features.utf8_validation = NONE]"),
        ),
        pair(
            "message json",
            base(),
            with(
                "M { ",
                "M { option features.json_format = LEGACY_BEST_EFFORT; ",
            ),
        ),
        pair(
            "enum json",
            base(),
            with(
                "E { ",
                "E { option features.json_format = LEGACY_BEST_EFFORT; ",
            ),
        ),
        pair(
            "enum closed",
            base(),
            with("E { ", "E { option features.enum_type = CLOSED; "),
        ),
    ];
    for option in [
        "features.field_presence = IMPLICIT",
        "features.enum_type = CLOSED",
        "features.utf8_validation = NONE",
        "features.message_encoding = DELIMITED",
        "features.json_format = LEGACY_BEST_EFFORT",
    ] {
        let option = format!("option {option};");
        // A closed enum is nothing for fields without presence.
        pairs.push(pair(&option, base(), file(&option, text)));
    }
    let cpp = "import \"google/protobuf/cpp_features.proto\";\nimport \"google/protobuf/java_features.proto\";";
    let plain = || file(cpp, text);
    let special = |feature: &str| {
        file(
            cpp,
            &text.replace("s = 1", &format!("s = 1 [features.{feature}]")),
        )
    };
    pairs.push(pair(
        "cpp cord",
        plain(),
        special("(pb.cpp).string_type = CORD"),
    ));
    pairs.push(pair(
        "cpp string",
        plain(),
        special("(pb.cpp).string_type = STRING"),
    ));
    pairs.push(pair(
        "java verify",
        plain(),
        special("(pb.java).utf8_validation = VERIFY"),
    ));
    let none = |feature: &str| {
        let features = format!("s = 1 [features.utf8_validation = NONE{feature}]");
        file(cpp, &text.replace("s = 1", &features))
    };
    pairs.push(pair(
        "java verify where nothing does",
        none(""),
        none(", features.(pb.java).utf8_validation = VERIFY"),
    ));
    pairs
}
