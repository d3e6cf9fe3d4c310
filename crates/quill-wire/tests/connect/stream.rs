use super::*;
use proptest::prelude::*;
use quill_wire::Encode;

const PROTO: (&str, &str) = ("content-type", "application/connect+proto");

fn server(fields: &[(&str, &str)], options: Arc<WireOptions>) -> Call {
    let head = post("application/connect+proto", fields);
    opened(&head, method(MethodKind::BidiStreaming), options)
}

fn client() -> Call {
    outgoing(
        Wire::ConnectStream,
        MethodKind::BidiStreaming,
        Format::Proto,
    )
}

fn envelope(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![flags];
    bytes.extend_from_slice(&u32::try_from(payload.len()).unwrap().to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn end(document: &str) -> Vec<u8> {
    envelope(2, document.as_bytes())
}

/// What a client reads of an answer of these envelopes.
fn client_events(fields: &[(&str, &str)], envelopes: &[Vec<u8>]) -> Vec<Seen> {
    let mut all = vec![PROTO];
    all.extend_from_slice(fields);
    let head = answer(200, &all);
    let call = client();
    events_however_cut(|| answered(&call, &head).unwrap().1, &envelopes.concat())
}

fn server_events(fields: &[(&str, &str)], bytes: &[u8]) -> Vec<Seen> {
    let call = server(fields, Arc::default());
    events_however_cut(|| call.decoder(Side::Server), bytes)
}

fn good_end() -> Seen {
    Seen::End(Metadata::new())
}

fn got(bytes: &[u8]) -> Seen {
    Seen::Message(bytes.to_vec())
}

#[test]
fn a_request_stream_is_envelopes_and_the_end_of_the_body() {
    let mut call = client();
    call.metadata = metadata(&[("x-a", "1")]);
    call.timeout = Some(std::time::Duration::from_secs(1));
    assert_eq!(
        fields(&call.request().headers),
        [
            PROTO,
            ("connect-protocol-version", "1"),
            ("connect-content-encoding", "zstd"),
            ("connect-accept-encoding", "zstd,gzip"),
            ("connect-timeout-ms", "1000"),
            ("x-a", "1"),
        ]
    );
    let mut encoder = call.encoder(Side::Client);
    let mut out = Out::new();
    for text in ["ab", ""] {
        encoder.message(&message(text), &mut out).unwrap();
    }
    encoder.end(Ok(()), &Metadata::new(), &mut out);
    let sent = Sent::of(out);
    assert_eq!(sent.text(), "\0\0\0\0\u{2}ab\0\0\0\0\0");
    assert!(sent.head.is_none() && sent.ended);
}

#[test]
fn an_answer_is_a_head_envelopes_and_an_end() {
    let call = server(&[("connect-accept-encoding", "gzip")], Arc::default());
    let mut encoder = call.encoder(Side::Server);
    let mut out = Out::new();
    encoder.head(&metadata(&[("x-a", "1")]), &mut out);
    encoder.message(&message("ab"), &mut out).unwrap();
    encoder.end(Ok(()), &metadata(&[("x-b", "2"), ("k-bin", "A")]), &mut out);
    let sent = Sent::of(out);
    assert_eq!((sent.status(), sent.ended), (200, true));
    assert_eq!(
        sent.headers(),
        [
            PROTO,
            ("connect-content-encoding", "gzip"),
            ("connect-accept-encoding", "zstd,gzip"),
            ("x-a", "1"),
        ]
    );
    let document = r#"{"metadata":{"k-bin":["QQ"],"x-b":["2"]}}"#;
    assert_eq!(sent.body, [envelope(0, b"ab"), end(document)].concat());
}

#[test]
fn a_failure_is_a_200_whenever_it_comes() {
    let call = server(&[], Arc::default());
    let error = Error::aborted("lost").with_metadata("x-e", "5").unwrap();
    let document =
        r#"{"error":{"code":"aborted","message":"lost"},"metadata":{"x-b":["2"],"x-e":["5"]}}"#;
    let trailers = metadata(&[("x-b", "2")]);

    let mut out = Out::new();
    call.encoder(Side::Server)
        .end(Err(&error), &trailers, &mut out);
    let sent = Sent::of(out);
    assert_eq!((sent.status(), sent.ended), (200, true));
    assert_eq!(sent.body, end(document));

    let mut out = Out::new();
    let head = metadata(&[("x-a", "1")]);
    call.encoder(Side::Server)
        .unary(Err(&error), &head, &trailers, &mut out);
    let sent = Sent::of(out);
    assert_eq!((sent.status(), sent.header("x-a")), (200, Some("1")));
    assert_eq!(sent.body, end(document));
}

#[test]
fn a_stream_of_one_answer_leaves_whole_or_fails_whole() {
    let limited = options(|options| options.send_bytes_max = 3);
    let call = server(&[], limited);
    for (text, body) in [
        ("abc", [envelope(0, b"abc"), end("{}")].concat()),
        (
            "abcd",
            end(
                r#"{"error":{"code":"resource_exhausted","message":"a message of 4 bytes is over the send limit of 3 bytes"}}"#,
            ),
        ),
    ] {
        let mut out = Out::new();
        let nothing = Metadata::new();
        call.encoder(Side::Server)
            .unary(Ok(&message(text)), &nothing, &nothing, &mut out);
        let sent = Sent::of(out);
        assert_eq!((sent.status(), sent.body, sent.ended), (200, body, true));
    }
}

#[test]
fn a_client_reads_messages_then_trailers() {
    let head = answer(200, &[PROTO, ("x-a", "1")]);
    let (leading, mut decoder) = answered(&client(), &head).unwrap();
    assert_eq!(leading, metadata(&[("x-a", "1")]));
    let body = [
        envelope(0, b"ab"),
        envelope(0, b""),
        end(r#"{"metadata":{"X-B":["1","2"],"k-bin":["QQ=="]}}"#),
    ];
    let trailing = metadata(&[("x-b", "1"), ("x-b", "2"), ("k-bin", "A")]);
    assert_eq!(
        events(&mut decoder, &[&body.concat()]),
        [got(b"ab"), got(b""), Seen::End(trailing)]
    );
}

#[test]
fn a_client_reads_the_streams_error_with_all_metadata() {
    let document =
        r#"{"error":{"code":"out_of_range","message":"oops","x":1},"metadata":{"x-b":["2"]}}"#;
    let failed = |document: &str| {
        let flagged = [envelope(0, b"ab"), envelope(3, &gzip(document.as_bytes()))];
        let plain = [envelope(0, b"ab"), end(document)];
        let fields = [("x-a", "1"), ("connect-content-encoding", "gzip")];
        let seen = client_events(&fields, &plain);
        assert_eq!(client_events(&fields, &flagged), seen);
        seen
    };
    let both = metadata(&[("x-a", "1"), ("x-b", "2")]);
    assert_eq!(
        failed(document),
        [
            got(b"ab"),
            Seen::Failed(Code::OutOfRange, "oops".to_owned(), both)
        ]
    );
    for unknown in [
        r#"{"error":{"message":"oops"}}"#,
        r#"{"error":{"code":null,"message":"oops"}}"#,
        r#"{"error":{"code":"foobar","message":"oops"}}"#,
    ] {
        let leading = metadata(&[("x-a", "1")]);
        let error = Seen::Failed(Code::Unknown, "oops".to_owned(), leading);
        assert_eq!(failed(unknown), [got(b"ab"), error]);
    }
}

#[test]
fn no_broken_end_is_a_success() {
    let broken = Seen::Broken(Code::Internal);
    for body in [
        // Junk, and the one that an empty payload is.
        vec![end("{")],
        vec![end("")],
        vec![end("null")],
        vec![end("{}{}")],
        // None at all, whole or torn.
        vec![],
        vec![vec![0]],
        vec![vec![0, 0, 0, 0, 10, 1]],
        vec![vec![2, 0, 0, 0, 2, b'{']],
        // Something after it.
        vec![end("{}"), vec![0]],
        vec![end("{}"), envelope(0, b"ab")],
        vec![end("{}"), end("{}")],
        vec![end(r#"{"error":{"code":"aborted"}}"#), vec![0]],
        // Undefined flags.
        vec![envelope(4, b"{}")],
        vec![envelope(0x82, b"{}")],
        // Compressed, and nobody said how.
        vec![envelope(1, b"ab")],
        vec![envelope(3, b"{}")],
    ] {
        assert_eq!(
            client_events(&[], &body),
            [Seen::Broken(Code::Internal)],
            "{body:?}"
        );
    }
    let seen = client_events(&[], &[envelope(0, b"ab")]);
    assert_eq!(seen, [got(b"ab"), broken]);
    assert_eq!(
        client_events(&[], &[end(r#"{"error":null}"#)]),
        [good_end()]
    );
    assert_eq!(
        client_events(&[], &[end(r#"{"code":"aborted"}"#)]),
        [good_end()]
    );
}

#[test]
fn an_end_counts_once_the_body_has_ended() {
    let head = answer(200, &[PROTO]);
    let (_, mut decoder) = answered(&client(), &head).unwrap();
    decoder.feed(Bytes::from(end("{}")));
    assert!(decoder.next().unwrap().is_none());
    decoder.finish(None);
    assert!(matches!(decoder.next(), Ok(Some(Event::End(Ok(_))))));
}

#[test]
fn a_status_or_type_that_is_no_stream_is_an_error() {
    for (status, fields, code) in [
        (
            404,
            &[("content-type", "application/json")][..],
            Code::Unimplemented,
        ),
        (503, &[PROTO], Code::Unavailable),
        (415, &[], Code::Unknown),
        (200, &[("content-type", "application/proto")], Code::Unknown),
        (
            200,
            &[("content-type", "application/connect+json")],
            Code::Internal,
        ),
        (
            200,
            &[PROTO, ("connect-content-encoding", "foo")],
            Code::Internal,
        ),
    ] {
        let error = answered(&client(), &answer(status, fields)).unwrap_err();
        assert_eq!(error.code(), code, "{status} {fields:?}");
    }
}

#[test]
fn a_server_reads_messages_until_the_body_ends() {
    let body = [envelope(0, b"ab"), envelope(0, b"")].concat();
    assert_eq!(
        server_events(&[], &body),
        [got(b"ab"), got(b""), good_end()]
    );
    assert_eq!(server_events(&[], b""), [good_end()]);
    let gzipped = [
        envelope(1, &gzip(b"ab")),
        envelope(0, b"cd"),
        envelope(1, b""),
    ]
    .concat();
    assert_eq!(
        server_events(&[("connect-content-encoding", "gzip")], &gzipped),
        [got(b"ab"), got(b"cd"), got(b""), good_end()]
    );
}

#[test]
fn what_a_request_stream_gets_wrong_is_the_callers_fault() {
    let wrong = [Seen::Broken(Code::InvalidArgument)];
    for body in [
        vec![0],
        vec![0, 0, 0, 0, 10, 1, 2, 3],
        end("{}"),
        envelope(4, b""),
    ] {
        assert_eq!(server_events(&[], &body), wrong, "{body:?}");
    }
    let gzipped = [("connect-content-encoding", "gzip")];
    assert_eq!(server_events(&gzipped, &envelope(1, b"junk")), wrong);
    let identity = [("connect-content-encoding", "identity")];
    assert_eq!(
        server_events(&identity, &envelope(1, b"ab")),
        [Seen::Broken(Code::Internal)]
    );
    for (fields, code) in [
        (("connect-content-encoding", "foo"), Code::Unimplemented),
        (("connect-protocol-version", "2"), Code::InvalidArgument),
        (("connect-timeout-ms", "-1"), Code::InvalidArgument),
    ] {
        let head = post("application/connect+json", &[fields]);
        assert_eq!(open_code(&head, method(MethodKind::ServerStreaming)), code);
    }
}

#[test]
fn a_lying_length_and_a_message_over_the_limit_are_refused_from_the_header() {
    let limited = options(|options| options.receive_bytes_max = 10);
    let call = server(&[("connect-content-encoding", "gzip")], limited);
    let decoder = || call.decoder(Side::Server);
    let refused = [Seen::Broken(Code::ResourceExhausted)];
    for body in [
        vec![0, 0xff, 0xff, 0xff, 0xff],
        vec![2, 0xff, 0xff, 0xff, 0xff],
        // Only answers have an end, so none has a limit of its own here.
        vec![2, 0, 0, 0, 11],
        envelope(0, &[7; 11]),
    ] {
        assert_eq!(events_however_cut(decoder, &body), refused);
    }
    let at_limit = envelope(0, &[7; 10]);
    assert_eq!(
        events_however_cut(decoder, &at_limit),
        [got(&[7; 10]), good_end()]
    );
    let limited = options(|options| options.receive_bytes_max = 100);
    let call = server(&[("connect-content-encoding", "gzip")], limited);
    let bomb = envelope(1, &gzip(&[0; 10_000]));
    assert_eq!(
        events_however_cut(|| call.decoder(Side::Server), &bomb),
        refused
    );
}

#[test]
fn an_end_is_bounded_apart_from_messages() {
    let limited = options(|options| options.receive_bytes_max = 10);
    let call = Call::outgoing(
        Wire::ConnectStream,
        method(MethodKind::ServerStreaming),
        Format::Proto,
        limited,
    );
    let head = answer(200, &[PROTO]);
    let seen = |body: &[u8]| events(&mut answered(&call, &head).unwrap().1, &[body]);
    let document = format!(r#"{{"metadata":{{"x-a":["{}"]}}}}"#, "y".repeat(1_000));
    assert!(matches!(&seen(&end(&document))[..], [Seen::End(m)] if m.len() == 1));
    let header = [2, 0, 0x04, 0, 1];
    assert_eq!(seen(&header), [Seen::Broken(Code::ResourceExhausted)]);
}

proptest! {
    #[test]
    fn what_one_side_writes_the_other_reads(
        messages in prop::collection::vec("[a-c]{0,60}", 0..5),
        failed in prop::option::of((prop::sample::select(&Code::ALL[..]), ".{0,20}")),
        compress_bytes_min in prop::sample::select(&[0_usize, 20, 1_000][..]),
        cuts in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        let options = options(|options| options.compress_bytes_min = compress_bytes_min);
        let method = method(MethodKind::BidiStreaming);
        let client = Call::outgoing(
            Wire::ConnectStream, Arc::clone(&method), Format::Json, Arc::clone(&options),
        );
        let server = opened(&client.request(), method, options);
        let expected = |last: Seen| {
            let mut seen: Vec<Seen> = messages.iter().map(|m| got(m.as_bytes())).collect();
            seen.push(last);
            seen
        };
        let written = |call: &Call, side, result: Result<(), &Error>, trailers: &Metadata| {
            let mut encoder = call.encoder(side);
            let mut out = Out::new();
            for text in &messages {
                encoder.message(&message(text.clone()), &mut out).unwrap();
            }
            encoder.end(result, trailers, &mut out);
            Sent::of(out)
        };
        let sent = written(&client, Side::Client, Ok(()), &Metadata::new());
        let seen = events(&mut server.decoder(Side::Server), &cut(&sent.body, &cuts));
        prop_assert_eq!(seen, expected(good_end()));

        let trailers = metadata(&[("x-b", "1"), ("k-bin", "2"), ("x-b", "3")]);
        let error = failed.map(|(code, text)| Error::new(code, text));
        let result = error.as_ref().map_or(Ok(()), Err);
        let sent = written(&server, Side::Server, result, &trailers);
        let (_, mut decoder) = answered(&client, sent.head.as_ref().unwrap()).unwrap();
        let seen = events(&mut decoder, &cut(&sent.body, &cuts));
        // Values of one name stand together on this wire.
        let trailers = metadata(&[("k-bin", "2"), ("x-b", "1"), ("x-b", "3")]);
        prop_assert_eq!(seen, expected(match &error {
            None => Seen::End(trailers),
            Some(error) => Seen::Failed(error.code(), error.message().to_owned(), trailers),
        }));
    }

    #[test]
    fn junk_never_panics_and_is_read_alike_however_it_is_cut(
        bytes in prop::collection::vec(prop::sample::select(&[0_u8, 1, 2, 3, b'{', b'}'][..]), 0..40),
        cuts in prop::collection::vec(any::<Index>(), 0..8),
    ) {
        let head = answer(200, &[PROTO, ("connect-content-encoding", "gzip")]);
        let client = client();
        let server = server(&[("connect-content-encoding", "gzip")], Arc::default());
        for decoder in [
            &|| answered(&client, &head).unwrap().1 as Decoder,
            &|| server.decoder(Side::Server),
        ] as [&dyn Fn() -> Decoder; 2] {
            let whole = events(&mut decoder(), &[&bytes]);
            prop_assert_eq!(events(&mut decoder(), &cut(&bytes, &cuts)), whole);
        }
    }
}
