use super::*;
use std::time::Duration;

use proptest::prelude::*;
use quill_core::compression::Encoding;
use quill_core::{Detail, HttpMethod};
use quill_wire::Encode;

fn unary() -> Arc<Method> {
    method(MethodKind::Unary)
}

fn call(format: Format) -> Call {
    outgoing(Wire::ConnectUnary, MethodKind::Unary, format)
}

fn answer_of(
    call: &Call,
    result: Result<&str, &Error>,
    head: &Metadata,
    trailers: &Metadata,
) -> Sent {
    let mut out = Out::new();
    let message = result.map(|text| message(text.to_owned()));
    let result = message
        .as_ref()
        .map(|message| message as _)
        .map_err(|error| *error);
    call.encoder(Side::Server)
        .unary(result, head, trailers, &mut out);
    Sent::of(out)
}

#[test]
fn a_request_is_a_post_of_the_bare_message() {
    let mut call = call(Format::Json);
    call.timeout = Some(Duration::from_micros(1_500));
    call.metadata = metadata(&[("x-id", "7"), ("k-bin", "\u{1}\u{2}\u{3}\u{4}")]);
    let mut out = Out::new();
    let head = call.unary_request(&message("{}"), &mut out).unwrap();
    assert_eq!(
        (&head.method, head.target.as_str()),
        (&HttpMethod::Post, PATH)
    );
    assert_eq!(
        fields(&head.headers),
        [
            ("content-type", "application/json"),
            ("connect-protocol-version", "1"),
            ("accept-encoding", "zstd,gzip"),
            ("connect-timeout-ms", "2"),
            ("x-id", "7"),
            ("k-bin", "AQIDBA"),
        ]
    );
    let sent = Sent::of(out);
    assert_eq!((sent.text(), sent.ended), ("{}", true));
}

#[test]
fn a_large_request_is_compressed_and_named_so() {
    let call = call(Format::Proto);
    let text = "x".repeat(2_000);
    let mut out = Out::new();
    let head = call
        .unary_request(&message(text.clone()), &mut out)
        .unwrap();
    assert_eq!(head.headers.text("content-encoding"), Some("zstd"));
    let body = Sent::of(out).body;
    assert!(body.len() < 100);
    let server = opened(&head, unary(), Arc::default());
    let seen = events(&mut server.decoder(Side::Server), &[&body]);
    assert_eq!(
        seen,
        [Seen::Message(text.into()), Seen::End(Metadata::new())]
    );
}

#[test]
fn a_head_that_left_before_its_message_names_no_encoding() {
    let call = call(Format::Proto);
    let head = call.request();
    assert_eq!(head.headers.first("content-encoding"), None);
    let mut encoder = call.encoder(Side::Client);
    let mut out = Out::new();
    encoder
        .message(&message("x".repeat(2_000)), &mut out)
        .unwrap();
    assert_eq!(
        encoder.message(&message("y"), &mut out).unwrap_err().code(),
        Code::Internal
    );
    encoder.end(Ok(()), &Metadata::new(), &mut out);
    let sent = Sent::of(out);
    assert_eq!(
        (sent.text(), sent.ended),
        ("x".repeat(2_000).as_str(), true)
    );
}

#[test]
fn a_client_gives_up_without_ending_its_half() {
    for wire in [Wire::ConnectUnary, Wire::ConnectStream] {
        let call = outgoing(wire, MethodKind::ClientStreaming, Format::Proto);
        let mut out = Out::new();
        let error = Error::canceled("");
        call.encoder(Side::Client)
            .end(Err(&error), &Metadata::new(), &mut out);
        let sent = Sent::of(out);
        assert_eq!((sent.text(), sent.ended), ("", false));
    }
}

