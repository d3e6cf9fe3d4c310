//! The byte examples of docs/protocol.md, made by the code.

use super::*;
use crate::Encode;
use crate::quill::frames::{self, frame};
use quill_core::frame::Flags;
use std::time::Duration;

const SPEC: &str = include_str!("../../../../../docs/protocol.md");

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.join(" ")
}

/// The page shows these bytes, on one line.
fn shown(bytes: &[u8]) {
    let hex = hex(bytes);
    let line = SPEC.lines().any(|line| {
        line.trim_start()
            .strip_prefix(hex.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("  "))
    });
    assert!(line, "docs/protocol.md does not show {hex}");
}

#[test]
fn frames_are_those_of_the_page() {
    shown(&frame(Flags::DATA, b"hello"));
    shown(&frame(Flags::DATA_END, b"hello"));
    shown(&frame(Flags::END_STREAM, b""));
    shown(&frame(Flags::CANCEL, b""));
    let mut out = Out::new();
    frames::put_credit(std::num::NonZeroU32::new(300).unwrap(), &mut out);
    shown(&drain(&mut out).1);
    let (block, _) = crate::quill::metadata::block(&metadata(&[("x-a", "1")]));
    frames::put_metadata(block, &mut out);
    shown(&drain(&mut out).1);
    let large = frame(Flags::DATA, &[0; 300]);
    shown(&large[..3]);
}

#[test]
fn a_server_stream_is_that_of_the_page() {
    let head = post("application/quill+proto", &[]);
    let call = open(&head, MethodKind::ServerStreaming);
    let mut out = Out::new();
    let mut encoder = call.encoder(Side::Server);
    encoder.head(&Metadata::new(), &mut out);
    for message in ["\n\x01a", "\n\x01b"] {
        encoder.message(&raw(message), &mut out).unwrap();
    }
    encoder.end(Ok(()), &metadata(&[("x-a", "1")]), &mut out);
    let (head, body, _) = drain(&mut out);
    assert_eq!(
        pairs(&head.unwrap().headers),
        [("content-type", "application/quill-stream+proto")]
    );
    shown(&body);
}

#[test]
fn a_call_with_credits_is_that_of_the_page() {
    let call = outgoing(
        MethodKind::ServerStreaming,
        WireOptions {
            credits: Some(2),
            ..options()
        },
    );
    let mut out = Out::new();
    call.unary_request(&raw("\n\x01a"), &mut out).unwrap();
    let mut client = call.encoder(Side::Client);
    client.grant(1, &mut out);
    shown(&drain(&mut out).1);
}

#[test]
fn a_problem_is_that_of_the_page() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let head = post("application/quill+json", &[("traceparent", parent)]);
    let call = open(&head, MethodKind::Unary);
    let error =
        Error::resource_exhausted("slow down").with_retry_after(Duration::from_millis(1_500));
    let none = Metadata::new();
    let mut out = Out::new();
    call.encoder(Side::Server)
        .unary(Err(&error), &none, &none, &mut out);
    let (head, body, _) = drain(&mut out);
    let head = head.unwrap();
    assert_eq!(head.status, 429);
    let written: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let (_, rest) = SPEC.split_once("```json\n").unwrap();
    let (example, _) = rest.split_once("```").unwrap();
    let example: serde_json::Value = serde_json::from_str(example).unwrap();
    assert_eq!(written, example);
    assert!(SPEC.contains("retry-after: 2"));
    assert_eq!(head.headers.text("retry-after"), Some("2"));
}

#[test]
fn a_get_is_that_of_the_page() {
    let use_get = WireOptions {
        use_get: true,
        ..options()
    };
    let call = Call::outgoing(Wire::Quill, pure(), Format::Json, Arc::new(use_get));
    let head = call
        .unary_request(&raw(r#"{"message":"hi"}"#), &mut Out::new())
        .unwrap();
    assert!(
        SPEC.contains(&format!("GET {} ", head.target)),
        "{}",
        head.target
    );
}

#[test]
fn the_tables_are_those_of_the_page() {
    for code in quill_core::Code::ALL {
        let status = crate::quill::status::http_of_code(code);
        let row = format!("| {code} | {status} |");
        assert!(SPEC.contains(&row), "{row}");
    }
    for flags in Flags::ALL {
        let row = format!(
            "| 0x{:02x} | {} |",
            flags.bits(),
            flags.to_string().replace('|', "\\|")
        );
        assert!(SPEC.contains(&row), "{row}");
    }
}
