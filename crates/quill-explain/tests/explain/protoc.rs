//! What `protoc --decode` and `--decode_raw` say of the same bytes.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::shown::ORDER;
use crate::{explained, options, order, protos};

/// The text format that protoc writes; `None`, with a word about it, where it
/// is not installed. `REQUIRE_EXTERNAL=1` makes that a failure.
fn protoc(arguments: &[&str], bytes: &[u8]) -> Option<String> {
    let child = Command::new("protoc")
        .args(arguments)
        .current_dir(protos())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        let required = std::env::var_os("REQUIRE_EXTERNAL").is_some_and(|value| value == "1");
        assert!(!required, "protoc is not installed");
        let _ = writeln!(std::io::stderr(), "skipped: protoc is not installed");
        return None;
    };
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Depth, and name or number, of each field of a dump.
fn fields(dump: &str) -> Vec<(usize, String)> {
    let mut fields = Vec::new();
    for line in dump.lines() {
        let text = &line[38..];
        let field = text.trim_start();
        let depth = (text.len() - field.len()) / 2;
        let (number, rest) = match field.split_once(':') {
            Some(split) if !field.starts_with('}') => split,
            _ => continue,
        };
        let name = match rest.split_once(" = ") {
            Some((name, _)) => name.split_whitespace().next_back().unwrap(),
            None => number,
        };
        let name = if name == "(unknown)" { number } else { name };
        // A packed list is a line here, and a field for each value there.
        let times = match rest.split_once(" = [") {
            Some((_, list)) => list.split(',').count(),
            None => 1,
        };
        fields.extend(vec![(depth, name.to_owned()); times]);
    }
    fields
}

/// The same of protoc's text.
fn protoc_fields(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().filter(|line| line.trim() != "}");
    let field = |line: &str| {
        let field = line.trim_start();
        let end = field.find([':', ' ']).unwrap();
        ((line.len() - field.len()) / 2, field[..end].to_owned())
    };
    lines.map(field).collect()
}

#[test]
fn fields_are_those_that_protoc_decodes() {
    let Some(text) = protoc(&["--decode=shop.v1.Order", "shop.proto"], ORDER) else {
        return;
    };
    let schema = order();
    let (dump, _) = explained(ORDER, &options(|o| o.schema = Some(schema)));
    let (mut ours, mut protocs) = (fields(&dump), protoc_fields(&text));
    // protoc writes unknown fields, and those of a map, in its own order.
    ours.sort();
    protocs.sort();
    assert_eq!(ours, protocs, "{dump}\n{text}");
}

#[test]
fn structure_is_that_which_protoc_guesses() {
    for bytes in [
        ORDER,
        b"\x0a\x02ab\x10\x96\x01",
        b"\x0b\x08\x01\x0c\x12\x02\x08\x01",
        b"\x0a\x06\x0a\x04\x0a\x02\x08\x01",
        b"\x0a\x00\x15\x01\x02\x03\x04\x19\x01\x02\x03\x04\x05\x06\x07\x08",
    ] {
        let Some(text) = protoc(&["--decode_raw"], bytes) else {
            return;
        };
        let (dump, _) = explained(bytes, &options(|_| {}));
        assert_eq!(fields(&dump), protoc_fields(&text), "{dump}\n{text}");
    }
}
