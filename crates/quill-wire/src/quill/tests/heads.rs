//! Heads: what they open, what they refuse, what they say of an answer.

use super::*;
use crate::{Decode, Encode, Event};
use quill_core::compression::Encoding;
use quill_core::{Code, HttpMethod};
use std::time::Duration;

fn refused(head: &RequestHead, method: Arc<Method>) -> Refusal {
    open_with(head, method, options()).unwrap_err()
}

fn opening_error(head: &RequestHead, kind: MethodKind) -> Error {
    let (_, opened) = open_with(head, method(kind), options()).unwrap();
    opened.unwrap_err()
}

fn get(query: &str) -> RequestHead {
    let mut head = RequestHead::post(format!("/echo.v1.EchoService/Echo?{query}"));
    head.method = HttpMethod::Get;
    head
}

#[test]
fn the_shape_of_a_body_is_that_of_its_method() {
    for kind in KINDS {
        let streams = kind.client_streams();
        for (content_type, fits) in [
            ("application/quill+proto", !streams),
            ("application/quill+json; charset=utf-8", !streams),
            ("application/quill-stream+proto", streams),
            ("APPLICATION/QUILL-STREAM+JSON", streams),
        ] {
            let opened = open_with(&post(content_type, &[]), method(kind), options());
            assert_eq!(opened.is_ok(), fits, "{kind:?} {content_type}");
            if let Err(refusal) = opened {
                assert_eq!(refusal, Refusal::MediaType);
            }
        }
    }
    let other = post("application/quill+xml", &[]);
    assert_eq!(
        refused(&other, method(MethodKind::Unary)),
        Refusal::MediaType
    );
}

#[test]
fn deadlines_are_read_clamped_and_refused() {
    let kind = MethodKind::Unary;
    let with = |value| post("application/quill+proto", &[("quill-timeout-ms", value)]);
    assert_eq!(
        open(&with("250"), kind).timeout,
        Some(Duration::from_millis(250))
    );
    for value in ["-1", "+5", "10s", "12345678901", ""] {
        let error = opening_error(&with(value), kind);
        assert_eq!(error.code(), Code::InvalidArgument, "{value:?}");
    }
    let none = open(&post("application/quill+proto", &[]), kind);
    assert_eq!(none.timeout, None);
}

#[test]
fn encodings_are_read_chosen_and_refused() {
    let stream = "application/quill-stream+proto";
    let bare = "application/quill+proto";
    let kind = MethodKind::BidiStreaming;
    let call = open(
        &post(
            stream,
            &[
                ("quill-encoding", "gzip"),
                ("quill-accept-encoding", "br, gzip"),
                ("accept-encoding", "zstd"),
            ],
        ),
        kind,
    );
    assert_eq!((call.receive, call.send), (Encoding::Gzip, Encoding::Gzip));
    let call = open(
        &post(
            bare,
            &[
                ("content-encoding", "zstd"),
                ("accept-encoding", "gzip;q=0, zstd"),
            ],
        ),
        MethodKind::Unary,
    );
    assert_eq!((call.receive, call.send), (Encoding::Zstd, Encoding::Zstd));
    let silent = WireOptions {
        compress: false,
        ..options()
    };
    let head = post(bare, &[("accept-encoding", "zstd")]);
    let (call, _) = open_with(&head, method(MethodKind::Unary), silent).unwrap();
    assert_eq!(call.send, Encoding::Identity);
    for (head, kind) in [
        (post(stream, &[("quill-encoding", "x-foo")]), kind),
        (post(stream, &[("content-encoding", "gzip")]), kind),
        (post(bare, &[("content-encoding", "br")]), MethodKind::Unary),
    ] {
        assert_eq!(opening_error(&head, kind).code(), Code::Unimplemented);
    }
}

#[test]
fn bad_base64_is_refused_with_the_name_of_its_header() {
    let head = post(
        "application/quill+proto",
        &[("x-key-bin", "!"), ("x-a", "1")],
    );
    let error = opening_error(&head, MethodKind::Unary);
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("x-key-bin"), "{error}");
}

#[test]
fn metadata_is_all_but_the_protocols_own() {
    let head = post(
        "application/quill+proto",
        &[
            ("x-a", "1"),
            ("quill-timeout-ms", "5"),
            ("user-agent", "t"),
            ("te", "trailers"),
        ],
    );
    let call = open(&head, MethodKind::Unary);
    assert_eq!(
        call.metadata,
        metadata(&[("x-a", "1"), ("user-agent", "t")])
    );
}

#[test]
fn a_get_is_for_methods_without_side_effects() {
    let query = "quill=v1&encoding=json&message=%7B%7D";
    let (call, opened) = open_with(&get(query), pure(), options()).unwrap();
    opened.unwrap();
    let first = call.decoder(Side::Server).next().unwrap();
    assert!(matches!(first, Some(Event::Message(message)) if message == "{}"));
    for kind in KINDS {
        assert_eq!(
            refused(&get(query), method(kind)),
            Refusal::HttpMethod("POST")
        );
    }
    assert_eq!(
        refused(&get("quill=v1&encoding=xml&message="), pure()),
        Refusal::MediaType
    );
    let mut put = post("application/quill+proto", &[]);
    put.method = HttpMethod::Other("PUT".into());
    assert_eq!(refused(&put, pure()), Refusal::HttpMethod("GET, POST"));
    let bad = get("quill=v1&encoding=json&base64=0&message=e30");
    let (_, opened) = open_with(&bad, pure(), options()).unwrap();
    assert_eq!(opened.unwrap_err().code(), Code::InvalidArgument);
}

