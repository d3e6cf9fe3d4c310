//! What files, and what packages, no longer declare.

use std::collections::BTreeSet;
use std::collections::btree_map::BTreeMap;

use super::{Finding, Findings, Pair};
use crate::index::Index;
use crate::place::At;
use crate::rule::{self, Rule};

/// A kind of declaration, and its rules for files and for packages.
struct Kind {
    name: &'static str,
    in_file: Rule,
    in_package: Rule,
    declared: for<'i, 'a> fn(&'i Index<'a>) -> Vec<(&'i str, &'i At<'a>)>,
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "message",
        in_file: rule::MESSAGE_NO_DELETE,
        in_package: rule::PACKAGE_MESSAGE_NO_DELETE,
        declared: |index| {
            let messages = index.messages.iter();
            messages.map(|(name, of)| (&name[..], &of.at)).collect()
        },
    },
    Kind {
        name: "enum",
        in_file: rule::ENUM_NO_DELETE,
        in_package: rule::PACKAGE_ENUM_NO_DELETE,
        declared: |index| {
            let enums = index.enums.iter();
            enums.map(|(name, of)| (&name[..], &of.at)).collect()
        },
    },
    Kind {
        name: "service",
        in_file: rule::SERVICE_NO_DELETE,
        in_package: rule::PACKAGE_SERVICE_NO_DELETE,
        declared: |index| {
            let services = index.services.iter();
            services.map(|(name, of)| (&name[..], &of.at)).collect()
        },
    },
    Kind {
        name: "extension",
        in_file: rule::EXTENSION_NO_DELETE,
        in_package: rule::PACKAGE_EXTENSION_NO_DELETE,
        declared: |index| {
            let extensions = index.extensions.values();
            extensions.map(|of| (&of.full_name[..], &of.at)).collect()
        },
    },
];

/// What files that are still there have lost, to other files or altogether. A
/// declaration is the same one when its name below the package is.
pub(super) fn check_files(pair: &Pair<'_>, findings: &mut Findings) {
    for kind in &KINDS {
        let old = (kind.declared)(pair.old);
        let new = (kind.declared)(pair.new);
        let homes: BTreeMap<_, _> = new.iter().copied().collect();
        let of_files: BTreeSet<_> = new
            .iter()
            .map(|(name, at)| (at.file.name(), nested_name(name, at)))
            .collect();
        for (name, old) in old {
            let file = old.file.name();
            let Some(new_file) = pair.new.files.get(file) else {
                continue;
            };
            if of_files.contains(&(file, nested_name(name, old))) {
                continue;
            }
            let kind_name = kind.name;
            let finding = match homes.get(name) {
                Some(home) => {
                    let other = home.file.name();
                    let message = format!("{kind_name} {name} moved from {file} to {other}");
                    Finding::changed(old.place(), home.place(), message)
                        .was(file)
                        .now(other)
                        .help(format!(
                            "declare it in {file} again, where code includes it from"
                        ))
                }
                None => {
                    let message = format!("{kind_name} {name} was deleted from {file}");
                    let around = around(name, pair.new, file).unwrap_or_else(|| At::file(new_file));
                    Finding::changed(old.place(), around.place(), message)
                        .help(format!("keep it, and mark it deprecated: {DEPRECATED}"))
                }
            };
            findings.add(kind.in_file, finding);
        }
    }
}

const DEPRECATED: &str = "option deprecated = true;";

/// What packages have lost, and which packages are gone.
pub(super) fn check_packages(pair: &Pair<'_>, findings: &mut Findings) {
    let new_packages = packages(pair.new);
    for (package, file) in packages(pair.old) {
        if !new_packages.contains_key(package) {
            let finding = Finding {
                place: None,
                old_place: Some(file.place()),
                message: format!("package {package:?} was deleted"),
                was: None,
                now: None,
                help: format!(
                    "bring package {package:?} back, or publish what replaces it beside it"
                ),
            };
            findings.add(rule::PACKAGE_NO_DELETE, finding);
        }
    }
    for kind in &KINDS {
        let new: BTreeSet<_> = (kind.declared)(pair.new)
            .into_iter()
            .map(|(name, at)| (at.file.package(), nested_name(name, at)))
            .collect();
        for (name, old) in (kind.declared)(pair.old) {
            let package = old.file.package();
            let nested = nested_name(name, old);
            if !new_packages.contains_key(package) || new.contains(&(package, nested)) {
                continue;
            }
            let file = old.file.name();
            let place = pair.new.files.get(file).map(|file_info| {
                let around = around(name, pair.new, file);
                around.unwrap_or_else(|| At::file(file_info)).place()
            });
            let finding = Finding {
                place,
                old_place: Some(old.place()),
                message: format!(
                    "{} {nested} was deleted from package {package:?}",
                    kind.name
                ),
                was: None,
                now: None,
                help: format!("keep it, and mark it deprecated: {DEPRECATED}"),
            };
            findings.add(kind.in_package, finding);
        }
    }
}

/// Each package with its first file.
fn packages<'a>(index: &Index<'a>) -> BTreeMap<&'a str, At<'a>> {
    let mut packages = BTreeMap::new();
    for file in index.files.values() {
        packages
            .entry(file.package())
            .or_insert_with(|| At::file(file));
    }
    packages
}

/// A full name without its package.
fn nested_name<'n>(full_name: &'n str, at: &At<'_>) -> &'n str {
    let below = full_name.strip_prefix(at.file.package());
    let below = below.map(|name| name.trim_start_matches('.'));
    below.unwrap_or(full_name)
}

/// The closest message of a file that is still around where a name was.
fn around<'a>(full_name: &str, new: &Index<'a>, file: &str) -> Option<At<'a>> {
    let mut name = full_name;
    while let Some((around, _)) = name.rsplit_once('.') {
        let message = new.messages.get(around);
        if let Some(message) = message.filter(|message| message.at.file.name() == file) {
            return Some(message.at.clone());
        }
        name = around;
    }
    None
}