#[test]
fn an_answer_mirrors_the_format_and_carries_both_kinds_of_metadata() {
    for (content_type, mirrored) in [
        ("application/proto", "application/proto"),
        ("application/JSON; charset=utf-8", "application/json"),
    ] {
        let head = post(content_type, &[("connect-protocol-version", "1")]);
        let call = opened(&head, unary(), Arc::default());
        let leading = metadata(&[("x-a", "1"), ("x-a", "2")]);
        let trailers = metadata(&[("x-b", "3"), ("k-bin", "\u{1}")]);
        let sent = answer_of(&call, Ok("body"), &leading, &trailers);
        assert_eq!(
            (sent.status(), sent.text(), sent.ended),
            (200, "body", true)
        );
        assert_eq!(
            sent.headers(),
            [
                ("content-type", mirrored),
                ("x-a", "1"),
                ("x-a", "2"),
                ("trailer-x-b", "3"),
                ("trailer-k-bin", "AQ"),
            ]
        );
    }
}

#[test]
fn an_error_is_json_under_its_status_whatever_the_format() {
    let call = opened(&post("application/proto", &[]), unary(), Arc::default());
    let error = Error::aborted("lost")
        .with_detail(&Detail {
            type_name: "a.B".to_owned(),
            value: Bytes::from_static(&[255, 239]),
        })
        .with_metadata("x-e", "5")
        .unwrap();
    let sent = answer_of(
        &call,
        Err(&error),
        &metadata(&[("x-a", "1")]),
        &metadata(&[("x-b", "3")]),
    );
    assert_eq!((sent.status(), sent.ended), (409, true));
    assert_eq!(
        sent.headers(),
        [
            ("content-type", "application/json"),
            ("x-a", "1"),
            ("x-e", "5"),
            ("trailer-x-b", "3"),
        ]
    );
    assert_eq!(
        sent.text(),
        r#"{"code":"aborted","message":"lost","details":[{"type":"a.B","value":"/+8"}]}"#
    );
}