#[test]
fn caches_may_keep_good_answers_to_a_get_only() {
    let cached = Method::new("/a.B/C", MethodKind::Unary)
        .with_idempotency(quill_core::Idempotency::NoSideEffects)
        .with_cache_ttl(Duration::from_millis(60_500));
    let query = "quill=v1&encoding=json&message=%7B%7D";
    let none = Metadata::new();
    let answer = |method: &Method, head: &RequestHead, result: Result<(), &Error>, leading| {
        let (call, _) = open_with(head, Arc::new(method.clone()), options()).unwrap();
        let mut out = Out::new();
        let message = raw("{}");
        let result = result.map(|()| &message as &dyn quill_core::Outgoing);
        call.encoder(Side::Server)
            .unary(result, leading, &none, &mut out);
        out.take_head().unwrap().headers
    };
    let headers = answer(&cached, &get(query), Ok(()), &none);
    assert_eq!(headers.text("cache-control"), Some("private, max-age=60"));
    assert_eq!(
        headers.text("vary"),
        Some("accept, prefer, accept-encoding")
    );
    let headers = answer(&pure(), &get(query), Ok(()), &none);
    assert_eq!(headers.text("cache-control"), Some("private, max-age=0"));
    let public = metadata(&[("cache-control", "public, max-age=5")]);
    let headers = answer(&cached, &get(query), Ok(()), &public);
    assert_eq!(
        headers.all("cache-control").collect::<Vec<_>>(),
        [b"public, max-age=5"]
    );
    let headers = answer(&cached, &get(query), Err(&Error::internal("x")), &none);
    assert_eq!(headers.text("cache-control"), Some("no-store"));
    let head = post("application/quill+json", &[]);
    let headers = answer(&cached, &head, Ok(()), &none);
    assert_eq!(headers.text("cache-control"), None);
}

#[test]
fn a_preference_is_answered_with_the_profile_of_the_connection() {
    let none = Metadata::new();
    let prefer = [("prefer", "prism=hyper,turbo,classic")];
    for content_type in ["application/quill+proto", "application/proto"] {
        for (version, profile) in [
            (HttpVersion::Http1, "classic"),
            (HttpVersion::Http2, "turbo"),
        ] {
            let mut head = post(content_type, &prefer);
            head.version = version;
            let call = open(&head, MethodKind::Unary);
            let error = Error::internal("x");
            for result in [Ok(&raw("m") as &dyn quill_core::Outgoing), Err(&error)] {
                let mut out = Out::new();
                call.encoder(Side::Server)
                    .unary(result, &none, &none, &mut out);
                let headers = out.take_head().unwrap().headers;
                assert_eq!(headers.text("selected-prism"), Some(profile));
            }
        }
    }
}

#[test]
fn a_failure_names_its_trace_and_its_method() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let head = post("application/quill+proto", &[("traceparent", parent)]);
    let call = open(&head, MethodKind::Unary);
    let none = Metadata::new();
    let mut out = Out::new();
    let error = Error::internal("x");
    call.encoder(Side::Server)
        .unary(Err(&error), &none, &none, &mut out);
    let (_, body, _) = drain(&mut out);
    let text = String::from_utf8(body).unwrap();
    assert!(
        text.contains(r#""trace_id":"4bf92f3577b34da6a3ce929d0e0e4736""#),
        "{text}"
    );
    assert!(
        text.contains(r#""instance":"/echo.v1.EchoService/Echo""#),
        "{text}"
    );
}

#[test]
fn refusals_have_their_status_their_header_and_their_problem() {
    for (refusal, status, header, code) in [
        (Refusal::UnknownPath, 404, None, Some("unimplemented")),
        (
            Refusal::PathNotCanonical,
            400,
            None,
            Some("invalid_argument"),
        ),
        (
            Refusal::HttpMethod("POST"),
            405,
            Some(("allow", "POST")),
            None,
        ),
        (
            Refusal::MediaType,
            415,
            Some(("accept-post", crate::negotiate::ACCEPT_POST)),
            None,
        ),
        (Refusal::HttpVersion, 505, None, Some("unimplemented")),
    ] {
        let mut out = Out::new();
        Wire::Quill.refuse(refusal, &mut out);
        let (head, body, ended) = drain(&mut out);
        let head = head.unwrap();
        assert!(ended);
        assert_eq!(head.status, status);
        if let Some((name, value)) = header {
            assert_eq!(head.headers.text(name), Some(value));
        }
        let call = outgoing(MethodKind::Unary, options());
        let seen = read_answer(&call, &head, &body);
        match code {
            Some(code) => {
                let [Seen::Failed(text, _)] = &seen[..] else {
                    panic!("{seen:?}");
                };
                assert!(text.starts_with(code), "{text}");
                assert!(body.starts_with(b"{"));
            }
            None => assert!(body.is_empty()),
        }
    }
}

#[test]
fn a_client_asks_for_what_it_can_read() {
    let mut call = outgoing(MethodKind::Unary, options());
    call.timeout = Some(Duration::from_micros(1_500));
    let head = call.unary_request(&raw("m"), &mut Out::new()).unwrap();
    assert_eq!(
        pairs(&head.headers),
        [
            ("content-type", "application/quill+proto"),
            ("accept-encoding", "zstd,gzip"),
            ("quill-timeout-ms", "2"),
        ]
    );
    let head = call
        .unary_request(&raw(vec![0; 5_000]), &mut Out::new())
        .unwrap();
    assert_eq!(head.headers.text("content-encoding"), Some("zstd"));
    let head = outgoing(MethodKind::BidiStreaming, options()).request();
    assert_eq!(
        pairs(&head.headers),
        [
            ("content-type", "application/quill-stream+proto"),
            ("quill-encoding", "zstd"),
            ("quill-accept-encoding", "zstd,gzip"),
        ]
    );
}
