//! A file and a function can be read in one go; a crate's root is its table of contents.

use crate::rust::{Source, item_end, line_of};
use crate::tree::{Fault, Tree};

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

/// A file or function that may be longer, with its length and why.
/// The length may only shrink, and an entry goes when it is not needed.
struct Exception {
    path: &'static str,
    /// Empty for the file as a whole.
    function: &'static str,
    lines: usize,
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[];

/// What crates are made of: not their tests, benches and build scripts.
pub(crate) fn shipped(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.with_extension("rs").filter(|(path, _)| {
        path.contains("/src/") && !path.ends_with("/tests.rs") && !path.contains("/tests/")
    })
}

pub(crate) fn check(tree: &Tree) -> Vec<Fault> {
    check_against(tree, EXCEPTIONS)
}

fn check_against(tree: &Tree, exceptions: &[Exception]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in shipped(tree) {
        let source = Source::read(text);
        faults.extend(too_long(
            exceptions,
            path,
            "",
            1,
            source.lines_shipped(),
            FILE_LINES_MAX,
        ));
        for function in source.functions() {
            let (name, line, lines) = (&function.name, function.line, function.lines);
            faults.extend(too_long(
                exceptions,
                path,
                name,
                line,
                lines,
                FUNCTION_LINES_MAX,
            ));
        }
    }
    for exception in exceptions {
        if tree.text(exception.path).is_none() {
            faults.push(Fault::new(
                exception.path,
                1,
                "is excepted from the size rules and does not exist: take it off the list.",
            ));
        }
    }
    faults
}

fn too_long(
    exceptions: &[Exception],
    path: &str,
    function: &str,
    line: usize,
    lines: usize,
    lines_max: usize,
) -> Option<Fault> {
    let what = match function {
        "" => "the file without its tests".to_owned(),
        name => format!("the function `{name}`"),
    };
    let exception = exceptions
        .iter()
        .find(|e| e.path == path && e.function == function);
    let sentence = match exception {
        None if lines > lines_max => {
            format!("{what} has {lines} lines; at most {lines_max} are allowed.")
        }
        Some(excepted) if lines <= lines_max => format!(
            "{what} has {lines} lines and needs no exception ({}): take it off the list.",
            excepted.reason
        ),
        Some(excepted) if lines > excepted.lines => format!(
            "{what} has {lines} lines; its exception ({}) allows {}.",
            excepted.reason, excepted.lines
        ),
        _ => return None,
    };
    Some(Fault::new(path, line, sentence))
}

/// `lib.rs` and `mod.rs` hold documentation, modules and re-exports.
pub(crate) fn check_roots(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in shipped(tree) {
        if path.ends_with("/lib.rs") || path.ends_with("/mod.rs") {
            let source = Source::read(text);
            odd_items(path, &source.shipped, 0, source.shipped.len(), &mut faults);
        }
    }
    faults
}

fn odd_items(path: &str, code: &str, start: usize, end: usize, faults: &mut Vec<Fault>) {
    let mut at = start;
    while let Some(skip) = code[at..end].find(|c: char| !c.is_whitespace()) {
        at += skip;
        if code[at..end].starts_with('#') {
            at = attribute_end(code, at).min(end);
            continue;
        }
        let item_end = item_end(code, at).unwrap_or(end).min(end);
        let item = &code[at..item_end];
        let words = item.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '!'));
        let mut words = words.filter(|w| !matches!(*w, "" | "pub" | "crate" | "super" | "in"));
        match words.next() {
            Some("use" | "extern" | "include!") => {}
            Some("mod") => {
                if let Some(open) = item.find('{') {
                    odd_items(path, code, at + open + 1, item_end - 1, faults);
                }
            }
            _ => faults.push(Fault::new(
                path,
                line_of(code, at),
                "only documentation, `mod` and `use` belong in lib.rs and mod.rs; \
                 give this item a file of its own.",
            )),
        }
        at = item_end;
    }
}

fn attribute_end(code: &str, start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return at + 1,
            b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excepted(function: &'static str, lines: usize) -> Exception {
        Exception {
            path: "crates/a/src/b.rs",
            function,
            lines,
            reason: "a table",
        }
    }

    #[test]
    fn long_files_and_functions_are_faults() {
        let long = format!(
            "fn f() {{\n{}}}\n{}",
            "    a();\n".repeat(69),
            "// b\n".repeat(430)
        );
        let tree = Tree::of(&[("crates/a/src/b.rs", &long)]);
        let faults: Vec<_> = check(&tree).iter().map(Fault::to_string).collect();
        assert_eq!(
            faults,
            [
                "crates/a/src/b.rs:1: the file without its tests has 501 lines; at most 500 are allowed.",
                "crates/a/src/b.rs:1: the function `f` has 71 lines; at most 70 are allowed.",
            ]
        );
        assert!(check_against(&tree, &[excepted("", 501), excepted("f", 71)]).is_empty());
        assert_eq!(
            check_against(&tree, &[excepted("", 500), excepted("f", 70)]).len(),
            2
        );
    }

    #[test]
    fn exceptions_only_shrink() {
        let tree = Tree::of(&[("crates/a/src/b.rs", "fn f() {}\n")]);
        assert_eq!(
            check_against(&tree, &[excepted("", 600), excepted("f", 80)]).len(),
            2
        );
        assert_eq!(check_against(&Tree::of(&[]), &[excepted("", 600)]).len(), 1);
    }

    #[test]
    fn tests_have_no_length() {
        let long = "// a\n".repeat(600);
        let inside = format!("#[cfg(test)]\nmod tests {{\n{long}}}\n");
        let tree = Tree::of(&[
            ("crates/a/src/b/tests.rs", &long),
            ("crates/a/tests/c.rs", &long),
            ("crates/a/src/b.rs", &inside),
        ]);
        assert!(check(&tree).is_empty());
    }

    #[test]
    fn roots_with_items_are_faults() {
        let root = "//! Docs.\n#![no_std]\n#[doc(inline)]\npub use a::{B, C};\nmod d;\n\
                    pub mod e { pub use crate::d::*; }\npub(crate) mod f { include!(\"f.rs\"); }\n\
                    #[cfg(test)]\nfn g() {}\n";
        assert!(check_roots(&Tree::of(&[("crates/a/src/lib.rs", root)])).is_empty());
        for (item, line) in [
            ("pub fn h() {}", 2),
            ("mod i { struct J; }", 2),
            ("\nconst K: u8 = 1;", 3),
        ] {
            let faults = check_roots(&Tree::of(&[(
                "crates/a/src/l/mod.rs",
                &format!("mod m;\n{item}\n"),
            )]));
            assert_eq!(
                faults.iter().map(Fault::line).collect::<Vec<_>>(),
                [line],
                "{item}"
            );
        }
    }
}
