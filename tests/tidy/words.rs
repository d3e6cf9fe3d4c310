//! Words that have no place in a file, or in that part of the tree.

use crate::rust::{Source, line_of, words};
use crate::size::shipped;
use crate::tree::{Fault, Tree};

/// Split in two, so that this file does not hold them.
const UNFINISHED: &[&str] = &[
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("XX", "X:"),
];

/// The parts that carry calls of every protocol alike.
const NEUTRAL: &[&str] = &[
    "crates/quill-core/src/",
    "crates/quill-transport/src/",
    "crates/quill-server/src/",
    "crates/quill-client/src/",
];

/// `connect` alone is also a verb, so the Connect protocol is known by its
/// headers, media types and variants.
const PROTOCOLS: &[&str] = &[
    "grpc",
    "connectunary",
    "connectget",
    "connectstream",
    "wire::connect",
    "protocol::connect",
    "wire::quill",
    "protocol::quill",
    "application/connect",
    "application/quill",
    "connect-protocol",
    "connect-timeout",
    "connect-content",
    "connect-accept",
];

/// Where a neutral part names protocols all the same: a file, what the line
/// holds, and why. An entry goes when it is not needed.
const NAMED: &[(&str, &str, &str)] = &[
    (
        "crates/quill-client/src/balance/health.rs",
        "static CHECK",
        "the package of the standard health service, whatever protocol carries it",
    ),
    (
        "crates/quill-core/src/metadata.rs",
        "RESERVED_PREFIXES",
        "names that an application may set in no protocol, since any of them may carry the call",
    ),
    (
        "crates/quill-server/src/middleware/concurrency/settings.rs",
        "const HEALTH",
        "the package of the standard health service, whatever protocol carries it",
    ),
];

const MACHINE_FOLDERS: &[&str] = &["root", "home", "work"];

const PACKAGE_HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("proxy.golang", ".org"),
    concat!("maven", ".org"),
    concat!("maven.apache", ".org"),
    concat!("debian", ".org"),
];

/// No marks of unfinished work, and no test switched off without a word.
pub(crate) fn check_unfinished(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in tree.files() {
        for word in UNFINISHED {
            for (at, _) in text.match_indices(word) {
                let sentence =
                    format!("`{word}` marks unfinished work; finish it or leave it out.");
                faults.push(Fault::new(path, line_of(text, at), sentence));
            }
        }
    }
    for (path, text) in tree.with_extension("md") {
        for line in placeholders(text) {
            let sentence = "this word stands for a table or text that is to come; put that here.";
            faults.push(Fault::new(path, line, sentence));
        }
    }
    for (path, text) in tree.with_extension("rs") {
        let code = Source::read(text).code;
        for name in ["todo", "unimplemented", "dbg"] {
            for at in words(&code, name).filter(|at| code[at + name.len()..].starts_with('!')) {
                let sentence = format!("`{name}!` does not ship; write what it stands for.");
                faults.push(Fault::new(path, line_of(&code, at), sentence));
            }
        }
        for (at, _) in code.match_indices("#[ignore]") {
            let sentence = "an ignored test says why: `#[ignore = \"reason\"]`.";
            faults.push(Fault::new(path, line_of(&code, at), sentence));
        }
    }
    faults
}

/// Lines outside code blocks that are one word in capitals.
fn placeholders(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let is_capital = |c: char| c.is_ascii_uppercase() || c == '_';
        if !is_code && line.len() > 1 && line.chars().all(is_capital) {
            lines.push(index + 1);
        }
    }
    lines
}

/// A file is a noun, and a value's name needs no `get_`.
pub(crate) fn check_names(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in shipped(tree) {
        let empty = [
            "util", "utils", "common", "manager", "helper", "helpers", "misc",
        ];
        if path.split(['/', '.']).any(|part| empty.contains(&part)) {
            let sentence = "this name says nothing; name the file for what it holds.";
            faults.push(Fault::new(path, 1, sentence));
        }
        let functions = Source::read(text).functions();
        // `get_mut` and `get_bin` are forms of a `get` beside them.
        let has_get = functions.iter().any(|function| function.name == "get");
        for function in functions.iter().filter(|_| !has_get) {
            if let Some(value) = function.name.strip_prefix("get_") {
                let sentence = format!("call `{}` by what it gives: `{value}`.", function.name);
                faults.push(Fault::new(path, function.line, sentence));
            }
        }
    }
    faults
}

/// The server's and the client's path name no protocol, except in comments and tests.
pub(crate) fn check_protocols(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (path, text) in shipped(tree) {
        if NEUTRAL.iter().any(|folder| path.starts_with(folder)) {
            protocols_named(path, &Source::read(text), NAMED, &mut faults);
        }
    }
    faults
}

