//! What breaks, for people, programs and workflows.

use std::fmt::Write as _;

use quill_compat::{Break, Place, RuleSet};
use quill_explain::{harmless, harmless_json};
use serde_json::json;

use crate::schema::Loaded;

/// The breaks between two schemas.
pub(crate) struct Breaks<'a> {
    pub(crate) rules: RuleSet,
    /// The schemas as they were asked for: old and new.
    pub(crate) names: (&'a str, &'a str),
    pub(crate) old: &'a Loaded,
    pub(crate) new: &'a Loaded,
    pub(crate) found: &'a [Break],
}

impl Breaks<'_> {
    /// Two lines for each: place, rule and what happened; what to do.
    pub(crate) fn text(&self) -> String {
        if self.found.is_empty() {
            let (old, new) = self.names;
            let set = self.rules.name();
            return format!("nothing breaks between {old} and {new} by the rules of {set}\n");
        }
        let mut text = String::new();
        for found in self.found {
            let place = self.shown_place(found);
            let line = format!("{place}: {}: {found}", found.rule.id());
            let _ = writeln!(text, "{}", harmless(&line));
            let _ = writeln!(text, "  help: {}", harmless(&found.help));
        }
        text
    }

    /// One document, in one line.
    pub(crate) fn json(&self) -> String {
        let breaks = self.found.iter().map(|found| {
            let place = |place: Option<&Place>, schema: &Loaded| {
                place.map(|place| {
                    json!({
                        "file": schema.shown(&place.file),
                        "line": place.start.map(|(line, _)| line),
                        "column": place.start.map(|(_, column)| column),
                        "end_line": place.end.map(|(line, _)| line),
                        "end_column": place.end.map(|(_, column)| column),
                    })
                })
            };
            json!({
                "rule": found.rule.id(),
                "message": found.message,
                "was": found.was,
                "now": found.now,
                "help": found.help,
                "place": place(found.place.as_ref(), self.new),
                "old_place": place(found.old_place.as_ref(), self.old),
            })
        });
        let document = json!({
            "rules": self.rules.name(),
            "old": self.names.0,
            "new": self.names.1,
            "breaks": breaks.collect::<Vec<_>>(),
        });
        harmless_json(document.to_string()) + "\n"
    }

    /// Commands of GitHub's workflows, which show beside the changed lines.
    pub(crate) fn annotations(&self) -> String {
        let mut text = String::new();
        for found in self.found {
            text.push_str("::error ");
            if let Some(place) = &found.place {
                let file = property(&self.new.shown(&place.file));
                let _ = write!(text, "file={file},");
                if let (Some((line, column)), Some((end_line, end_column))) =
                    (place.start, place.end)
                {
                    let _ = write!(
                        text,
                        "line={line},col={column},endLine={end_line},endColumn={end_column},"
                    );
                }
            }
            let message = data(&format!("{found}. {}", capitalised(&found.help)));
            let _ = writeln!(text, "title={}::{message}", found.rule.id());
        }
        text
    }

    /// In the new schema, or else where it was.
    fn shown_place(&self, found: &Break) -> String {
        let shown = |place: &Place, schema: &Loaded| {
            let file = schema.shown(&place.file);
            match place.start {
                Some((line, column)) => format!("{file}:{line}:{column}"),
                None => file,
            }
        };
        match (&found.place, &found.old_place) {
            (Some(place), _) => shown(place, self.new),
            (None, Some(place)) => shown(place, self.old),
            (None, None) => self.names.1.to_owned(),
        }
    }
}

/// Text of a command, escaped.
fn data(text: &str) -> String {
    harmless(text).replace('%', "%25")
}

/// A property of a command, escaped.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

fn capitalised(sentence: &str) -> String {
    let mut chars = sentence.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_a_workflow_is_one_line() {
        assert_eq!(data("100%\r\na: b\u{1b}"), r"100%25\r\na: b\u{1b}");
        assert_eq!(property("a:b,c"), "a%3Ab%2Cc");
    }
}
