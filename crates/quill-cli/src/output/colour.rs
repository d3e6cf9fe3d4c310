//! Colour, for people at a terminal.

use std::io::{IsTerminal, stdout};

const NAME: &str = "\x1b[34m";
const TEXT: &str = "\x1b[32m";
const OTHER: &str = "\x1b[36m";
const PLAIN: &str = "\x1b[0m";

/// Whether standard output is in colour: on a terminal, unless that has none or
/// the user wants none (NO_COLOR).
pub(super) fn is_wanted() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
}

/// A line of JSON in colour: names, texts, and other values.
pub(super) fn coloured(json: &str) -> String {
    let mut coloured = String::with_capacity(json.len() * 2);
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => text_length(rest),
            c if is_bare(c) => rest.find(|c| !is_bare(c)).unwrap_or(rest.len()),
            c => {
                coloured.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            }
        };
        let (token, after) = rest.split_at(length);
        let colour = match first {
            '"' if after.starts_with(':') => NAME,
            '"' => TEXT,
            _ => OTHER,
        };
        for piece in [colour, token, PLAIN] {
            coloured.push_str(piece);
        }
        rest = after;
    }
    coloured
}

/// A number, `true`, `false` or `null`.
fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')
}

/// Bytes of the text that the JSON begins with, its quotes included.
fn text_length(json: &str) -> usize {
    let mut is_escaped = false;
    for (index, c) in json.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return index + 1,
            _ => {}
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_texts_and_values_have_colours_of_their_own() {
        let json = r#"{"a\"":"b: ü","c":[-1.5e3,true,null]}"#;
        let shown = coloured(json);
        let plain = [NAME, TEXT, OTHER, PLAIN]
            .iter()
            .fold(shown.clone(), |text, code| text.replace(code, ""));
        assert_eq!(plain, json);
        for (colour, token) in [
            (NAME, r#""a\"""#),
            (TEXT, r#""b: ü""#),
            (NAME, r#""c""#),
            (OTHER, "-1.5e3"),
            (OTHER, "true"),
            (OTHER, "null"),
        ] {
            assert!(
                shown.contains(&format!("{colour}{token}{PLAIN}")),
                "{token}: {shown:?}"
            );
        }
        // What is no JSON is shown as it is.
        assert!(coloured("\"open").contains("\"open"));
    }
}