fn protocols_named(
    path: &str,
    source: &Source,
    excepted: &[(&str, &str, &str)],
    faults: &mut Vec<Fault>,
) {
    let excepted: Vec<_> = excepted.iter().filter(|(file, ..)| *file == path).collect();
    let mut met = vec![false; excepted.len()];
    let mut at = 0;
    for (index, line) in source.uncommented.split_inclusive('\n').enumerate() {
        let lower = line.to_ascii_lowercase();
        let named = PROTOCOLS
            .iter()
            .find_map(|name| Some((lower.find(name)?, name.len())));
        if let Some((start, length)) = named.filter(|_| !source.is_test(at)) {
            if let Some(exception) = excepted.iter().position(|(_, held, _)| line.contains(held)) {
                met[exception] = true;
            } else {
                let name = &line[start..start + length];
                let sentence =
                    format!("`{name}` names a protocol; only quill-wire knows protocols by name.");
                faults.push(Fault::new(path, index + 1, sentence));
            }
        }
        at += line.len();
    }
    for ((_, held, reason), _) in excepted.iter().zip(met).filter(|(_, met)| !met) {
        let sentence = format!("no line with `{held}` needs an exception ({reason}) any more.");
        faults.push(Fault::new(path, 1, sentence));
    }
}

/// Nothing works on one machine only, or through one package host only.
pub(crate) fn check_places(tree: &Tree) -> Vec<Fault> {
    let mut faults = Vec::new();
    // Cargo writes its registry's address into the lock file itself.
    for (path, text) in tree
        .files()
        .filter(|(path, _)| !path.ends_with("Cargo.lock"))
    {
        for folder in MACHINE_FOLDERS {
            let needle = format!("/{folder}/");
            for (at, _) in text.match_indices(&needle) {
                // `docs/work/x` is a path in this tree.
                let inner = |c: char| c.is_alphanumeric() || "._-~*})\"".contains(c);
                if !text[..at].ends_with(inner) {
                    let sentence = format!("`{needle}` is a folder of one machine.");
                    faults.push(Fault::new(path, line_of(text, at), sentence));
                }
            }
        }
        for host in PACKAGE_HOSTS {
            for (at, _) in text.match_indices(host) {
                let sentence = format!(
                    "`{host}` names a package host; leave it to the client's own settings."
                );
                faults.push(Fault::new(path, line_of(text, at), sentence));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "crates/quill-server/src/a.rs";

    fn lines(check: fn(&Tree) -> Vec<Fault>, path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)]))
            .iter()
            .map(Fault::line)
            .collect()
    }

    #[test]
    fn unfinished_code_is_a_fault() {
        let macros = "// todo! in a comment\nlet a = \"todo!()\";\ntodo!();\nunimplemented!(\"b\");\ndbg!(c);\n";
        assert_eq!(lines(check_unfinished, PATH, macros), [3, 4, 5]);
        for word in UNFINISHED {
            assert_eq!(
                lines(check_unfinished, "a.md", &format!("\n{word} b\n")),
                [2]
            );
        }
    }

    #[test]
    fn a_placeholder_is_a_fault() {
        let text = "FIGURES\n\nin capitals: FIGURES\n```text\nFIGURES\n```\nTHE_TABLE\n";
        assert_eq!(lines(check_unfinished, "a.md", text), [1, 7]);
    }

    #[test]
    fn an_ignored_test_needs_a_reason() {
        let text = "#[ignore = \"needs a browser\"]\nfn a() {}\n#[ignore]\nfn b() {}\n";
        assert_eq!(lines(check_unfinished, PATH, text), [3]);
    }

    #[test]
    fn empty_names_are_faults() {
        assert_eq!(lines(check_names, "crates/a/src/utils.rs", ""), [1]);
        assert_eq!(lines(check_names, "crates/a/src/common/b.rs", ""), [1]);
        assert_eq!(lines(check_names, PATH, "\nfn get_code() {}\n"), [2]);
        assert!(lines(check_names, PATH, "fn get() {}\nfn get_mut() {}\n").is_empty());
    }

    #[test]
    fn protocol_names_are_faults_outside_quill_wire() {
        let text = "// gRPC does this\nlet a = \"grpc-status\";\nWire::ConnectGet;\n\
                    TcpStream::connect(b);\n#[cfg(test)]\nmod tests { use Wire::Grpc; }\n";
        assert_eq!(lines(check_protocols, PATH, text), [2, 3]);
        assert!(lines(check_protocols, "crates/quill-wire/src/a.rs", text).is_empty());
    }

    #[test]
    fn an_excepted_name_goes_when_it_is_not_needed() {
        let excepted = [(PATH, "NAMES", "a list")];
        let faults = |text: &str| {
            let mut faults = Vec::new();
            protocols_named(PATH, &Source::read(text), &excepted, &mut faults);
            faults.iter().map(Fault::line).collect::<Vec<_>>()
        };
        assert_eq!(
            faults("const NAMES: &str = \"grpc-\";\n\nlet a = \"grpc-\";\n"),
            [3]
        );
        assert_eq!(faults("const NAMES: &str = \"x-\";\n"), [1]);
    }

    #[test]
    fn machine_paths_and_package_hosts_are_faults() {
        for folder in MACHINE_FOLDERS {
            assert_eq!(
                lines(check_places, "a.sh", &format!("b=/{folder}/c\n")),
                [1]
            );
            assert!(lines(check_places, "a.sh", &format!("b=docs/{folder}/c\n")).is_empty());
        }
        for host in PACKAGE_HOSTS {
            assert_eq!(
                lines(check_places, "a.md", &format!("\nsee {host}/d\n")),
                [2]
            );
            assert!(lines(check_places, "e/Cargo.lock", host).is_empty());
        }
    }
}
