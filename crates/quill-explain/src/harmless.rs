//! Text from outside, for a terminal or a log.

use std::fmt::Write as _;

/// A line of text that drives nothing: neither a terminal nor what reads the logs
/// of a workflow's run.
///
/// Control characters (ends of lines among them), what separates lines and what
/// changes the direction of text are escaped, and so is a `:` that a line with `::`
/// begins with, as commands of workflows do.
#[must_use]
pub fn harmless(line: &str) -> String {
    let mut safe = String::with_capacity(line.len());
    let mut rest = line;
    let text = line.trim_start();
    if text.starts_with("::") {
        let (before, after) = line.split_at(line.len().saturating_sub(text.len()));
        escape(before, &mut safe);
        safe.push_str("\\u{3a}");
        rest = after.get(1..).unwrap_or_default();
    }
    escape(rest, &mut safe);
    safe
}

/// JSON that does not drive a terminal: the control characters that it may hold
/// as they are (DEL and C1) are escaped in JSON's way. It says the same.
#[must_use]
pub fn harmless_json(json: String) -> String {
    if !json.contains(is_raw_control) {
        return json;
    }
    let mut safe = String::with_capacity(json.len().saturating_add(5));
    for c in json.chars() {
        if is_raw_control(c) {
            let _ = write!(safe, "\\u{:04x}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    safe
}

fn is_raw_control(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}')
}

fn escape(text: &str, safe: &mut String) {
    for c in text.chars() {
        if c.is_control() || is_format(c) {
            let _ = write!(safe, "{}", c.escape_default());
        } else {
            safe.push(c);
        }
    }
}

/// Unicode's separators of lines and paragraphs, and `Bidi_Control`.
fn is_format(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_the_same_without_control_characters() {
        let text = "ü\u{7f}\u{9b}2J\u{1b}";
        let json = harmless_json(serde_json::to_string(text).unwrap());
        assert_eq!(json, r#""ü\u007f\u009b2J\u001b""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        assert_eq!(harmless_json("{}".to_owned()), "{}");
    }

    #[test]
    fn a_line_drives_nothing() {
        for (line, shown) in [
            ("plain: ü 名 a::b", "plain: ü 名 a::b"),
            ("a\u{1b}[2J\u{9b}b\r\n\tc", r"a\u{1b}[2J\u{9b}b\r\n\tc"),
            (
                "a\u{202e}b\u{2028}c\u{2069}",
                r"a\u{202e}b\u{2028}c\u{2069}",
            ),
            ("::error::x", r"\u{3a}:error::x"),
            ("  ::error::x", r"  \u{3a}:error::x"),
            ("\n::", r"\n\u{3a}:"),
        ] {
            assert_eq!(harmless(line), shown, "{line:?}");
        }
    }
}
