//! Bytes that break the protocol or a limit, and answers that are failures.

use super::*;
use crate::Encode;
use crate::quill::frames::frame;
use proptest::prelude::*;
use quill_core::Code;
use quill_core::compression::{self, Encoding};
use quill_core::frame::Flags;
use std::time::Duration;

const STREAM: &str = "application/quill-stream+proto";

/// Reads a body as a request of a client stream and as an answer of a server
/// stream; both must be refused, each with the code of its reader.
fn refused_by_both(body: &[u8], what: &str) {
    let seen = read_request(MethodKind::ClientStreaming, body);
    assert!(broken(&seen, "invalid_argument"), "{what}: {seen:?}");
    let call = outgoing(MethodKind::ServerStreaming, options());
    let seen = read_answer(&call, &answer_head(STREAM, &[]), body);
    assert!(broken(&seen, "internal"), "{what}: {seen:?}");
}

#[test]
fn broken_streams_are_the_fault_of_who_sent_them() {
    let end = frame(Flags::END_STREAM, b"");
    let data = frame(Flags::DATA, b"m");
    let after = |late: &[u8]| [&end[..], late].concat();
    for (what, body) in [
        ("no bytes", vec![]),
        ("no END_STREAM", data.clone()),
        ("half a header", vec![0x80]),
        ("half a payload", vec![5, 1, b'h', b'e']),
        ("no flags", vec![0, 0]),
        ("reserved flag", vec![0, 0x80]),
        ("DATA|CANCEL", vec![0, 0x05]),
        ("END_STREAM|METADATA", vec![0, 0x22]),
        ("PROBLEM alone", vec![0, 0x10]),
        ("COMPRESSED alone", vec![0, 0x40]),
        ("END_STREAM with a payload", vec![1, 2, 0]),
        ("CANCEL with a payload", vec![1, 4, 0]),
        ("CREDIT of 0", vec![1, 8, 0]),
        ("CREDIT of nothing", vec![0, 8]),
        ("CREDIT with a tail", vec![2, 8, 1, 1]),
        ("overlong length", vec![0x81, 0x00, 1, b'm']),
        (
            "six-byte length",
            vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x00, 1],
        ),
        ("broken METADATA", vec![2, 0x20, 5, b'a']),
        ("COMPRESSED without an encoding", vec![1, 0x41, 0]),
        ("DATA after the end", after(&data)),
        ("END_STREAM after the end", after(&end)),
        ("METADATA after the end", after(&[0, 0x20])),
        (
            "DATA after DATA|END_STREAM",
            [frame(Flags::DATA_END, b"m"), data.clone()].concat(),
        ),
    ] {
        refused_by_both(&body, what);
    }
}

