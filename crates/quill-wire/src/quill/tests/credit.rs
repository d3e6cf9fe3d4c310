//! Credits: the handshake, the accounts, what follows END_STREAM.

use super::*;
use crate::Encode;
use crate::quill::frames::frame;
use quill_core::frame::Flags;

const STREAM: &str = "application/quill-stream+proto";

fn client(credits: u32, kind: MethodKind) -> Call {
    outgoing(
        kind,
        WireOptions {
            credits: Some(credits),
            ..options()
        },
    )
}

#[test]
fn both_halves_are_framed_in_every_kind() {
    for kind in KINDS {
        let head = post(STREAM, &[("quill-credits", "4")]);
        let server = open(&head, kind);
        assert_eq!(server.credits(), Some(16));
        let body = frame(Flags::DATA_END, b"hi");
        let seen = read(&mut server.decoder(Side::Server), &[&body], false);
        assert_eq!(seen, [Seen::message(b"hi"), Seen::end()], "{kind:?}");

        let mut out = Out::new();
        let mut encoder = server.encoder(Side::Server);
        encoder.head(&Metadata::new(), &mut out);
        let (head, _, ended) = drain(&mut out);
        assert_eq!(
            pairs(&head.unwrap().headers),
            [("content-type", STREAM), ("quill-credits", "16")]
        );
        assert!(!ended);
        let none = Metadata::new();
        encoder.unary(Ok(&raw("yo")), &none, &none, &mut out);
        let (head, body, ended) = drain(&mut out);
        assert_eq!((head, ended), (None, true));
        assert_eq!(body, frame(Flags::DATA_END, b"yo"));

        // A bare body is of the wrong shape then.
        let bare = post("application/quill+proto", &[("quill-credits", "4")]);
        let refused = open_with(&bare, method(kind), options()).unwrap_err();
        assert_eq!(refused, Refusal::MediaType);
    }
}

#[test]
fn a_failure_behind_the_head_is_a_frame_in_every_kind() {
    for kind in KINDS {
        let server = open(&post(STREAM, &[("quill-credits", "4")]), kind);
        let mut out = Out::new();
        let mut encoder = server.encoder(Side::Server);
        encoder.head(&Metadata::new(), &mut out);
        let error = Error::aborted("x");
        let late = metadata(&[("x-late", "1")]);
        encoder.unary(Err(&error), &late, &Metadata::new(), &mut out);
        let (_, body, ended) = drain(&mut out);
        assert!(ended);
        let call = client(4, MethodKind::BidiStreaming);
        let head = answer_head(STREAM, &[("quill-credits", "16")]);
        let seen = read_answer(&call, &head, &body);
        assert_eq!(seen, [Seen::Failed("aborted: x".to_owned(), late)]);
    }
}

#[test]
fn a_client_sends_sixteen_until_it_knows_more() {
    let call = client(2, MethodKind::ClientStreaming);
    assert_eq!(call.request().headers.text("quill-credits"), Some("2"));
    let mut encoder = call.encoder(Side::Client);
    let mut decoder = call.decoder(Side::Client);
    let mut out = Out::new();
    let mut sent = 0;
    while encoder.may_send() {
        encoder.message(&raw("m"), &mut out).unwrap();
        sent += 1;
    }
    assert_eq!(sent, 16);
    decoder
        .head(&answer_head(STREAM, &[("quill-credits", "20")]))
        .unwrap();
    while encoder.may_send() {
        encoder.message(&raw("m"), &mut out).unwrap();
        sent += 1;
    }
    assert_eq!(sent, 20);
    decoder.feed(Bytes::from(frame(Flags::CREDIT, &[3])));
    assert_eq!(next(&mut decoder), Some(Seen::Credit(3)));
    encoder.credited(3);
    assert!(encoder.may_send());
}

