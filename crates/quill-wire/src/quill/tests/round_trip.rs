//! Client to server and back, in every kind.

use super::*;
use crate::Encode;
use quill_core::Code;

/// Sends `requests` from a client to a server and `answers` back.
fn exchange(call: &Call, requests: &[Bytes], answers: &[Bytes]) -> (Vec<Seen>, Vec<Seen>) {
    let kind = call.method.kind();
    let mut sent = Out::new();
    let mut client = call.encoder(Side::Client);
    let head = if kind.client_streams() {
        for request in requests {
            client.message(&raw(request.clone()), &mut sent).unwrap();
        }
        client.end(Ok(()), &Metadata::new(), &mut sent);
        call.request()
    } else {
        call.unary_request(&raw(requests[0].clone()), &mut sent)
            .unwrap()
    };
    let (server_call, opened) =
        open_with(&head, Arc::clone(&call.method), (*call.options).clone()).unwrap();
    opened.unwrap();
    assert_eq!(server_call.metadata, call.metadata);
    assert_eq!(server_call.timeout, call.timeout);
    let (_, body, _) = drain(&mut sent);
    let received = read(&mut server_call.decoder(Side::Server), &[&body], true);

    let mut out = Out::new();
    let mut server = server_call.encoder(Side::Server);
    let leading = metadata(&[("x-leading", "1")]);
    let trailing = metadata(&[("x-trailing", "2")]);
    if server_call.credits().is_some() {
        server.head(&Metadata::new(), &mut out);
    }
    if kind.server_streams() {
        server.head(&leading, &mut out);
        for answer in answers {
            server.message(&raw(answer.clone()), &mut out).unwrap();
        }
        server.end(Ok(()), &trailing, &mut out);
    } else {
        server.unary(Ok(&raw(answers[0].clone())), &leading, &trailing, &mut out);
    }
    let (head, body, ended) = drain(&mut out);
    assert!(ended);
    let mut decoder = call.decoder(Side::Client);
    let mut got = decoder.head(&head.unwrap()).unwrap();
    let answered = read(&mut decoder, &[&body], true);
    if let Some(Seen::End(trailers)) = answered.last() {
        got.extend(trailers);
    }
    assert_eq!(got.get("x-leading"), Some("1"));
    assert_eq!(got.get("x-trailing"), Some("2"));
    assert_eq!(got.len(), 2);
    (received, answered)
}

fn all_but_the_end(seen: &[Seen]) -> Vec<Bytes> {
    assert!(matches!(seen.last(), Some(Seen::End(_))), "{seen:?}");
    let messages = &seen[..seen.len() - 1];
    let message = |seen: &Seen| match seen {
        Seen::Message(bytes) => bytes.clone(),
        other => panic!("{other:?}"),
    };
    messages.iter().map(message).collect()
}

#[test]
fn messages_metadata_and_deadlines_arrive_in_every_kind() {
    let small = Bytes::from_static(b"hello");
    let large = Bytes::from(vec![b'x'; 20_000]);
    for kind in KINDS {
        for credits in [None, Some(3)] {
            for compress in [true, false] {
                let mut call = outgoing(
                    kind,
                    WireOptions {
                        credits,
                        compress,
                        ..options()
                    },
                );
                call.metadata = metadata(&[("x-request", "7")]);
                call.timeout = Some(std::time::Duration::from_millis(250));
                let requests = if kind.client_streams() {
                    vec![small.clone(), Bytes::new(), large.clone()]
                } else {
                    vec![large.clone()]
                };
                let answers = if kind.server_streams() {
                    vec![Bytes::new(), large.clone(), small.clone()]
                } else {
                    vec![large.clone()]
                };
                let (received, answered) = exchange(&call, &requests, &answers);
                assert_eq!(all_but_the_end(&received), requests, "{kind:?} {credits:?}");
                assert_eq!(all_but_the_end(&answered), answers, "{kind:?} {credits:?}");
            }
        }
    }
}

#[test]
fn a_stream_without_messages_is_a_stream() {
    let call = outgoing(MethodKind::BidiStreaming, options());
    let (received, answered) = exchange(&call, &[], &[]);
    assert!(all_but_the_end(&received).is_empty());
    assert!(all_but_the_end(&answered).is_empty());
}

#[test]
fn a_get_arrives_as_a_post_does() {
    for (format, text) in [
        (Format::Json, "{\"message\":\"100% ü\"}".to_owned()),
        (Format::Proto, "\u{0}ü".repeat(2_000)),
        (Format::Proto, String::new()),
    ] {
        let use_get = WireOptions {
            use_get: true,
            ..options()
        };
        let mut call = Call::outgoing(Wire::Quill, pure(), format, Arc::new(use_get));
        call.metadata = metadata(&[("x-request", "7")]);
        call.timeout = Some(std::time::Duration::from_millis(250));
        let mut out = Out::new();
        let head = call.unary_request(&raw(text.clone()), &mut out).unwrap();
        assert_eq!(head.method, quill_core::HttpMethod::Get);
        let (_, body, ended) = drain(&mut out);
        assert!(body.is_empty() && ended);
        let (opened, result) = open_with(&head, pure(), options()).unwrap();
        result.unwrap();
        assert_eq!(opened.wire, Wire::QuillGet);
        assert_eq!((opened.format, opened.timeout), (format, call.timeout));
        assert_eq!(opened.metadata, call.metadata);
        let seen = read(&mut opened.decoder(Side::Server), &[], true);
        assert_eq!(seen, [Seen::message(text.as_bytes()), Seen::end()]);
    }
}

