//! As much of Rust's grammar as the rules need: where comments, literals, test
//! items and functions begin and end.

use std::ops::Range;

/// A Rust file in three readings. All have the bytes of the file at the same
/// places, with what a reading leaves out turned into spaces.
pub(crate) struct Source {
    /// Without comments.
    pub(crate) uncommented: String,
    /// Without comments and the insides of literals.
    pub(crate) code: String,
    /// `code` without items under `#[cfg(test)]`.
    pub(crate) shipped: String,
    tests: Vec<Range<usize>>,
}

/// A function with a body.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    /// From the line of its `fn` to that of its closing brace.
    pub(crate) lines: usize,
}

impl Source {
    pub(crate) fn read(text: &str) -> Self {
        let spans = spans(text.as_bytes());
        let comments = spans
            .iter()
            .filter(|span| span.comment)
            .map(|span| span.range.clone());
        let all = spans.iter().map(|span| span.range.clone());
        let code = blanked(text, all);
        let tests = test_items(&code);
        Self {
            uncommented: blanked(text, comments),
            shipped: blanked(&code, tests.iter().cloned()),
            code,
            tests,
        }
    }

    /// Whether the byte at `offset` lies under `#[cfg(test)]`.
    pub(crate) fn is_test(&self, offset: usize) -> bool {
        self.tests.iter().any(|test| test.contains(&offset))
    }

    /// Lines of the file that are not under `#[cfg(test)]`.
    pub(crate) fn lines_shipped(&self) -> usize {
        let tests: usize = self
            .tests
            .iter()
            .map(|test| lines(&self.code[test.clone()]))
            .sum();
        lines(&self.code).saturating_sub(tests)
    }

    /// Functions that are not under `#[cfg(test)]`.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let code = &self.shipped;
        let mut functions = Vec::new();
        for start in words(code, "fn") {
            let after = code[start + 2..].trim_start();
            let name: String = after.chars().take_while(|&c| is_word(c)).collect();
            // `fn(u8) -> u8` is a type, a `;` ends a declaration: neither has a body.
            if name.is_empty() {
                continue;
            }
            let body = |&end: &usize| code[..end].trim_end_matches(';').ends_with('}');
            if let Some(end) = item_end(code, start).filter(body) {
                let line = line_of(code, start);
                functions.push(Function {
                    name,
                    line,
                    lines: line_of(code, end - 1) + 1 - line,
                });
            }
        }
        functions
    }
}

/// The line, counted from one, of the byte at `offset`.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1
}

/// Where `word` stands by itself in `text`.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| {
            !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word)
        })
}

/// The end of the item that starts at `start`: after its first `;` or closing
/// brace outside of parentheses and square brackets (and the `;` right behind it).
pub(crate) fn item_end(code: &str, start: usize) -> Option<usize> {
    let (mut braces, mut brackets) = (0_usize, 0_usize);
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets = brackets.saturating_sub(1),
            b'{' => braces += 1,
            b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 && brackets == 0 {
                    let closed = code[at + 1..].starts_with(';');
                    return Some(at + 1 + usize::from(closed));
                }
            }
            b';' if braces == 0 && brackets == 0 => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut items: Vec<Range<usize>> = Vec::new();
    for (start, _) in code.match_indices("#[cfg(test)]") {
        let nested = items.last().is_some_and(|last| last.contains(&start));
        if let Some(end) = item_end(code, start).filter(|_| !nested) {
            items.push(start..end);
        }
    }
    items
}

fn blanked(text: &str, ranges: impl Iterator<Item = Range<usize>>) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for byte in ranges.flatten() {
        if bytes[byte] != b'\n' {
            bytes[byte] = b' ';
        }
    }
    // A span begins and ends at ASCII, so no character is left in half.
    String::from_utf8(bytes).expect("whole characters are blanked")
}

struct Span {
    range: Range<usize>,
    comment: bool,
}

/// Bytes of a literal or comment: its opening, what a reading leaves out, its closing.
struct Token {
    before: usize,
    inside: usize,
    after: usize,
}

