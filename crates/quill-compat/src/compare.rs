//! The old schema beside the new one, rule by rule.

mod declared;
mod default;
mod enums;
mod field_type;
mod fields;
mod files;
mod messages;
mod ranges;
mod services;

use buffa_descriptor::generated::descriptor::FileDescriptorProto;

use crate::breakage::Break;
use crate::index::Index;
use crate::place::{At, Place};
use crate::rule::{Rule, RuleSet};

/// What of the old schema no longer works with the new one, by the rules of a
/// set, in the order of places.
///
/// Both are whole: with all the files that they import, as a descriptor set
/// built with imports is. Places need source info.
#[must_use]
pub fn compare(
    old: &[FileDescriptorProto],
    new: &[FileDescriptorProto],
    set: RuleSet,
) -> Vec<Break> {
    let (old, new) = (Index::new(old), Index::new(new));
    let mut findings = Findings {
        set,
        found: Vec::new(),
    };
    let pair = Pair {
        old: &old,
        new: &new,
    };
    files::check(&pair, &mut findings);
    declared::check_files(&pair, &mut findings);
    declared::check_packages(&pair, &mut findings);
    for (name, old) in &pair.old.messages {
        if let Some(new) = pair.new.messages.get(name) {
            messages::check(name, old, new, &mut findings);
            for (number, old) in &old.fields {
                if let Some(new) = new.fields.get(number) {
                    fields::check(&pair, old, new, &mut findings);
                }
            }
        }
    }
    for (key, old) in &pair.old.extensions {
        if let Some(new) = pair.new.extensions.get(key) {
            fields::check(&pair, old, new, &mut findings);
        }
    }
    for (name, old) in &pair.old.enums {
        if let Some(new) = pair.new.enums.get(name) {
            enums::check(name, old, new, &mut findings);
        }
    }
    for (name, old) in &pair.old.services {
        if let Some(new) = pair.new.services.get(name) {
            services::check(name, old, new, &mut findings);
        }
    }
    let mut found = findings.found;
    found.sort_by(|a, b| {
        let by_place = a.shown_place().cmp(&b.shown_place());
        by_place.then_with(|| a.rule.id().cmp(b.rule.id()))
    });
    found
}

/// Both schemas.
struct Pair<'a> {
    old: &'a Index<'a>,
    new: &'a Index<'a>,
}

/// What was found, of the rules that are asked for.
struct Findings {
    set: RuleSet,
    found: Vec<Break>,
}

impl Findings {
    fn add(&mut self, rule: Rule, finding: Finding) {
        if rule.sets().contains(&self.set) {
            self.found.push(Break {
                rule,
                place: finding.place,
                old_place: finding.old_place,
                message: finding.message,
                was: finding.was,
                now: finding.now,
                help: finding.help,
            });
        }
    }
}

/// A [`Break`] before its rule is known.
#[derive(Clone)]
struct Finding {
    place: Option<Place>,
    old_place: Option<Place>,
    message: String,
    was: Option<String>,
    now: Option<String>,
    help: String,
}

impl Finding {
    /// What is in the new schema in another form.
    fn changed(old: Place, new: Place, message: String) -> Self {
        Self {
            place: Some(new),
            old_place: Some(old),
            message,
            was: None,
            now: None,
            help: String::new(),
        }
    }

    /// What is gone from something that is still there.
    fn gone(old: &At<'_>, from: &At<'_>, message: String) -> Self {
        Self::changed(old.place(), from.place(), message)
    }

    fn was(mut self, was: impl Into<String>) -> Self {
        self.was = Some(was.into());
        self
    }

    fn now(mut self, now: impl Into<String>) -> Self {
        self.now = Some(now.into());
        self
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}