#[test]
fn a_server_holds_back_at_zero_and_goes_on_when_credited() {
    let head = post(STREAM, &[("quill-credits", "2")]);
    let server = open(&head, MethodKind::BidiStreaming);
    let mut encoder = server.encoder(Side::Server);
    let mut out = Out::new();
    encoder.head(&Metadata::new(), &mut out);
    for _ in 0..2 {
        assert!(encoder.may_send());
        encoder.message(&raw("m"), &mut out).unwrap();
    }
    assert!(!encoder.may_send());
    encoder.credited(u32::MAX);
    encoder.credited(u32::MAX);
    assert!(encoder.may_send());
}

#[test]
fn more_than_was_granted_ends_the_call() {
    let one = frame(Flags::DATA, b"m");
    let head = post(STREAM, &[("quill-credits", "2")]);
    let server = open(&head, MethodKind::ClientStreaming);
    let mut decoder = server.decoder(Side::Server);
    let seen = read(&mut decoder, &[&one.repeat(16)], false);
    assert_eq!(seen.len(), 16);
    let mut out = Out::new();
    let mut encoder = server.encoder(Side::Server);
    encoder.grant(2, &mut out);
    let (head, body, _) = drain(&mut out);
    assert!(head.is_some(), "a grant needs a head before it");
    assert_eq!(body, [1, 8, 2]);
    let seen = read(&mut decoder, &[&one.repeat(3)], false);
    assert_eq!(seen.len(), 3);
    assert!(broken(&seen, "resource_exhausted"), "{seen:?}");

    let call = client(2, MethodKind::ServerStreaming);
    let head = answer_head(STREAM, &[("quill-credits", "16")]);
    let seen = read_answer(&call, &head, &one.repeat(3));
    assert!(broken(&seen, "resource_exhausted"), "{seen:?}");
}

#[test]
fn grants_and_cancel_may_follow_the_last_message() {
    let call = client(2, MethodKind::ServerStreaming);
    let mut out = Out::new();
    call.unary_request(&raw("m"), &mut out).unwrap();
    let mut encoder = call.encoder(Side::Client);
    encoder.grant(1, &mut out);
    let (_, body, ended) = drain(&mut out);
    assert_eq!(
        body,
        [&frame(Flags::DATA_END, b"m")[..], &[1, 8, 1]].concat()
    );
    assert!(!ended, "bytes may follow");

    let head = post(STREAM, &[("quill-credits", "2")]);
    let server = open(&head, MethodKind::ServerStreaming);
    let body = [body, frame(Flags::CANCEL, b"")].concat();
    let seen = read(&mut server.decoder(Side::Server), &[&body], true);
    assert_eq!(
        seen,
        [
            Seen::message(b"m"),
            Seen::end(),
            Seen::Credit(1),
            Seen::Cancel
        ]
    );
}

#[test]
fn a_client_that_gives_up_says_so() {
    let call = client(2, MethodKind::BidiStreaming);
    let mut encoder = call.encoder(Side::Client);
    let mut out = Out::new();
    encoder.message(&raw("m"), &mut out).unwrap();
    let error = Error::canceled("");
    encoder.end(Err(&error), &Metadata::new(), &mut out);
    let (_, body, ended) = drain(&mut out);
    assert_eq!(body, [&frame(Flags::DATA, b"m")[..], &[0, 4]].concat());
    assert!(ended);
}

#[test]
fn http1_keeps_the_framing_and_has_no_credits() {
    let head = over_http1(post(STREAM, &[("quill-credits", "2")]));
    let server = open(&head, MethodKind::ServerStreaming);
    assert!(
        server.credits().is_some(),
        "the head leaves at once all the same"
    );
    let body = [frame(Flags::DATA, b"m"), frame(Flags::END_STREAM, b"")].concat();
    let seen = read(&mut server.decoder(Side::Server), &[&body], true);
    assert_eq!(seen, [Seen::message(b"m"), Seen::end()]);
    let mut encoder = server.encoder(Side::Server);
    let mut out = Out::new();
    encoder.head(&Metadata::new(), &mut out);
    for _ in 0..20 {
        assert!(encoder.may_send());
        encoder.message(&raw("m"), &mut out).unwrap();
    }
    encoder.grant(5, &mut out);
    let (head, body, _) = drain(&mut out);
    assert_eq!(head.unwrap().headers.first("quill-credits"), None);
    assert_eq!(body, frame(Flags::DATA, b"m").repeat(20));

    // A client does not even ask.
    let mut call = client(2, MethodKind::ServerStreaming);
    call.leaves_on(HttpVersion::Http1).unwrap();
    assert_eq!(call.credits(), None);
    let mut out = Out::new();
    let head = call.unary_request(&raw("m"), &mut out).unwrap();
    assert_eq!(head.headers.first("quill-credits"), None);
    assert_eq!(drain(&mut out), (None, b"m".to_vec(), true));
}