#[test]
fn a_request_has_no_problem_and_an_answer_a_readable_one() {
    let problem = frame(Flags::PROBLEM, br#"{"code":"aborted"}"#);
    let seen = read_request(MethodKind::ClientStreaming, &problem);
    assert!(broken(&seen, "invalid_argument"));
    let call = outgoing(MethodKind::ServerStreaming, options());
    let head = answer_head(STREAM, &[]);
    let seen = read_answer(&call, &head, &problem);
    assert_eq!(seen, [Seen::Failed("aborted".to_owned(), Metadata::new())]);
    let seen = read_answer(&call, &head, &frame(Flags::PROBLEM, b"{"));
    assert!(broken(&seen, "internal"));
}

#[test]
fn a_cancel_is_an_event_and_an_end() {
    let body = [frame(Flags::DATA, b"m"), frame(Flags::CANCEL, b"")].concat();
    let seen = read_request(MethodKind::ClientStreaming, &body);
    assert_eq!(seen, [Seen::message(b"m"), Seen::Cancel]);
}

#[test]
fn grants_that_nobody_asked_for_mean_nothing() {
    let body = [frame(Flags::CREDIT, &[9]), frame(Flags::END_STREAM, b"")].concat();
    let seen = read_request(MethodKind::ClientStreaming, &body);
    assert_eq!(seen, [Seen::end()]);
}

#[test]
fn limits_hold_exactly_and_before_memory_is_taken() {
    let small = WireOptions {
        receive_bytes_max: 100,
        ..options()
    };
    let fits = vec![7; 100];
    let over = vec![7; 101];
    let (call, _) = open_with(
        &post("application/quill+proto", &[]),
        method(MethodKind::Unary),
        small.clone(),
    )
    .unwrap();
    let seen = read(&mut call.decoder(Side::Server), &[&fits], true);
    assert_eq!(seen, [Seen::message(&fits), Seen::end()]);
    // Over before the body has ended.
    let seen = read(&mut call.decoder(Side::Server), &[&over], false);
    assert!(broken(&seen, "resource_exhausted"), "{seen:?}");

    let (call, _) = open_with(
        &post(STREAM, &[]),
        method(MethodKind::ClientStreaming),
        small.clone(),
    )
    .unwrap();
    let body = frame(Flags::DATA, &fits);
    let seen = read(&mut call.decoder(Side::Server), &[&body], false);
    assert_eq!(seen, [Seen::message(&fits)]);
    // The header alone is enough to refuse it; 4 GiB are announced and not taken.
    for header in [&[101, 1][..], &[0xff, 0xff, 0xff, 0xff, 0x0f, 1]] {
        let mut decoder = call.decoder(Side::Server);
        let seen = read(&mut decoder, &[header], false);
        assert!(broken(&seen, "resource_exhausted"), "{seen:?}");
        assert_eq!(decoder.held_bytes(), 0);
    }
}

#[test]
fn the_limit_holds_for_what_comes_out_of_compression() {
    let squeeze = |len: usize, encoding| {
        let mut out = bytes::BytesMut::new();
        compression::compress(encoding, 3, &vec![0; len], &mut out).unwrap();
        out.to_vec()
    };
    let small = WireOptions {
        receive_bytes_max: 1_000,
        ..options()
    };
    for encoding in [Encoding::Gzip, Encoding::Zstd] {
        let name = encoding.name();
        for (len, fits) in [(1_000, true), (1_001, false), (10_000_000, false)] {
            let bare = post("application/quill+proto", &[("content-encoding", name)]);
            let (call, _) = open_with(&bare, method(MethodKind::Unary), small.clone()).unwrap();
            let body = squeeze(len, encoding);
            if body.len() <= 1_000 {
                let seen = read(&mut call.decoder(Side::Server), &[&body], true);
                assert_eq!(broken(&seen, "resource_exhausted"), !fits, "{name} {len}");
            }
            let framed = post(STREAM, &[("quill-encoding", name)]);
            let kind = MethodKind::ClientStreaming;
            let (call, _) = open_with(&framed, method(kind), small.clone()).unwrap();
            let body = frame(Flags::COMPRESSED, &body);
            let seen = read(&mut call.decoder(Side::Server), &[&body], false);
            assert_eq!(broken(&seen, "resource_exhausted"), !fits, "{name} {len}");
        }
        let framed = post(STREAM, &[("quill-encoding", name)]);
        let call = open(&framed, MethodKind::ClientStreaming);
        let junk = frame(Flags::COMPRESSED, b"junk");
        let seen = read(&mut call.decoder(Side::Server), &[&junk], false);
        assert!(broken(&seen, "invalid_argument"), "{seen:?}");
    }
}

#[test]
fn an_answer_that_is_no_problem_maps_by_its_status() {
    for kind in KINDS {
        let call = outgoing(kind, options());
        for (status, code) in [
            (400, "invalid_argument"),
            (401, "unauthenticated"),
            (403, "permission_denied"),
            (404, "unimplemented"),
            (409, "aborted"),
            (412, "failed_precondition"),
            (425, "unavailable"),
            (429, "unavailable"),
            (499, "canceled"),
            (502, "unavailable"),
            (503, "unavailable"),
            (504, "deadline_exceeded"),
            (302, "unknown"),
            (204, "unknown"),
            (500, "unknown"),
        ] {
            for (content_type, body) in [
                ("text/html", &b"<html>"[..]),
                ("application/problem+json", b"no json"),
            ] {
                let mut head = answer_head(content_type, &[]);
                head.status = status;
                let seen = read_answer(&call, &head, body);
                let [Seen::Failed(text, _)] = &seen[..] else {
                    panic!("{seen:?}");
                };
                assert!(text.starts_with(code), "{status}: {text}");
            }
        }
    }
}

#[test]
fn an_answer_of_another_kind_is_refused_at_its_head() {
    let call = outgoing(MethodKind::Unary, options());
    for content_type in [
        "text/html",
        "",
        "application/quill-stream+proto",
        "application/quill+json",
        "application/proto",
    ] {
        let seen = read_answer(&call, &answer_head(content_type, &[]), b"hi");
        assert!(broken(&seen, "unknown"), "{content_type}: {seen:?}");
    }
    let head = answer_head("application/quill+proto", &[("content-encoding", "br")]);
    assert!(broken(&read_answer(&call, &head, b"hi"), "internal"));
    let head = answer_head("application/quill+proto", &[("x-bin", "!")]);
    assert!(broken(&read_answer(&call, &head, b"hi"), "internal"));
}

#[test]
fn the_delay_before_a_retry_travels() {
    let server = open(&post("application/quill+proto", &[]), MethodKind::Unary);
    let call = outgoing(MethodKind::Unary, options());
    for (delay, header) in [(300, "1"), (1_200, "2"), (2_000, "2")] {
        let delay = Duration::from_millis(delay);
        let error = Error::resource_exhausted("slow down").with_retry_after(delay);
        let none = Metadata::new();
        let mut out = Out::new();
        server
            .encoder(Side::Server)
            .unary(Err(&error), &none, &none, &mut out);
        let (head, body, _) = drain(&mut out);
        let head = head.unwrap();
        assert_eq!(head.status, 429);
        assert_eq!(head.headers.text("retry-after"), Some(header));
        assert_eq!(failed(&call, &head, &body).retry_after(), Some(delay));
    }
    let mut head = answer_head("text/plain", &[("retry-after", "7")]);
    head.status = 503;
    let error = failed(&call, &head, b"busy");
    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
}

/// The error that an answer is.
fn failed(call: &Call, head: &ResponseHead, body: &[u8]) -> Error {
    let mut decoder = call.decoder(Side::Client);
    decoder.head(head).unwrap();
    decoder.feed(Bytes::copy_from_slice(body));
    decoder.finish(None);
    match decoder.next() {
        Ok(Some(Event::End(Err(error)))) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_problem_too_large_to_keep_maps_by_its_status() {
    let small = WireOptions {
        receive_bytes_max: 10,
        ..options()
    };
    let call = outgoing(MethodKind::Unary, small);
    let mut head = answer_head("application/problem+json", &[]);
    head.status = 503;
    let error = failed(&call, &head, &[b' '; 11]);
    assert_eq!(error.code(), Code::Unavailable);
}

#[test]
fn trailing_metadata_has_its_limit() {
    let call = open(&post(STREAM, &[]), MethodKind::BidiStreaming);
    let client = outgoing(MethodKind::BidiStreaming, options());
    let mut trailers = metadata(&[("x-small", "1")]);
    trailers.append("x-large", &"v".repeat(8 * 1024)).unwrap();
    let mut out = Out::new();
    let mut encoder = call.encoder(Side::Server);
    encoder.end(Ok(()), &trailers, &mut out);
    let (head, body, _) = drain(&mut out);
    let seen = read_answer(&client, &head.unwrap(), &body);
    let [Seen::Failed(text, _)] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert!(text.starts_with("resource_exhausted"), "{text}");

    // What a failure carries is cut rather than hiding it.
    let mut out = Out::new();
    let mut encoder = call.encoder(Side::Server);
    encoder.head(&Metadata::new(), &mut out);
    let error = Error::aborted("x");
    encoder.end(Err(&error), &trailers, &mut out);
    let (head, body, _) = drain(&mut out);
    assert_eq!(
        read_answer(&client, &head.unwrap(), &body),
        [Seen::Failed(
            "aborted: x".to_owned(),
            metadata(&[("x-small", "1")])
        )]
    );

    let entry = [&[7][..], b"x-large", &[0x80, 0x20], &[b'v'; 4096]].concat();
    let body = frame(Flags::METADATA, &entry).repeat(2);
    let seen = read_answer(&client, &answer_head(STREAM, &[]), &body);
    assert!(broken(&seen, "resource_exhausted"), "{seen:?}");
}

#[test]
fn a_message_that_grows_under_compression_is_sent_as_it_is() {
    let noise: Vec<u8> = (0..2_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let mut squeezed = bytes::BytesMut::new();
    compression::compress(Encoding::Zstd, 3, &noise, &mut squeezed).unwrap();
    let grows = squeezed.len() >= noise.len();
    let call = outgoing(MethodKind::ClientStreaming, options());
    let mut out = Out::new();
    let mut encoder = call.encoder(Side::Client);
    encoder.message(&raw(noise.clone()), &mut out).unwrap();
    let (_, body, _) = drain(&mut out);
    assert_eq!(body == frame(Flags::DATA, &noise), grows);
}

proptest! {
    #[test]
    fn any_answer_is_read_or_refused(
        body in prop::collection::vec(any::<u8>(), 0..200),
        status in 100_u16..600,
        content_type in prop::sample::select(vec![
            STREAM, "application/quill+proto", "application/problem+json", "text/html",
        ]),
        credits in prop::option::of("[0-9]{0,11}"),
    ) {
        for kind in KINDS {
            let call = outgoing(kind, WireOptions { credits: Some(3), ..options() });
            let mut head = answer_head(content_type, &[]);
            head.status = status;
            if let Some(credits) = &credits {
                head.headers.append("quill-credits", credits);
            }
            let seen = read_answer(&call, &head, &body);
            prop_assert!(seen.len() <= 202);
        }
    }

    #[test]
    fn any_request_head_is_opened_or_refused(
        target in "/echo.v1.EchoService/Echo(\\?[ -~]{0,40})?",
        is_get: bool,
        fields in prop::collection::vec((
            prop::sample::select(vec![
                "quill-timeout-ms", "quill-credits", "quill-encoding", "quill-accept-encoding",
                "content-encoding", "accept-encoding", "prefer", "accept", "x-bin", "traceparent",
            ]),
            "[ -~]{0,20}",
        ), 0..5),
        content_type in "(application/(quill|quill-stream|json|proto)(\\+(json|proto))?)?",
    ) {
        let mut head = post(&content_type, &[]);
        head.target = target;
        if is_get {
            head.method = quill_core::HttpMethod::Get;
        }
        for (name, value) in &fields {
            head.headers.append(name, value);
        }
        for method in KINDS.map(method).into_iter().chain([pure()]) {
            if matches!(Wire::recognise(&head), Wire::Quill | Wire::QuillGet)
                && let Ok((call, Err(error))) = open_with(&head, method, options())
            {
                let none = Metadata::new();
                let mut out = Out::new();
                call.encoder(Side::Server).unary(Err(&error), &none, &none, &mut out);
                let (head, _, ended) = drain(&mut out);
                prop_assert!(ended && head.unwrap().status >= 400);
            }
        }
    }
}
