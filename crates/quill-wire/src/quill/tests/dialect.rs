//! The clients of the framework that the frames come from.

use super::*;
use crate::Encode;
use crate::quill::frames::frame;
use quill_core::compression::{self, Encoding};
use quill_core::frame::Flags;

/// What such a client sends with every call.
const PRISM: (&str, &str) = ("prefer", "prism=hyper,turbo,classic");

#[test]
fn curl_gets_a_bare_answer_and_problems() {
    let accept = ("accept", "application/problem+json");
    let head = post("application/json", &[accept]);
    let call = open(&head, MethodKind::Unary);
    assert_eq!((call.wire, call.format), (Wire::Quill, Format::Json));
    let seen = read(
        &mut call.decoder(Side::Server),
        &[br#"{"message":"hi"}"#],
        true,
    );
    assert_eq!(seen, [Seen::message(br#"{"message":"hi"}"#), Seen::end()]);

    let none = Metadata::new();
    let mut out = Out::new();
    let answer = raw(r#"{"message":"hi"}"#);
    call.encoder(Side::Server)
        .unary(Ok(&answer), &none, &none, &mut out);
    let (head, body, ended) = drain(&mut out);
    assert!(ended);
    assert_eq!(body, br#"{"message":"hi"}"#);
    assert_eq!(
        pairs(&head.unwrap().headers),
        [("content-type", "application/json")]
    );

    let mut out = Out::new();
    let error = Error::not_found("no user 7");
    call.encoder(Side::Server)
        .unary(Err(&error), &none, &none, &mut out);
    let (head, body, _) = drain(&mut out);
    let head = head.unwrap();
    assert_eq!(head.status, 404);
    assert_eq!(
        pairs(&head.headers),
        [("content-type", "application/problem+json")]
    );
    assert!(body.starts_with(br#"{"type":"https://quill.dev/errors/not-found""#));
}

#[test]
fn a_unary_call_is_bare_and_may_be_compressed_whole() {
    let mut body = bytes::BytesMut::new();
    compression::compress(Encoding::Zstd, 3, b"hello", &mut body).unwrap();
    let fields = [
        PRISM,
        ("content-encoding", "zstd"),
        ("accept-encoding", "zstd"),
    ];
    let call = open(&post("application/proto", &fields), MethodKind::Unary);
    let seen = read(&mut call.decoder(Side::Server), &[&body], true);
    assert_eq!(seen, [Seen::message(b"hello"), Seen::end()]);

    let none = Metadata::new();
    let mut out = Out::new();
    let answer = raw(vec![b'x'; 5_000]);
    call.encoder(Side::Server)
        .unary(Ok(&answer), &none, &none, &mut out);
    let (head, body, _) = drain(&mut out);
    assert_eq!(
        pairs(&head.unwrap().headers),
        [
            ("content-type", "application/proto"),
            ("selected-prism", "turbo"),
            ("content-encoding", "zstd")
        ]
    );
    let plain = compression::decompress(Encoding::Zstd, &body, 5_000).unwrap();
    assert_eq!(plain.len(), 5_000);
}

#[test]
fn a_stream_of_requests_may_be_compressed_whole() {
    let frames = [
        frame(Flags::DATA, b"one"),
        frame(Flags::DATA, b"two"),
        frame(Flags::END_STREAM, b""),
    ]
    .concat();
    let messages = [Seen::message(b"one"), Seen::message(b"two"), Seen::end()];
    for kind in [MethodKind::ClientStreaming, MethodKind::BidiStreaming] {
        // Unmarked too: on a streaming method nobody else has this type.
        let call = open(&post("application/proto", &[]), kind);
        let seen = read(&mut call.decoder(Side::Server), &[&frames], true);
        assert_eq!(seen, messages, "{kind:?}");

        let mut body = bytes::BytesMut::new();
        compression::compress(Encoding::Zstd, 3, &frames, &mut body).unwrap();
        let fields = [PRISM, ("content-encoding", "zstd")];
        let call = open(&post("application/proto", &fields), kind);
        let pieces: Vec<&[u8]> = body.chunks(3).collect();
        let seen = read(&mut call.decoder(Side::Server), &pieces, true);
        assert_eq!(seen, messages, "{kind:?}");
        // Cut short it is no end.
        let cut = &body[..body.len() - 1];
        let seen = read(&mut call.decoder(Side::Server), &[cut], true);
        assert!(broken(&seen, "invalid_argument"), "{seen:?}");
    }
}

#[test]
fn answers_have_only_the_flags_it_knows() {
    for kind in [MethodKind::ServerStreaming, MethodKind::BidiStreaming] {
        let fields = [PRISM, ("quill-accept-encoding", "zstd")];
        let call = open(&post("application/proto", &fields), kind);
        let trailers = metadata(&[("x-t", "1")]);
        let large = vec![b'x'; 3_000];
        let mut out = Out::new();
        let mut encoder = call.encoder(Side::Server);
        encoder.head(&metadata(&[("x-l", "1")]), &mut out);
        encoder.message(&raw(large.clone()), &mut out).unwrap();
        encoder.end(Ok(()), &trailers, &mut out);
        let (head, body, ended) = drain(&mut out);
        assert!(ended);
        assert_eq!(
            pairs(&head.unwrap().headers),
            [
                ("content-type", "application/proto"),
                ("selected-prism", "turbo"),
                ("x-l", "1")
            ]
        );
        let expected = [frame(Flags::DATA, &large), frame(Flags::END_STREAM, b"")];
        assert_eq!(body, expected.concat());

        let mut out = Out::new();
        let mut encoder = call.encoder(Side::Server);
        encoder.head(&Metadata::new(), &mut out);
        encoder.message(&raw("m"), &mut out).unwrap();
        let error = Error::internal("x");
        encoder.end(Err(&error), &trailers, &mut out);
        let (_, body, ended) = drain(&mut out);
        assert!(ended);
        assert_eq!(body, [&frame(Flags::DATA, b"m")[..], &[0, 4]].concat());
    }
}

#[test]
fn header_names_alone_mark_nothing() {
    for fields in [
        &[("quill-credits", "4")][..],
        &[("accept", "application/json")],
        &[("prefer", "turbo")],
        &[],
    ] {
        let head = post("application/json", fields);
        assert_eq!(Wire::recognise(&head), Wire::ConnectUnary, "{fields:?}");
    }
    // Credits are none of the dialect's.
    let call = open(
        &post("application/proto", &[PRISM, ("quill-credits", "x")]),
        MethodKind::Unary,
    );
    assert_eq!(call.credits(), None);
}