#[test]
fn a_server_that_answers_without_credits_gets_none() {
    let call = client(2, MethodKind::BidiStreaming);
    let mut encoder = call.encoder(Side::Client);
    let mut decoder = call.decoder(Side::Client);
    decoder.head(&answer_head(STREAM, &[])).unwrap();
    let mut out = Out::new();
    for _ in 0..40 {
        assert!(encoder.may_send());
        encoder.message(&raw("m"), &mut out).unwrap();
    }
    drain(&mut out);
    encoder.grant(1, &mut out);
    assert_eq!(drain(&mut out).1, b"");
    let seen = read(&mut decoder, &[&frame(Flags::DATA, b"m").repeat(5)], false);
    assert_eq!(seen.len(), 5);
    encoder.end(Ok(()), &Metadata::new(), &mut out);
    assert_eq!(drain(&mut out), (None, vec![0, 2], true));
}

#[test]
fn malformed_grants_are_refused() {
    for value in ["0", "-1", "x", ""] {
        let head = post(STREAM, &[("quill-credits", value)]);
        let (_, opened) = open_with(&head, method(MethodKind::Unary), options()).unwrap();
        let error = opened.unwrap_err();
        assert_eq!(error.code(), quill_core::Code::InvalidArgument, "{value:?}");
    }
    for value in ["15", "0", "x"] {
        let call = client(2, MethodKind::BidiStreaming);
        let head = answer_head(STREAM, &[("quill-credits", value)]);
        assert!(broken(&read_answer(&call, &head, b""), "internal"));
    }
    let call = open(
        &post(STREAM, &[("quill-credits", "2")]),
        MethodKind::BidiStreaming,
    );
    let zero = [1, 8, 0];
    let seen = read(&mut call.decoder(Side::Server), &[&zero], false);
    assert!(broken(&seen, "invalid_argument"));
}

#[test]
fn floods_end_the_call_and_a_long_stream_is_none() {
    let head = post(STREAM, &[("quill-credits", "16")]);
    let call = open(&head, MethodKind::BidiStreaming);
    let mut decoder = call.decoder(Side::Server);
    let grants = frame(Flags::CREDIT, &[1]).repeat(2_000);
    let seen = read(&mut decoder, &[&grants], false);
    assert!(broken(&seen, "resource_exhausted"));
    assert_eq!(seen.len(), 1_025);
    let names = frame(Flags::METADATA, b"").repeat(2_000);
    let seen = read(&mut call.clone().decoder(Side::Server), &[&names], false);
    assert!(broken(&seen, "resource_exhausted"));

    // A download: the client sends nothing but grants, each for what was sent.
    let call = open(&head, MethodKind::ServerStreaming);
    let mut decoder = call.decoder(Side::Server);
    let mut encoder = call.encoder(Side::Server);
    let mut out = Out::new();
    for _ in 0..3_000 {
        decoder.feed(Bytes::from(frame(Flags::CREDIT, &[1])));
        assert_eq!(next(&mut decoder), Some(Seen::Credit(1)));
        encoder.credited(1);
        assert!(encoder.may_send());
        encoder.message(&raw("m"), &mut out).unwrap();
    }

    // Empty messages that the application takes are messages.
    let call = open(&post(STREAM, &[]), MethodKind::ClientStreaming);
    let empty = frame(Flags::DATA, b"").repeat(3_000);
    let seen = read(&mut call.decoder(Side::Server), &[&empty], false);
    assert_eq!(seen.len(), 3_000);
    assert!(!broken(&seen, ""));
}