#[test]
fn canceled_is_499_and_a_passed_deadline_504() {
    let call = opened(&post("application/json", &[]), unary(), Arc::default());
    for (code, status) in [
        (Code::Canceled, 499),
        (Code::DeadlineExceeded, 504),
        (Code::FailedPrecondition, 400),
        (Code::Unimplemented, 501),
        (Code::DataLoss, 500),
    ] {
        let error = Error::new(code, "");
        let sent = answer_of(&call, Err(&error), &Metadata::new(), &Metadata::new());
        assert_eq!(sent.status(), status);
        assert_eq!(sent.text(), format!(r#"{{"code":"{code}"}}"#));
    }
}

#[test]
fn pieces_of_an_answer_make_the_same_answer() {
    let call = opened(&post("application/proto", &[]), unary(), Arc::default());
    let (leading, trailers) = (metadata(&[("x-a", "1")]), metadata(&[("x-b", "2")]));
    let whole = answer_of(&call, Ok("body"), &leading, &trailers);
    let mut encoder = call.encoder(Side::Server);
    let mut out = Out::new();
    encoder.head(&leading, &mut out);
    encoder.message(&message("body"), &mut out).unwrap();
    assert_eq!(out.body_bytes(), 0, "the status is not known yet");
    encoder.end(Ok(()), &trailers, &mut out);
    let sent = Sent::of(out);
    assert_eq!((&sent.head, &sent.body), (&whole.head, &whole.body));

    let mut out = Out::new();
    let mut encoder = call.encoder(Side::Server);
    encoder.message(&message("body"), &mut out).unwrap();
    encoder.end(Err(&Error::aborted("")), &trailers, &mut out);
    let sent = Sent::of(out);
    assert_eq!((sent.status(), sent.text()), (409, r#"{"code":"aborted"}"#));

    let mut out = Out::new();
    call.encoder(Side::Server).end(Ok(()), &trailers, &mut out);
    assert_eq!(Sent::of(out).status(), 500);
}

#[test]
fn an_answer_over_the_send_limit_is_an_error_and_nothing_else() {
    let limited = options(|options| options.send_bytes_max = 10);
    let call = opened(&post("application/proto", &[]), unary(), limited);
    for (len, status) in [(10, 200), (11, 429)] {
        let body = "x".repeat(len);
        let sent = answer_of(&call, Ok(&body), &Metadata::new(), &Metadata::new());
        assert_eq!(sent.status(), status);
        assert_eq!(sent.text() == body, status == 200);
    }
}

#[test]
fn answers_are_compressed_as_the_caller_accepts() {
    let text = "x".repeat(2_000);
    for (fields, encoding) in [
        (&[("accept-encoding", "br, gzip, zstd")][..], Some("gzip")),
        (&[("accept-encoding", "br")], None),
        (&[("accept-encoding", "identity")], None),
        // Who offers nothing reads what it writes.
        (&[("content-encoding", "gzip")], Some("gzip")),
        (
            &[("content-encoding", "gzip"), ("accept-encoding", "zstd")],
            Some("zstd"),
        ),
        (&[], None),
    ] {
        let call = opened(&post("application/json", fields), unary(), Arc::default());
        let sent = answer_of(&call, Ok(&text), &Metadata::new(), &Metadata::new());
        assert_eq!(sent.header("content-encoding"), encoding);
        assert_eq!(sent.body.len() < 100, encoding.is_some());
        let small = answer_of(&call, Ok("x"), &Metadata::new(), &Metadata::new());
        assert_eq!(small.header("content-encoding"), None);
    }
}

#[test]
fn the_version_may_be_left_out_but_not_be_another() {
    opened(&post("application/proto", &[]), unary(), Arc::default());
    for version in ["2", "", "1.0"] {
        let head = post(
            "application/proto",
            &[("connect-protocol-version", version)],
        );
        assert_eq!(open_code(&head, unary()), Code::InvalidArgument);
    }
}

#[test]
fn a_timeout_is_read_and_a_malformed_one_is_a_400() {
    for timeout in ["-1", "+5", "10s", "12345678901", ""] {
        let head = post("application/proto", &[("connect-timeout-ms", timeout)]);
        let (call, checked) = open(&head, unary(), Arc::default()).unwrap();
        let error = checked.unwrap_err();
        let sent = answer_of(&call, Err(&error), &Metadata::new(), &Metadata::new());
        assert_eq!(sent.status(), 400);
        assert!(sent.text().starts_with(r#"{"code":"invalid_argument""#));
    }
    for (fields, timeout) in [
        (&[("connect-timeout-ms", "100")][..], Some(100)),
        (&[], None),
    ] {
        let head = post("application/proto", fields);
        let call = opened(&head, unary(), Arc::default());
        assert_eq!(call.timeout, timeout.map(Duration::from_millis));
    }
}

#[test]
fn an_unknown_compression_is_unimplemented_and_names_what_works() {
    let head = post("application/proto", &[("content-encoding", "foo")]);
    let (call, checked) = open(&head, unary(), Arc::default()).unwrap();
    let error = checked.unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);
    assert!(error.message().contains("zstd,gzip"), "{error}");
    let sent = answer_of(&call, Err(&error), &Metadata::new(), &Metadata::new());
    assert_eq!(sent.status(), 501);
    assert_eq!(sent.header("accept-encoding"), Some("zstd,gzip"));
}

#[test]
fn request_metadata_is_all_that_is_not_the_protocols() {
    let head = post(
        "application/proto",
        &[
            ("connect-protocol-version", "1"),
            ("accept-encoding", "gzip"),
            ("x-a", "1"),
            ("k-bin", "AQ=="),
            ("k-bin", "Ag"),
        ],
    );
    let call = opened(&head, unary(), Arc::default());
    let mut expected = metadata(&[("x-a", "1")]);
    expected.append_bin("k-bin", [1]).unwrap();
    expected.append_bin("k-bin", [2]).unwrap();
    assert_eq!(call.metadata, expected);
}

#[test]
fn a_message_at_the_limit_is_read_and_one_byte_more_is_not_held() {
    let limited = options(|options| options.receive_bytes_max = 10);
    let good = |bytes: &[u8]| vec![Seen::Message(bytes.to_vec()), Seen::End(Metadata::new())];
    let refused = [Seen::Broken(Code::ResourceExhausted)];
    let plain = opened(
        &post("application/proto", &[]),
        unary(),
        Arc::clone(&limited),
    );
    let decoder = || plain.decoder(Side::Server);
    assert_eq!(events_however_cut(decoder, &[7; 10]), good(&[7; 10]));
    assert_eq!(events_however_cut(decoder, &[7; 11]), refused);
    let mut held = plain.decoder(Side::Server);
    for _ in 0..1_000 {
        held.feed(Bytes::from_static(&[7; 6]));
        assert!(held.held_bytes() <= 10);
    }

    let head = post("application/proto", &[("content-encoding", "gzip")]);
    let limited = options(|options| options.receive_bytes_max = 100);
    let packed = opened(&head, unary(), limited);
    let decoder = || packed.decoder(Side::Server);
    assert_eq!(
        events_however_cut(decoder, &gzip(&[7; 100])),
        good(&[7; 100])
    );
    assert_eq!(events_however_cut(decoder, &gzip(&[7; 101])), refused);
}

#[test]
fn empty_messages_are_messages_compressed_or_not() {
    let empty = [Seen::Message(vec![]), Seen::End(Metadata::new())];
    for (fields, body) in [
        (&[][..], vec![]),
        (&[("content-encoding", "gzip")], vec![]),
        (&[("content-encoding", "gzip")], gzip(b"")),
    ] {
        let call = opened(&post("application/proto", fields), unary(), Arc::default());
        assert_eq!(
            events_however_cut(|| call.decoder(Side::Server), &body),
            empty
        );
    }
}

#[test]
fn corrupt_compression_is_the_senders_fault() {
    let head = post("application/proto", &[("content-encoding", "gzip")]);
    let server = opened(&head, unary(), Arc::default());
    assert_eq!(
        events(&mut server.decoder(Side::Server), &[b"junk"]),
        [Seen::Broken(Code::InvalidArgument)]
    );
    let head = answer(
        200,
        &[
            ("content-type", "application/proto"),
            ("content-encoding", "gzip"),
        ],
    );
    let (_, mut decoder) = answered(&call(Format::Proto), &head).unwrap();
    assert_eq!(
        events(&mut decoder, &[b"junk"]),
        [Seen::Broken(Code::Internal)]
    );
}

#[test]
fn a_client_reads_metadata_from_both_kinds_of_headers() {
    let head = answer(
        200,
        &[
            ("content-type", "application/proto"),
            ("x-a", "1"),
            ("trailer-x-b", "2"),
            ("trailer-k-bin", "QQ=="),
        ],
    );
    let (leading, mut decoder) = answered(&call(Format::Proto), &head).unwrap();
    assert_eq!(leading, metadata(&[("x-a", "1")]));
    let trailing = metadata(&[("x-b", "2"), ("k-bin", "A")]);
    assert_eq!(
        events(&mut decoder, &[b"bo", b"dy"]),
        [Seen::Message(b"body".to_vec()), Seen::End(trailing)]
    );
}

#[test]
fn a_client_reads_errors_with_their_metadata() {
    let head = answer(
        422,
        &[
            ("content-type", "application/json; charset=utf-8"),
            ("content-encoding", "gzip"),
            ("x-a", "1"),
            ("trailer-x-b", "2"),
        ],
    );
    let call = call(Format::Proto);
    let decoder = || answered(&call, &head).unwrap().1;
    let body = gzip(br#"{"code":"out_of_range","message":"oops","foobar":"baz"}"#);
    let failed = |code, text: &str| {
        let both = metadata(&[("x-a", "1"), ("x-b", "2")]);
        [Seen::Failed(code, text.to_owned(), both)]
    };
    assert_eq!(
        events_however_cut(decoder, &body),
        failed(Code::OutOfRange, "oops")
    );
    assert_eq!(
        events_however_cut(decoder, b"no gzip"),
        failed(
            Code::Unknown,
            "the answer has HTTP status 422 and no Connect error"
        )
    );
}

#[test]
fn error_documents_are_bounded_apart_from_messages() {
    let limited = options(|options| options.receive_bytes_max = 1);
    let call = Call::outgoing(Wire::ConnectUnary, unary(), Format::Json, limited);
    let head = answer(404, &[("content-type", "application/json")]);
    let decoder = || answered(&call, &head).unwrap().1;
    let code = |body: &[u8]| match &events(&mut decoder(), &[body])[..] {
        [Seen::Failed(code, ..)] => *code,
        other => panic!("{other:?}"),
    };
    assert_eq!(code(br#"{"code":"not_found"}"#), Code::NotFound);
    let large = format!(r#"{{"code":"not_found","x":"{}"}}"#, "x".repeat(300_000));
    assert_eq!(code(large.as_bytes()), Code::Unimplemented);
}

#[test]
fn an_answer_without_a_connect_error_goes_by_its_status() {
    for (status, content_type, code) in [
        (400, "text/html", Code::Internal),
        (403, "application/proto", Code::PermissionDenied),
        (503, "", Code::Unavailable),
        (304, "", Code::Unknown),
        (800, "", Code::Unknown),
    ] {
        let head = answer(status, &[("content-type", content_type), ("x-a", "1")]);
        let error = answered(&call(Format::Proto), &head).unwrap_err();
        assert_eq!(error.code(), code);
        assert_eq!(error.received_metadata(), &metadata(&[("x-a", "1")]));
    }
}

#[test]
fn a_wrong_content_type_or_encoding_is_no_answer() {
    for (fields, code) in [
        (&[("content-type", "image/jpeg")][..], Code::Unknown),
        (&[], Code::Unknown),
        (&[("content-type", "application/json")], Code::Internal),
        (
            &[
                ("content-type", "application/proto"),
                ("content-encoding", "foo"),
            ],
            Code::Internal,
        ),
    ] {
        let error = answered(&call(Format::Proto), &answer(200, fields)).unwrap_err();
        assert_eq!(error.code(), code);
    }
    let quiet = options(|options| options.accept = vec![Encoding::Gzip]);
    let call = Call::outgoing(Wire::ConnectUnary, unary(), Format::Proto, quiet);
    let head = answer(
        200,
        &[
            ("content-type", "application/proto"),
            ("content-encoding", "zstd"),
        ],
    );
    assert_eq!(answered(&call, &head).unwrap_err().code(), Code::Internal);
}

proptest! {
    #[test]
    fn what_one_side_writes_the_other_reads(
        body in "[a-z]{0,80}",
        failed in prop::option::of((prop::sample::select(&Code::ALL[..]), ".{0,20}")),
        compress_bytes_min in prop::sample::select(&[0_usize, 20, 1_000][..]),
        json in any::<bool>(),
        cuts in prop::collection::vec(any::<Index>(), 0..6),
    ) {
        let options = options(|options| options.compress_bytes_min = compress_bytes_min);
        let format = if json { Format::Json } else { Format::Proto };
        let client = Call::outgoing(Wire::ConnectUnary, unary(), format, Arc::clone(&options));
        let mut out = Out::new();
        let head = client.unary_request(&message(body.clone()), &mut out).unwrap();
        let server = opened(&head, unary(), options);
        prop_assert_eq!(server.format, format);
        let sent = Sent::of(out);
        let seen = events(&mut server.decoder(Side::Server), &cut(&sent.body, &cuts));
        let message = Seen::Message(body.clone().into_bytes());
        prop_assert_eq!(seen, [message, Seen::End(Metadata::new())]);

        let (leading, trailing) = (metadata(&[("x-a", "1")]), metadata(&[("b-bin", "2")]));
        let error = failed.map(|(code, text)| Error::new(code, text));
        let result = error.as_ref().map_or(Ok(body.as_str()), Err);
        let sent = answer_of(&server, result, &leading, &trailing);
        let (read, mut decoder) = answered(&client, &sent.head.unwrap()).unwrap();
        prop_assert_eq!(&read, &leading);
        let seen = events(&mut decoder, &cut(&sent.body, &cuts));
        match error {
            None => {
                let message = Seen::Message(body.into_bytes());
                prop_assert_eq!(seen, [message, Seen::End(trailing)]);
            }
            Some(error) => {
                let mut both = leading;
                both.extend(&trailing);
                let text = error.message().to_owned();
                prop_assert_eq!(seen, [Seen::Failed(error.code(), text, both)]);
            }
        }
    }
}