/// Comments, and the insides of string and character literals.
fn spans(text: &[u8]) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let comment = matches!(rest, [b'/', b'/' | b'*', ..]);
        let raw = matches!(rest, [b'r', b'"' | b'#', ..]) && !follows_word(text, at);
        let token = match rest {
            [b'/', b'/', ..] => Some(Token {
                before: 0,
                inside: line_comment(rest),
                after: 0,
            }),
            [b'/', b'*', ..] => Some(Token {
                before: 0,
                inside: block_comment(rest),
                after: 0,
            }),
            [b'"', tail @ ..] => Some(Token {
                before: 1,
                inside: escaped(tail, b'"'),
                after: 1,
            }),
            [b'r', ..] if raw => raw_string(rest),
            [b'\'', tail @ ..] => character(tail),
            _ => None,
        };
        let Some(Token {
            before,
            inside,
            after,
        }) = token
        else {
            at += 1;
            continue;
        };
        let end = (at + before + inside).min(text.len());
        spans.push(Span {
            range: at + before..end,
            comment,
        });
        at = end + after;
    }
    spans
}

fn follows_word(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| char::from(text[before]));
    // `br"…"` is a literal too.
    before.is_some_and(|c| is_word(c) && c != 'b')
}

fn line_comment(rest: &[u8]) -> usize {
    rest.iter()
        .position(|&byte| byte == b'\n')
        .unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn escaped(inside: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while at < inside.len() && inside[at] != quote {
        at += if inside[at] == b'\\' { 2 } else { 1 };
    }
    at.min(inside.len())
}

/// `r"…"`, `r#"…"#` and so on; not `r#type`.
fn raw_string(rest: &[u8]) -> Option<Token> {
    let hashes = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
    let before = 1 + hashes + 1;
    if rest.get(before - 1) != Some(&b'"') {
        return None;
    }
    let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let tail = &rest[before..];
    let inside = tail.windows(close.len()).position(|end| end == close);
    Some(Token {
        before,
        inside: inside.unwrap_or(tail.len()),
        after: close.len(),
    })
}

/// `'a'` and `'\n'` are literals, `'a` is a lifetime.
fn character(tail: &[u8]) -> Option<Token> {
    let inside = match tail {
        [b'\\', ..] => escaped(tail, b'\''),
        _ => tail.iter().take(5).position(|&byte| byte == b'\'')?,
    };
    let one = std::str::from_utf8(&tail[..inside]).is_ok_and(|c| c.chars().count() == 1);
    (one || tail.starts_with(b"\\")).then_some(Token {
        before: 1,
        inside,
        after: 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let text = r####"let a = "x // { \" y"; // z {
let b = r#"x " { y"#; /* { /* { */ } */ let c = '{'; let d: &'a str = '\''; br"{" b"{""####;
        let source = Source::read(text);
        assert!(!source.code.contains('{'), "{}", source.code);
        assert!(!source.code.contains(['x', 'y', 'z']), "{}", source.code);
        assert!(source.code.contains("let d: &'a str"), "{}", source.code);
        assert!(
            source.uncommented.contains("x // {"),
            "{}",
            source.uncommented
        );
        assert!(!source.uncommented.contains('z'), "{}", source.uncommented);
        assert_eq!(source.code.len(), text.len());
    }

    #[test]
    fn empty_literals_open_nothing() {
        let source = Source::read("a(\"\", r\"\", \"\"); fn b() {}\n");
        assert!(source.code.contains("fn b() {}"), "{}", source.code);
    }

    #[test]
    fn test_items_are_not_shipped() {
        let source = Source::read(
            "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nmod d;\n",
        );
        let names: Vec<_> = source.functions().into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["a", "c"]);
        assert_eq!(source.lines_shipped(), 2);
    }

    #[test]
    fn functions_are_measured_to_their_closing_brace() {
        let source = Source::read(
            "trait T { fn declared(&self) -> [u8; 4]; }\nfn measured(\n    f: fn(u8) -> u8,\n) -> [u8; 4] {\n    \"}\";\n}\n",
        );
        let functions: Vec<_> = source
            .functions()
            .into_iter()
            .map(|f| (f.name, f.line, f.lines))
            .collect();
        assert_eq!(functions, [("measured".to_owned(), 2, 5)]);
    }
}
