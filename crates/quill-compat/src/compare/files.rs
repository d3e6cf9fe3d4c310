//! Files as wholes, and their options.

use buffa_descriptor::generated::descriptor::FileOptions;
use buffa_descriptor::generated::descriptor::file_options::OptimizeMode;

use super::{Finding, Findings, Pair};
use crate::place::{At, FileInfo};
use crate::rule::{self, Rule};

/// Numbers of fields in `FileDescriptorProto`.
const PACKAGE: i32 = 2;
const OPTIONS: i32 = 8;
const SYNTAX: i32 = 12;
const EDITION: i32 = 14;

pub(super) fn check(pair: &Pair<'_>, findings: &mut Findings) {
    for (name, old) in &pair.old.files {
        let Some(new) = pair.new.files.get(name) else {
            let finding = Finding {
                place: None,
                old_place: Some(At::file(old).place()),
                message: format!("file {name} was deleted"),
                was: None,
                now: None,
                help: format!("bring {name} back: what generates code by file still includes it"),
            };
            findings.add(rule::FILE_NO_DELETE, finding);
            continue;
        };
        let mut same = |rule: Rule, what: &str, part: &[i32], was: String, now: String| {
            if was == now {
                return;
            }
            let (old, new) = (At::file(old).place_of(part), At::file(new).place_of(part));
            let finding = Finding::changed(old, new, format!("file {name} changed its {what}"))
                .was(quoted(&was))
                .now(quoted(&now))
                .help(format!("set {what} to {} again", quoted(&was)));
            findings.add(rule, finding);
        };
        same(
            rule::FILE_SAME_PACKAGE,
            "package",
            &[PACKAGE],
            old.package().to_owned(),
            new.package().to_owned(),
        );
        let part = if new.proto.syntax.as_deref() == Some("editions") {
            EDITION
        } else {
            SYNTAX
        };
        same(
            rule::FILE_SAME_SYNTAX,
            "syntax",
            &[part],
            syntax(old),
            syntax(new),
        );
        for option in options() {
            let read = |file: &FileInfo<'_>| (option.read)(file.proto.options.as_option());
            let part = [OPTIONS, option.number];
            same(option.rule, option.name, &part, read(old), read(new));
        }
    }
}

fn syntax(file: &FileInfo<'_>) -> String {
    file.proto.syntax.as_deref().unwrap_or("proto2").to_owned()
}

fn quoted(value: &str) -> String {
    format!("{value:?}")
}

/// An option of files that generated code depends on.
struct FileOption {
    rule: Rule,
    name: &'static str,
    /// Its number in `FileOptions`.
    number: i32,
    read: fn(Option<&FileOptions>) -> String,
}

/// An option that is text; empty where it is not set.
macro_rules! text {
    ($rule:ident, $name:ident, $number:literal) => {
        FileOption {
            rule: rule::$rule,
            name: stringify!($name),
            number: $number,
            read: |options| {
                let value = options.and_then(|options| options.$name.clone());
                value.unwrap_or_default()
            },
        }
    };
}

/// An option that is true or false.
macro_rules! flag {
    ($rule:ident, $name:ident, $number:literal, $default:literal) => {
        FileOption {
            rule: rule::$rule,
            name: stringify!($name),
            number: $number,
            read: |options| {
                let value = options.and_then(|options| options.$name);
                value.unwrap_or($default).to_string()
            },
        }
    };
}

/// The options, with their defaults where they are not set.
fn options() -> Vec<FileOption> {
    vec![
        text!(FILE_SAME_JAVA_PACKAGE, java_package, 1),
        text!(FILE_SAME_JAVA_OUTER_CLASSNAME, java_outer_classname, 8),
        FileOption {
            rule: rule::FILE_SAME_OPTIMIZE_FOR,
            name: "optimize_for",
            number: 9,
            read: |options| {
                let value = options.and_then(|options| options.optimize_for);
                match value.unwrap_or(OptimizeMode::SPEED) {
                    OptimizeMode::SPEED => "SPEED",
                    OptimizeMode::CODE_SIZE => "CODE_SIZE",
                    OptimizeMode::LITE_RUNTIME => "LITE_RUNTIME",
                }
                .to_owned()
            },
        },
        flag!(
            FILE_SAME_JAVA_MULTIPLE_FILES,
            java_multiple_files,
            10,
            false
        ),
        text!(FILE_SAME_GO_PACKAGE, go_package, 11),
        flag!(
            FILE_SAME_CC_GENERIC_SERVICES,
            cc_generic_services,
            16,
            false
        ),
        flag!(
            FILE_SAME_JAVA_GENERIC_SERVICES,
            java_generic_services,
            17,
            false
        ),
        flag!(
            FILE_SAME_PY_GENERIC_SERVICES,
            py_generic_services,
            18,
            false
        ),
        flag!(FILE_SAME_CC_ENABLE_ARENAS, cc_enable_arenas, 31, true),
        text!(FILE_SAME_OBJC_CLASS_PREFIX, objc_class_prefix, 36),
        text!(FILE_SAME_CSHARP_NAMESPACE, csharp_namespace, 37),
        text!(FILE_SAME_SWIFT_PREFIX, swift_prefix, 39),
        text!(FILE_SAME_PHP_CLASS_PREFIX, php_class_prefix, 40),
        text!(FILE_SAME_PHP_NAMESPACE, php_namespace, 41),
        text!(FILE_SAME_PHP_METADATA_NAMESPACE, php_metadata_namespace, 44),
        text!(FILE_SAME_RUBY_PACKAGE, ruby_package, 45),
    ]
}