#[test]
fn a_get_that_would_be_too_long_is_a_post() {
    let use_get = WireOptions {
        use_get: true,
        compress: false,
        ..options()
    };
    let call = Call::outgoing(Wire::Quill, pure(), Format::Proto, Arc::new(use_get));
    let head = call
        .unary_request(&raw(vec![1; 8_000]), &mut Out::new())
        .unwrap();
    assert_eq!(head.method, quill_core::HttpMethod::Post);
}

#[test]
fn every_code_survives_before_and_after_the_head() {
    let leading = metadata(&[("x-leading", "1")]);
    let trailing = metadata(&[("x-trailing", "2")]);
    let mut both = leading.clone();
    for code in Code::ALL {
        let error = Error::new(code, "it failed: 100% ü")
            .with_metadata("x-error", "3")
            .unwrap();
        let mut of_stream = leading.clone();
        of_stream.extend(&trailing);
        of_stream.extend(error.metadata());
        both = leading.clone();
        both.extend(error.metadata());
        both.extend(&trailing);
        for kind in KINDS {
            let call = outgoing(kind, options());
            let mut sent = Out::new();
            let head = call.request();
            drain(&mut sent);
            let server = open(&head, kind);

            let mut out = Out::new();
            let mut encoder = server.encoder(Side::Server);
            encoder.unary(Err(&error), &leading, &trailing, &mut out);
            let (head, body, ended) = drain(&mut out);
            assert!(ended);
            assert_eq!(
                read_answer(&call, &head.unwrap(), &body),
                [Seen::Failed(error.to_string(), both.clone())]
            );

            if !kind.server_streams() {
                continue;
            }
            let mut out = Out::new();
            let mut encoder = server.encoder(Side::Server);
            encoder.head(&leading, &mut out);
            encoder.message(&raw("one"), &mut out).unwrap();
            encoder.end(Err(&error), &trailing, &mut out);
            let (head, body, ended) = drain(&mut out);
            assert!(ended);
            assert_eq!(
                read_answer(&call, &head.unwrap(), &body),
                [
                    Seen::message(b"one"),
                    Seen::Failed(error.to_string(), of_stream.clone())
                ]
            );
        }
    }
    assert_eq!(both.len(), 3);
}

#[test]
fn a_bare_answer_may_be_written_in_steps() {
    let call = outgoing(MethodKind::Unary, options());
    let server = open(&call.request(), MethodKind::Unary);
    let mut out = Out::new();
    let mut encoder = server.encoder(Side::Server);
    encoder.head(&metadata(&[("x-a", "1")]), &mut out);
    encoder.message(&raw("hello"), &mut out).unwrap();
    assert!(encoder.message(&raw("again"), &mut out).is_err());
    encoder.end(Ok(()), &metadata(&[("x-b", "2")]), &mut out);
    let (head, body, ended) = drain(&mut out);
    assert!(ended);
    let head = head.unwrap();
    assert_eq!(
        pairs(&head.headers),
        [
            ("content-type", "application/quill+proto"),
            ("x-a", "1"),
            ("trailer-x-b", "2")
        ]
    );
    assert_eq!(
        read_answer(&call, &head, &body),
        [
            Seen::message(b"hello"),
            Seen::End(metadata(&[("x-b", "2")]))
        ]
    );

    let mut out = Out::new();
    let mut encoder = server.encoder(Side::Server);
    encoder.end(Ok(()), &Metadata::new(), &mut out);
    let (head, _, _) = drain(&mut out);
    assert_eq!(head.unwrap().status, 500);
}

#[test]
fn a_message_over_the_send_limit_leaves_no_trace() {
    let small = WireOptions {
        send_bytes_max: 10,
        ..options()
    };
    for kind in KINDS {
        let head = outgoing(kind, options()).request();
        let (server, _) = open_with(&head, method(kind), small.clone()).unwrap();
        let mut out = Out::new();
        let mut encoder = server.encoder(Side::Server);
        encoder.unary(
            Ok(&raw("0123456789x")),
            &Metadata::new(),
            &Metadata::new(),
            &mut out,
        );
        let (head, body, _) = drain(&mut out);
        assert_eq!(head.unwrap().status, 429, "{kind:?}");
        assert!(body.starts_with(b"{"));
    }
}
