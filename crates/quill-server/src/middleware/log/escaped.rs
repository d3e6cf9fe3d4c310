//! Text of others within a line.

use std::fmt::{self, Write};

/// A text of which so many bytes are shown at most, in quotes, as a JSON string:
/// nothing in it can end the string, the line or the terminal's mode.
pub(super) struct Escaped<'a> {
    pub(super) text: &'a str,
    pub(super) bytes_max: usize,
}

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for (at, letter) in self.text.char_indices() {
            if at + letter.len_utf8() > self.bytes_max {
                f.write_char('…')?;
                break;
            }
            match letter {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                '\t' => f.write_str("\\t")?,
                // What controls a terminal, ends a line for some, or turns the
                // direction of what follows.
                letter if letter.is_control() || is_format(letter) => {
                    let mut units = [0; 2];
                    for unit in letter.encode_utf16(&mut units) {
                        write!(f, "\\u{unit:04x}")?;
                    }
                }
                letter => f.write_char(letter)?,
            }
        }
        f.write_char('"')
    }
}

/// Separators of lines, and what is not seen but changes how the rest is.
fn is_format(letter: char) -> bool {
    matches!(letter,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escaped(text: &str, bytes_max: usize) -> String {
        Escaped { text, bytes_max }.to_string()
    }

    #[test]
    fn nothing_breaks_out_and_json_reads_it_back() {
        let every: String = (0..0x3000).filter_map(char::from_u32).collect();
        for text in [
            "",
            "plain ü 🦀",
            "a\"b\\c\r\nd\te",
            "\u{1b}[2J\u{9b}2J\u{7f}\u{202e}",
            &every,
        ] {
            let shown = escaped(text, usize::MAX);
            assert!(!shown.chars().any(char::is_control), "{shown}");
            let turning = ['\u{61c}', '\u{200e}', '\u{200f}', '\u{202e}', '\u{2066}'];
            assert!(!shown.contains(turning), "{shown}");
            let read: String = serde_json::from_str(&shown).unwrap();
            assert_eq!(read, text);
        }
    }

    #[test]
    fn a_long_text_is_cut_between_letters() {
        assert_eq!(escaped("abcdef", 3), "\"abc…\"");
        assert_eq!(escaped("aéé", 2), "\"a…\"");
        assert_eq!(escaped("abc", 3), "\"abc\"");
    }
}
