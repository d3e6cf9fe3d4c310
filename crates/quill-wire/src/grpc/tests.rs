//! Both sides of gRPC and gRPC-Web against each other and against exact bytes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use quill_core::compression::{self, Encoding};
use quill_core::{
    Code, Detail, Encodable, Error, Format, Headers, HttpMethod, HttpVersion, Metadata, Method,
    MethodKind, Outgoing, RawCodec, RequestHead, ResponseHead,
};

use crate::{Call, Decode, Decoder, Encode, Event, Out, Refusal, Side, Wire, WireOptions};

const WEB: Wire = Wire::GrpcWeb { text: false };
const TEXT: Wire = Wire::GrpcWeb { text: true };
const WIRES: [Wire; 3] = [Wire::Grpc, WEB, TEXT];

fn method() -> Arc<Method> {
    Arc::new(Method::new("/a.B/C", MethodKind::BidiStreaming))
}

fn options() -> WireOptions {
    WireOptions {
        compress: false,
        ..WireOptions::default()
    }
}

fn compressing(encoding: Encoding) -> WireOptions {
    WireOptions {
        accept: vec![encoding],
        compress_bytes_min: 4,
        ..WireOptions::default()
    }
}

fn call(wire: Wire, options: WireOptions) -> Call {
    Call::outgoing(wire, method(), Format::Proto, Arc::new(options))
}

fn message(bytes: &[u8]) -> Encodable<Bytes, RawCodec> {
    Encodable {
        message: Bytes::copy_from_slice(bytes),
        codec: RawCodec,
    }
}

fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    let mut metadata = Metadata::new();
    for (name, value) in pairs {
        if name.ends_with("-bin") {
            metadata.append_bin(name, value).unwrap();
        } else {
            metadata.append(name, value).unwrap();
        }
    }
    metadata
}

fn headers(pairs: &[(&str, &str)]) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in pairs {
        headers.append(name, value);
    }
    headers
}

fn pairs(headers: &Headers) -> Vec<(&str, &str)> {
    let text = |v| std::str::from_utf8(v).unwrap();
    headers.iter().map(|(n, v)| (n, text(v))).collect()
}

/// What an encoder wrote, whole.
#[derive(Debug)]
struct Written {
    head: Option<ResponseHead>,
    body: Vec<u8>,
    trailers: Option<Headers>,
    ended: bool,
}

impl Written {
    fn of(mut out: Out) -> Self {
        let mut body = Vec::new();
        while let Some(chunk) = out.take_chunk() {
            body.extend_from_slice(&chunk);
        }
        Self {
            head: out.take_head(),
            body,
            trailers: out.take_trailers(),
            ended: out.is_ended(),
        }
    }

    fn head(&self) -> &ResponseHead {
        self.head.as_ref().unwrap()
    }
}

/// Feeds a body in pieces, takes events as they come, and writes them down.
fn read(decoder: &mut Decoder, pieces: &[&[u8]], trailers: Option<&Headers>) -> Vec<String> {
    let mut events = Vec::new();
    let mut take = |decoder: &mut Decoder| {
        loop {
            match decoder.next() {
                Ok(None) => break,
                Ok(Some(event)) => events.push(format!("{event:?}")),
                Err(error) => events.push(format!("broken {error:?}")),
            }
        }
    };
    for piece in pieces {
        decoder.feed(Bytes::copy_from_slice(piece));
        take(decoder);
    }
    decoder.finish(trailers.cloned());
    take(decoder);
    take(decoder);
    assert!(decoder.next().unwrap().is_none());
    events
}

fn read_answer(call: &Call, written: &Written, pieces: &[&[u8]]) -> Vec<String> {
    let mut decoder = call.decoder(Side::Client);
    let leading = decoder.head(written.head());
    let mut events = vec![format!("{leading:?}")];
    events.extend(read(&mut decoder, pieces, written.trailers.as_ref()));
    events
}

/// The outcome of an answer at a client: the messages, and how it ended.
fn outcome(
    wire: Wire,
    head: &ResponseHead,
    body: &[u8],
    trailers: Option<&Headers>,
) -> (Vec<Bytes>, Result<Metadata, Error>) {
    outcome_of(&call(wire, options()), head, body, trailers)
}

fn outcome_of(
    call: &Call,
    head: &ResponseHead,
    body: &[u8],
    trailers: Option<&Headers>,
) -> (Vec<Bytes>, Result<Metadata, Error>) {
    let mut decoder = call.decoder(Side::Client);
    if let Err(error) = decoder.head(head) {
        return (Vec::new(), Err(error));
    }
    decoder.feed(Bytes::copy_from_slice(body));
    decoder.finish(trailers.cloned());
    let mut messages = Vec::new();
    loop {
        match decoder.next() {
            Ok(Some(Event::Message(message))) => messages.push(message),
            Ok(Some(Event::End(end))) => return (messages, end),
            Ok(other) => panic!("{other:?}"),
            Err(error) => return (messages, Err(error)),
        }
    }
}

fn code(outcome: (Vec<Bytes>, Result<Metadata, Error>)) -> Code {
    outcome.1.unwrap_err().code()
}

fn answer_head(pairs: &[(&str, &str)]) -> ResponseHead {
    let mut head = ResponseHead::new(200);
    head.headers = headers(pairs);
    head
}

fn grpc_head() -> ResponseHead {
    answer_head(&[("content-type", "application/grpc")])
}

fn web_head() -> ResponseHead {
    answer_head(&[("content-type", "application/grpc-web")])
}

fn envelope(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![flags];
    bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes::BytesMut::new();
    compression::compress(Encoding::Gzip, 3, bytes, &mut out).unwrap();
    out.to_vec()
}

fn post(pairs: &[(&str, &str)]) -> RequestHead {
    let mut head = RequestHead::post("/a.B/C");
    head.headers = headers(pairs);
    head
}

fn open(head: &RequestHead) -> Result<(Call, Result<(), Error>), Refusal> {
    open_with(head, options())
}

fn open_with(
    head: &RequestHead,
    options: WireOptions,
) -> Result<(Call, Result<(), Error>), Refusal> {
    Wire::recognise(head).open(head, method(), Arc::new(options))
}

// ---- both sides together -------------------------------------------------

fn any_metadata() -> impl Strategy<Value = Metadata> {
    prop::collection::vec(("x-[a-z]{1,3}", "[!-~]{0,6}", any::<Vec<u8>>()), 0..3).prop_map(
        |values| {
            let mut metadata = Metadata::new();
            for (name, text, bytes) in values {
                metadata.append(&name, &text).unwrap();
                metadata.append_bin(&format!("{name}-bin"), bytes).unwrap();
            }
            metadata
        },
    )
}

fn any_result() -> impl Strategy<Value = Result<(), Error>> {
    let details = prop::collection::vec(("[a-z.]{1,9}", any::<Vec<u8>>()), 0..3);
    let text = prop_oneof![any::<String>(), "[ %a\n]{0,6}"];
    let error = (1..=16_u32, text, details).prop_map(|(number, text, details)| {
        let error = Error::new(Code::from_number(number).unwrap(), text);
        details
            .into_iter()
            .fold(error, |error, (type_name, value)| {
                error.with_detail(&Detail {
                    type_name,
                    value: value.into(),
                })
            })
    });
    prop_oneof![Just(()).prop_map(Ok), error.prop_map(Err)]
}

fn any_encoding() -> impl Strategy<Value = Encoding> {
    prop_oneof![
        Just(Encoding::Identity),
        Just(Encoding::Gzip),
        Just(Encoding::Zstd)
    ]
}

fn pieces<'a>(body: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
    places.sort_unstable();
    let mut from = 0;
    let mut pieces = Vec::new();
    for place in places {
        pieces.push(&body[from..place]);
        from = place;
    }
    pieces.push(&body[from..]);
    pieces
}

proptest! {
    #[test]
    fn an_answer_arrives_as_it_was_written_however_it_is_cut(
        wire in prop::sample::select(&WIRES[..]),
        encoding in any_encoding(),
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4),
        leading in any_metadata(),
        trailing in any_metadata(),
        result in any_result(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let call = call(wire, compressing(encoding));
        let mut out = Out::new();
        let mut encoder = call.encoder(Side::Server);
        encoder.head(&leading, &mut out);
        for bytes in &messages {
            encoder.message(&message(bytes), &mut out).unwrap();
        }
        encoder.end(result.as_ref().copied(), &trailing, &mut out);
        let written = Written::of(out);
        prop_assert!(written.ended);
        prop_assert_eq!(written.trailers.is_some(), wire == Wire::Grpc);

        let mut expected = vec![format!("{:?}", Ok::<_, Error>(&leading))];
        for bytes in &messages {
            expected.push(format!("{:?}", Event::Message(Bytes::copy_from_slice(bytes))));
        }
        let end = match result {
            Ok(()) => Ok(trailing),
            // Whoever sees only the error misses none of the metadata.
            Err(mut error) => {
                let mut all = leading;
                all.extend(error.metadata());
                all.extend(&trailing);
                *error.metadata_mut() = Metadata::new();
                *error.received_metadata_mut() = all;
                Err(error)
            }
        };
        expected.push(format!("{:?}", Event::End(end)));
        prop_assert_eq!(&read_answer(&call, &written, &[&written.body]), &expected);
        prop_assert_eq!(&read_answer(&call, &written, &pieces(&written.body, &cuts)), &expected);
    }

    #[test]
    fn a_unary_answer_or_failure_arrives_as_it_was_written(
        wire in prop::sample::select(&WIRES[..]),
        encoding in any_encoding(),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
        leading in any_metadata(),
        trailing in any_metadata(),
        result in any_result(),
    ) {
        let call = call(wire, compressing(encoding));
        let mut out = Out::new();
        let answer = message(&bytes);
        call.encoder(Side::Server).unary(
            result.as_ref().map(|()| &answer as &dyn Outgoing),
            &leading,
            &trailing,
            &mut out,
        );
        let written = Written::of(out);
        let (messages, end) = outcome_of(&call, written.head(), &written.body, written.trailers.as_ref());
        match (result, end) {
            (Ok(()), Ok(metadata)) => {
                prop_assert_eq!(messages, vec![Bytes::from(bytes)]);
                prop_assert_eq!(metadata, trailing);
            }
            (Err(sent), Err(error)) => {
                prop_assert!(messages.is_empty());
                prop_assert_eq!(error.code(), sent.code());
                prop_assert_eq!(error.message(), sent.message());
                prop_assert_eq!(error.details(), sent.details());
                let mut all = leading;
                all.extend(&trailing);
                prop_assert_eq!(error.received_metadata(), &all);
                prop_assert!(error.metadata().is_empty());
            }
            (sent, got) => prop_assert!(false, "{sent:?} {got:?}"),
        }
    }

    #[test]
    fn a_request_arrives_as_it_was_written_however_it_is_cut(
        wire in prop::sample::select(&WIRES[..]),
        encoding in any_encoding(),
        json in any::<bool>(),
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..4),
        leading in any_metadata(),
        timeout in prop::option::of(0..99_999_999_u64),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let mut call = call(wire, compressing(encoding));
        call.format = if json { Format::Json } else { Format::Proto };
        call.metadata = leading.clone();
        call.timeout = timeout.map(Duration::from_micros);
        let mut out = Out::new();
        let mut encoder = call.encoder(Side::Client);
        for bytes in &messages {
            encoder.message(&message(bytes), &mut out).unwrap();
        }
        encoder.end(Ok(()), &Metadata::new(), &mut out);
        let written = Written::of(out);
        prop_assert!(written.ended && written.head.is_none() && written.trailers.is_none());

        let head = call.request();
        let (opened, may_go_on) = open_with(&head, compressing(encoding)).unwrap();
        may_go_on.unwrap();
        prop_assert_eq!(opened.wire, wire);
        prop_assert_eq!(opened.format, call.format);
        prop_assert_eq!(opened.timeout, call.timeout);
        prop_assert_eq!(opened.receive, encoding);
        prop_assert_eq!(opened.send, encoding);
        let mut expected = leading;
        let mut received = opened.metadata.clone();
        prop_assert!(received.remove("user-agent"));
        prop_assert_eq!(&received, &expected);
        expected = Metadata::new();

        let mut events: Vec<String> = messages
            .iter()
            .map(|bytes| format!("{:?}", Event::Message(Bytes::copy_from_slice(bytes))))
            .collect();
        events.push(format!("{:?}", Event::End(Ok(expected))));
        for pieces in [vec![&written.body[..]], pieces(&written.body, &cuts)] {
            let read = read(&mut opened.decoder(Side::Server), &pieces, None);
            prop_assert_eq!(&read, &events);
        }
    }

    #[test]
    fn any_body_gives_the_same_events_at_every_cut(
        wire in prop::sample::select(&WIRES[..]),
        server in any::<bool>(),
        parts in prop::collection::vec(
            prop_oneof![
                Just(envelope(0, b"abc")),
                Just(envelope(0, b"")),
                Just(envelope(1, b"abc")),
                Just(envelope(1, b"")),
                Just(envelope(2, b"a")),
                Just(envelope(0x80, b"grpc-status: 0\r\n")),
                Just(envelope(0x80, b"")),
                prop::collection::vec(any::<u8>(), 0..8),
            ],
            0..4,
        ),
    ) {
        let body = if wire == TEXT {
            let text: Vec<String> = parts.iter().map(|part| crate::base64::encode_padded(part)).collect();
            text.concat().into_bytes()
        } else {
            parts.concat()
        };
        let mut options = options();
        options.receive_bytes_max = 100;
        let call = call(wire, options);
        let head = match wire {
            Wire::Grpc => grpc_head(),
            TEXT => answer_head(&[("content-type", "application/grpc-web-text")]),
            _ => web_head(),
        };
        let trailers = headers(&[("grpc-status", "0")]);
        let events = |pieces: &[&[u8]]| {
            if server {
                return read(&mut call.decoder(Side::Server), pieces, None);
            }
            let mut decoder = call.decoder(Side::Client);
            decoder.head(&head).unwrap();
            read(&mut decoder, pieces, Some(&trailers))
        };
        let whole = events(&[&body]);
        for cut in 0..=body.len() {
            prop_assert_eq!(&events(&[&body[..cut], &body[cut..]]), &whole);
        }
        let single: Vec<&[u8]> = body.chunks(1).collect();
        prop_assert_eq!(&events(&single), &whole);
    }
}

// ---- exact bytes -----------------------------------------------------------

#[test]
fn a_unary_answer_is_head_message_and_trailers() {
    let mut out = Out::new();
    let answer = message(b"hi");
    call(Wire::Grpc, options()).encoder(Side::Server).unary(
        Ok(&answer),
        &metadata(&[("x-a", "1"), ("x-bin", "\u{1}\u{2}\u{3}\u{4}")]),
        &metadata(&[("x-b", "2")]),
        &mut out,
    );
    let written = Written::of(out);
    assert_eq!(written.head().status, 200);
    assert_eq!(
        pairs(&written.head().headers),
        [
            ("content-type", "application/grpc"),
            ("x-a", "1"),
            ("x-bin", "AQIDBA")
        ]
    );
    assert_eq!(written.body, b"\0\0\0\0\x02hi");
    let trailers = written.trailers.as_ref().unwrap();
    assert_eq!(pairs(trailers), [("grpc-status", "0"), ("x-b", "2")]);
}

#[test]
fn in_grpc_web_the_trailers_are_in_the_body() {
    let answer = message(b"hi");
    let trailers = b"\x80\0\0\0\x18grpc-status: 0\r\nx-b: 2\r\n";
    let binary = [&b"\0\0\0\0\x02hi"[..], trailers].concat();
    let text = format!(
        "{}{}",
        crate::base64::encode_padded(b"\0\0\0\0\x02hi"),
        crate::base64::encode_padded(trailers)
    );
    for (wire, content_type, body) in [
        (WEB, "application/grpc-web+proto", binary),
        (TEXT, "application/grpc-web-text+proto", text.into_bytes()),
    ] {
        let mut out = Out::new();
        call(wire, options()).encoder(Side::Server).unary(
            Ok(&answer),
            &Metadata::new(),
            &metadata(&[("x-b", "2")]),
            &mut out,
        );
        let written = Written::of(out);
        assert_eq!(
            pairs(&written.head().headers),
            [("content-type", content_type)]
        );
        assert_eq!(written.body, body);
        assert!(written.ended && written.trailers.is_none());
    }
}

#[test]
fn a_failure_before_any_head_is_trailers_only() {
    let error = Error::not_found("100%").with_metadata("x-e", "3").unwrap();
    let mut out = Out::new();
    let mut encoder = call(Wire::Grpc, options()).encoder(Side::Server);
    encoder.end(Err(&error), &metadata(&[("x-t", "4")]), &mut out);
    let written = Written::of(out);
    assert_eq!(written.head().status, 200);
    assert_eq!(
        pairs(&written.head().headers),
        [
            ("content-type", "application/grpc"),
            ("grpc-status", "5"),
            ("grpc-message", "100%25"),
            ("x-e", "3"),
            ("x-t", "4")
        ]
    );
    assert!(written.ended && written.body.is_empty() && written.trailers.is_none());

    let mut out = Out::new();
    let mut encoder = call(WEB, options()).encoder(Side::Server);
    encoder.end(Err(&error), &Metadata::new(), &mut out);
    let written = Written::of(out);
    assert_eq!(
        pairs(&written.head().headers),
        [("content-type", "application/grpc-web+proto")]
    );
    let block = b"grpc-status: 5\r\ngrpc-message: 100%25\r\nx-e: 3\r\n";
    assert_eq!(written.body, envelope(0x80, block));
}

#[test]
fn a_success_without_messages_has_a_head_and_trailers() {
    let mut out = Out::new();
    let mut encoder = call(Wire::Grpc, options()).encoder(Side::Server);
    encoder.end(Ok(()), &Metadata::new(), &mut out);
    let written = Written::of(out);
    assert_eq!(
        pairs(&written.head().headers),
        [("content-type", "application/grpc")]
    );
    assert_eq!(pairs(&written.trailers.unwrap()), [("grpc-status", "0")]);
}

#[test]
fn the_head_of_a_request_is_the_call_before_its_metadata() {
    let mut grpc = call(Wire::Grpc, compressing(Encoding::Gzip));
    grpc.timeout = Some(Duration::from_secs(1));
    grpc.metadata = metadata(&[("authorization", "Bearer 7")]);
    let head = grpc.request();
    assert_eq!(
        (&head.method, head.target.as_str()),
        (&HttpMethod::Post, "/a.B/C")
    );
    let user_agent = concat!("grpc-rust-quill/", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        pairs(&head.headers),
        [
            ("grpc-timeout", "1000000u"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
            ("grpc-encoding", "gzip"),
            ("grpc-accept-encoding", "gzip"),
            ("user-agent", user_agent),
            ("authorization", "Bearer 7"),
        ]
    );
    let mut web = call(WEB, options());
    web.format = Format::Json;
    web.version = HttpVersion::Http1;
    web.metadata = metadata(&[("user-agent", "mine/1")]);
    let head = web.request();
    assert_eq!(head.version, HttpVersion::Http1);
    assert_eq!(
        pairs(&head.headers),
        [
            ("content-type", "application/grpc-web+json"),
            ("grpc-accept-encoding", "zstd,gzip"),
            ("user-agent", "mine/1"),
        ]
    );
}

#[test]
fn a_client_that_gives_up_writes_nothing() {
    let mut out = Out::new();
    let mut encoder = call(Wire::Grpc, options()).encoder(Side::Client);
    encoder.end(Err(&Error::canceled("")), &Metadata::new(), &mut out);
    let written = Written::of(out);
    assert!(!written.ended && written.head.is_none() && written.body.is_empty());
}

#[test]
fn small_messages_are_not_compressed_and_a_unary_head_says_so() {
    for (bytes, flag, encoding) in [(&b"abc"[..], 0, None), (b"abcdefgh", 1, Some("gzip"))] {
        let mut out = Out::new();
        let answer = message(bytes);
        let nothing = Metadata::new();
        let mut encoder = call(Wire::Grpc, compressing(Encoding::Gzip)).encoder(Side::Server);
        encoder.unary(Ok(&answer), &nothing, &nothing, &mut out);
        let written = Written::of(out);
        assert_eq!(written.body[0], flag);
        assert_eq!(written.head().headers.text("grpc-encoding"), encoding);
    }
}

#[test]
fn a_message_over_the_send_limit_fails_the_call_and_leaves_no_body() {
    for wire in WIRES {
        let mut small = options();
        small.send_bytes_max = 3;
        let call = call(wire, small);
        for (bytes, result) in [
            (&b"abc"[..], None),
            (b"abcd", Some(Code::ResourceExhausted)),
        ] {
            let mut out = Out::new();
            let (answer, nothing) = (message(bytes), Metadata::new());
            call.encoder(Side::Server)
                .unary(Ok(&answer), &nothing, &nothing, &mut out);
            let written = Written::of(out);
            let (messages, end) = outcome_of(
                &call,
                written.head(),
                &written.body,
                written.trailers.as_ref(),
            );
            assert_eq!(messages.len(), usize::from(result.is_none()));
            assert_eq!(end.err().map(|error| error.code()), result);
        }
    }
}

// ---- a server and the heads of requests ---------------------------------------

#[test]
fn heads_that_are_no_call_are_refused() {
    let mut get = post(&[("content-type", "application/grpc")]);
    get.method = HttpMethod::Other("DELETE".into());
    assert_eq!(open(&get).unwrap_err(), Refusal::HttpMethod("POST"));
    let mut http1 = post(&[("content-type", "application/grpc")]);
    http1.version = HttpVersion::Http1;
    assert_eq!(open(&http1).unwrap_err(), Refusal::HttpVersion);
    for content_type in [
        "application/grpc+foo",
        "application/grpc-web+foo",
        "application/grpc+",
    ] {
        let head = post(&[("content-type", content_type)]);
        assert_eq!(
            open(&head).unwrap_err(),
            Refusal::MediaType,
            "{content_type}"
        );
    }
    // What another protocol's head says is not taken at its word.
    let json = post(&[("content-type", "application/json")]);
    let opened = Wire::Grpc.open(&json, method(), Arc::new(options()));
    assert_eq!(opened.unwrap_err(), Refusal::MediaType);
    let grpc = post(&[("content-type", "application/grpc")]);
    let opened = WEB.open(&grpc, method(), Arc::new(options()));
    assert_eq!(opened.unwrap_err(), Refusal::MediaType);
}

#[test]
fn every_form_of_the_content_type_opens_a_call() {
    for (content_type, wire, format) in [
        ("application/grpc", Wire::Grpc, Format::Proto),
        ("application/grpc;charset=utf-8", Wire::Grpc, Format::Proto),
        ("APPLICATION/GRPC+PROTO", Wire::Grpc, Format::Proto),
        ("application/grpc+json", Wire::Grpc, Format::Json),
        ("application/grpc-web", WEB, Format::Proto),
        ("application/grpc-web+json", WEB, Format::Json),
        ("application/grpc-web-text", TEXT, Format::Proto),
        ("application/grpc-web-text+proto", TEXT, Format::Proto),
    ] {
        let mut head = post(&[("content-type", content_type)]);
        if wire != Wire::Grpc {
            head.version = HttpVersion::Http1;
        }
        let (call, may_go_on) = open(&head).unwrap();
        may_go_on.unwrap();
        assert_eq!((call.wire, call.format), (wire, format), "{content_type}");
    }
}

#[test]
fn an_unknown_encoding_is_unimplemented_and_ours_are_named() {
    for wire in WIRES {
        let content_type = super::content_type::of(wire, Format::Proto);
        let head = post(&[
            ("content-type", content_type),
            ("grpc-encoding", "x-foo"),
            ("x-a", "1"),
        ]);
        let (call, refused) = open(&head).unwrap();
        let error = refused.unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented);
        assert!(error.message().contains("x-foo") && error.message().contains("zstd,gzip"));
        assert_eq!(call.metadata.get("x-a"), Some("1"));
        let mut out = Out::new();
        call.encoder(Side::Server)
            .end(Err(&error), &Metadata::new(), &mut out);
        let written = Written::of(out);
        assert_eq!(
            written.head().headers.text("grpc-accept-encoding"),
            Some("zstd,gzip")
        );
        assert_eq!(
            code(outcome(wire, written.head(), &written.body, None)),
            Code::Unimplemented
        );
    }
}

#[test]
fn what_is_wrong_in_a_head_is_an_error_of_the_call() {
    for (name, value, part) in [
        ("grpc-timeout", "1", "grpc-timeout"),
        ("grpc-timeout", "", "grpc-timeout"),
        ("grpc-timeout", "+5S", "grpc-timeout"),
        ("grpc-timeout", "123456789S", "grpc-timeout"),
        ("x-bin", "!", "x-bin"),
    ] {
        let head = post(&[("content-type", "application/grpc"), (name, value)]);
        let (_, refused) = open(&head).unwrap();
        let error = refused.unwrap_err();
        assert_eq!(error.code(), Code::Internal, "{value}");
        assert!(error.message().contains(part));
    }
}

#[test]
fn a_timeout_is_read() {
    for (asked, seconds) in [(Some("3S"), Some(3)), (None, None)] {
        let mut head = post(&[("content-type", "application/grpc")]);
        if let Some(asked) = asked {
            head.headers.append("grpc-timeout", asked);
        }
        let (call, _) = open(&head).unwrap();
        assert_eq!(call.timeout, seconds.map(Duration::from_secs));
    }
}

#[test]
fn answers_are_compressed_only_as_the_client_accepts() {
    for (accept, compress, send) in [
        (Some("identity,deflate,gzip"), true, Encoding::Gzip),
        (Some("gzip"), false, Encoding::Identity),
        (Some("br"), true, Encoding::Identity),
        (None, true, Encoding::Identity),
    ] {
        let mut head = post(&[("content-type", "application/grpc")]);
        if let Some(accept) = accept {
            head.headers.append("grpc-accept-encoding", accept);
        }
        let options = WireOptions {
            compress,
            ..WireOptions::default()
        };
        let (call, _) = open_with(&head, options).unwrap();
        assert_eq!(call.send, send, "{accept:?}");
    }
}

#[test]
fn refusals_are_answered_in_the_protocol() {
    for wire in WIRES {
        let mut out = Out::new();
        wire.refuse(Refusal::UnknownPath, &mut out);
        let written = Written::of(out);
        assert!(written.ended && written.body.is_empty());
        let (_, end) = outcome(wire, written.head(), b"", None);
        let error = end.unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented);
        assert!(error.message().contains("/package.Service/Method"));
        for (refusal, status, header) in [
            (Refusal::PathNotCanonical, 400, None),
            (Refusal::HttpMethod("POST"), 405, Some("allow")),
            (Refusal::MediaType, 415, Some("accept-post")),
            (Refusal::HttpVersion, 505, None),
        ] {
            let mut out = Out::new();
            wire.refuse(refusal, &mut out);
            let written = Written::of(out);
            assert_eq!(written.head().status, status);
            if let Some(header) = header {
                assert!(written.head().headers.first(header).is_some());
            }
            assert!(written.ended && written.body.is_empty());
        }
    }
}

// ---- a client and broken answers ------------------------------------------------

#[test]
fn a_status_in_the_head_counts_only_without_body_and_trailers() {
    let head = answer_head(&[
        ("content-type", "application/grpc"),
        ("grpc-status", "9"),
        ("grpc-message", "error"),
        ("x-a", "1"),
    ]);
    let (_, end) = outcome(Wire::Grpc, &head, b"", None);
    let error = end.unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (Code::FailedPrecondition, "error")
    );
    assert_eq!(error.received_metadata().get("x-a"), Some("1"));

    let trailers = headers(&[("grpc-status", "8"), ("x-b", "2")]);
    let (_, end) = outcome(Wire::Grpc, &head, b"", Some(&trailers));
    let error = end.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert_eq!(
        error.received_metadata(),
        &metadata(&[("x-a", "1"), ("x-b", "2")])
    );

    let body = envelope(0, b"a");
    let ok = headers(&[("grpc-status", "0")]);
    let (messages, end) = outcome(Wire::Grpc, &head, &body, Some(&ok));
    assert_eq!(messages.len(), 1);
    assert_eq!(end.unwrap(), Metadata::new());
    for trailers in [None, Some(&Headers::new())] {
        assert_eq!(
            code(outcome(Wire::Grpc, &head, &body, trailers)),
            Code::Internal
        );
    }
}

#[test]
fn a_head_that_is_all_there_is_counts_as_trailers_too() {
    let head = answer_head(&[
        ("content-type", "application/grpc"),
        ("grpc-status", "0"),
        ("x-a", "1"),
    ]);
    let mut decoder = call(Wire::Grpc, options()).decoder(Side::Client);
    assert_eq!(decoder.head(&head).unwrap(), metadata(&[("x-a", "1")]));
    decoder.finish(None);
    let Some(Event::End(Ok(end))) = decoder.next().unwrap() else {
        panic!("no end");
    };
    assert_eq!(end, metadata(&[("x-a", "1")]));
}

#[test]
fn an_answer_without_a_status_is_no_success() {
    let message_only = headers(&[("grpc-message", "error")]);
    let missing = outcome(Wire::Grpc, &grpc_head(), b"", Some(&message_only));
    assert_eq!(code(missing), Code::Unknown);
    for body in [&b""[..], &envelope(0, b"a")] {
        assert_eq!(
            code(outcome(Wire::Grpc, &grpc_head(), body, None)),
            Code::Internal
        );
        assert_eq!(code(outcome(WEB, &web_head(), body, None)), Code::Internal);
    }
    // gRPC-Web has no HTTP trailers.
    let ok = headers(&[("grpc-status", "0")]);
    assert_eq!(
        code(outcome(WEB, &web_head(), b"", Some(&ok))),
        Code::Internal
    );
    let body = envelope(0x80, b"grpc-message: error\r\n");
    assert_eq!(code(outcome(WEB, &web_head(), &body, None)), Code::Unknown);
}

#[test]
fn answers_of_other_protocols_are_errors_by_their_http_status() {
    for (status, expected) in [
        (200, Code::Unknown),
        (400, Code::Internal),
        (404, Code::Unimplemented),
        (429, Code::Unavailable),
        (503, Code::Unavailable),
        (505, Code::Unknown),
    ] {
        for content_type in ["image/jpeg", "text/html", "application/json", ""] {
            let mut head = answer_head(&[("content-type", content_type), ("x-a", "1")]);
            head.status = status;
            for wire in WIRES {
                let (_, end) = outcome(wire, &head, b"", None);
                let error = end.unwrap_err();
                assert_eq!(error.code(), expected);
                assert!(error.message().contains(&status.to_string()));
                assert_eq!(error.received_metadata().get("x-a"), Some("1"));
            }
        }
        // Also where the content type is right, unless there is a status.
        let mut head = grpc_head();
        head.status = status;
        if status != 200 {
            assert_eq!(code(outcome(Wire::Grpc, &head, b"", None)), expected);
        }
        let aborted = headers(&[("grpc-status", "10")]);
        assert_eq!(
            code(outcome(Wire::Grpc, &head, b"", Some(&aborted))),
            Code::Aborted
        );
    }
    // A status wins over a missing content type; a good one can't be believed.
    let failed = answer_head(&[("grpc-status", "7")]);
    assert_eq!(
        code(outcome(Wire::Grpc, &failed, b"", None)),
        Code::PermissionDenied
    );
    let good = answer_head(&[("grpc-status", "0")]);
    assert_eq!(code(outcome(Wire::Grpc, &good, b"", None)), Code::Unknown);
    // gRPC and gRPC-Web don't stand for each other.
    assert_eq!(code(outcome(WEB, &grpc_head(), b"", None)), Code::Unknown);
    assert_eq!(
        code(outcome(Wire::Grpc, &web_head(), b"", None)),
        Code::Unknown
    );
}

#[test]
fn an_answer_in_another_format_is_internal() {
    for content_type in ["application/grpc+json", "application/grpc+foo"] {
        let head = answer_head(&[("content-type", content_type)]);
        assert_eq!(code(outcome(Wire::Grpc, &head, b"", None)), Code::Internal);
    }
    let mut json = call(Wire::Grpc, options());
    json.format = Format::Json;
    assert_eq!(
        code(outcome_of(&json, &grpc_head(), b"", None)),
        Code::Internal
    );
    // An error that a server answers before it knows the format is that error.
    let head = answer_head(&[("content-type", "application/grpc"), ("grpc-status", "12")]);
    assert_eq!(
        code(outcome_of(&json, &head, b"", None)),
        Code::Unimplemented
    );
}

#[test]
fn compressed_messages_need_an_encoding_that_is_known() {
    let ok = headers(&[("grpc-status", "0")]);
    let body = envelope(1, &gzip(b"abc"));
    for encoding in [None, Some("identity"), Some("foo")] {
        let mut head = grpc_head();
        if let Some(encoding) = encoding {
            head.headers.append("grpc-encoding", encoding);
        }
        assert_eq!(
            code(outcome(Wire::Grpc, &head, &body, Some(&ok))),
            Code::Internal
        );
        // Without a compressed message the encoding does not matter.
        let (_, end) = outcome(Wire::Grpc, &head, &envelope(0, b"abc"), Some(&ok));
        end.unwrap();
    }
    let mut head = grpc_head();
    head.headers.append("grpc-encoding", "gzip");
    for (payload, expected) in [
        (gzip(b"abc"), &b"abc"[..]),
        (gzip(b""), b""),
        (Vec::new(), b""),
    ] {
        let (messages, end) = outcome(Wire::Grpc, &head, &envelope(1, &payload), Some(&ok));
        end.unwrap();
        assert_eq!(messages, [expected]);
    }
    let corrupt = envelope(1, b"no gzip");
    assert_eq!(
        code(outcome(Wire::Grpc, &head, &corrupt, Some(&ok))),
        Code::Internal
    );
}

#[test]
fn a_server_fails_compressed_messages_without_an_encoding() {
    let head = post(&[
        ("content-type", "application/grpc"),
        ("grpc-encoding", "identity"),
    ]);
    let (call, _) = open(&head).unwrap();
    for flags in [1, 2, 0x80, 0x81, 0xff] {
        let mut decoder = call.decoder(Side::Server);
        decoder.feed(envelope(flags, b"abc").into());
        let error = decoder.next().unwrap_err();
        assert_eq!(error.code(), Code::Internal, "{flags}");
        assert!(decoder.next().unwrap().is_none());
    }
}

#[test]
fn the_receive_limit_holds_for_what_is_sent_and_what_is_unpacked() {
    for side in [Side::Client, Side::Server] {
        for (len, allowed) in [(10, true), (11, false)] {
            let mut limited = options();
            limited.receive_bytes_max = 10;
            let mut call = call(Wire::Grpc, limited);
            call.receive = Encoding::Gzip;
            let plain = vec![7; len];
            // A sender that stores eleven bytes can't be within ten of them.
            let long = vec![7; 40 * len];
            for (body, allowed) in [
                (envelope(0, &plain), allowed),
                (envelope(1, &gzip(&long)), false),
            ] {
                let mut decoder = call.decoder(side);
                decoder.feed(body.into());
                match decoder.next() {
                    Ok(event) => assert!(allowed && event.is_some()),
                    Err(error) => {
                        assert!(!allowed);
                        assert_eq!(error.code(), Code::ResourceExhausted);
                    }
                }
                assert_eq!(decoder.held_bytes(), 0);
            }
        }
    }
}

#[test]
fn what_decompresses_over_the_limit_is_refused() {
    let mut limited = options();
    limited.receive_bytes_max = 100;
    let mut call = call(Wire::Grpc, limited);
    call.receive = Encoding::Gzip;
    for (len, expected) in [(100, None), (101, Some(Code::ResourceExhausted))] {
        let mut decoder = call.decoder(Side::Server);
        decoder.feed(envelope(1, &gzip(&vec![7; len])).into());
        assert_eq!(decoder.next().err().map(|error| error.code()), expected);
    }
}

#[test]
fn a_lying_length_holds_nothing() {
    for wire in WIRES {
        let lie = [0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4, 5];
        let body = if wire == TEXT {
            crate::base64::encode_padded(&lie).into_bytes()
        } else {
            lie.to_vec()
        };
        let mut decoder = call(wire, options()).decoder(Side::Server);
        decoder.feed(body.into());
        let error = decoder.next().unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
        assert_eq!(decoder.held_bytes(), 0);
    }
}

#[test]
fn a_body_that_stops_in_a_message_never_ends_well() {
    let ok = headers(&[("grpc-status", "0")]);
    let failed = headers(&[("grpc-status", "14")]);
    let whole = envelope(0, b"abc");
    for len in 1..whole.len() {
        let body = &whole[..len];
        assert_eq!(
            code(outcome(Wire::Grpc, &grpc_head(), body, Some(&ok))),
            Code::Internal
        );
        assert_eq!(
            code(outcome(Wire::Grpc, &grpc_head(), body, None)),
            Code::Internal
        );
        // The server's own reason is the better one.
        let outcome = outcome(Wire::Grpc, &grpc_head(), body, Some(&failed));
        assert_eq!(code(outcome), Code::Unavailable);
        for wire in [Wire::Grpc, WEB] {
            let mut decoder = call(wire, options()).decoder(Side::Server);
            decoder.feed(Bytes::copy_from_slice(body));
            decoder.finish(None);
            assert_eq!(decoder.next().unwrap_err().code(), Code::Internal);
        }
    }
}

#[test]
fn malformed_metadata_fails_a_success_but_hides_no_error() {
    let mut head = grpc_head();
    head.headers.append("x-bin", "!");
    let mut decoder = call(Wire::Grpc, options()).decoder(Side::Client);
    let error = decoder.head(&head).unwrap_err();
    assert_eq!(error.code(), Code::Internal);
    assert!(error.message().contains("x-bin"));
    for (status, expected) in [("0", Code::Internal), ("5", Code::NotFound)] {
        let trailers = headers(&[("grpc-status", status), ("x-bin", "!")]);
        assert_eq!(
            code(outcome(Wire::Grpc, &grpc_head(), b"", Some(&trailers))),
            expected
        );
    }
}

#[test]
fn reserved_names_never_become_metadata() {
    let mut head = grpc_head();
    head.headers.append("grpc-accept-encoding", "gzip");
    head.headers.append("trailer", "grpc-status");
    head.headers.append("x-a", "1");
    let mut decoder = call(Wire::Grpc, options()).decoder(Side::Client);
    assert_eq!(decoder.head(&head).unwrap(), metadata(&[("x-a", "1")]));
    let trailers = headers(&[
        ("grpc-status", "0"),
        ("grpc-status-details-bin", "CAA"),
        ("x-b", "2"),
    ]);
    let (_, end) = outcome(Wire::Grpc, &grpc_head(), b"", Some(&trailers));
    assert_eq!(end.unwrap(), metadata(&[("x-b", "2")]));
}

// ---- gRPC-Web ------------------------------------------------------------------

#[test]
fn an_empty_trailers_frame_leaves_the_status_of_the_head() {
    let head = answer_head(&[
        ("content-type", "application/grpc-web"),
        ("grpc-status", "3"),
    ]);
    assert_eq!(
        code(outcome(WEB, &head, &envelope(0x80, b""), None)),
        Code::InvalidArgument
    );
    assert_eq!(code(outcome(WEB, &head, b"", None)), Code::InvalidArgument);
    let other = envelope(0x80, b"grpc-status: 9\r\n");
    assert_eq!(
        code(outcome(WEB, &head, &other, None)),
        Code::FailedPrecondition
    );
    assert_eq!(
        code(outcome(WEB, &web_head(), &envelope(0x80, b""), None)),
        Code::Internal
    );
}

#[test]
fn compressed_trailers_are_read() {
    let head = answer_head(&[
        ("content-type", "application/grpc-web"),
        ("grpc-encoding", "gzip"),
    ]);
    let body = envelope(0x81, &gzip(b"Grpc-Status: 9\r\nx-a:1\r\n"));
    let (_, end) = outcome(WEB, &head, &body, None);
    let error = end.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert_eq!(error.received_metadata().get("x-a"), Some("1"));
    assert_eq!(code(outcome(WEB, &web_head(), &body, None)), Code::Internal);
}

#[test]
fn trailers_are_bounded_by_their_own_limit() {
    let max = super::web_trailers::TRAILERS_BYTES_MAX;
    let mut tight = options();
    tight.receive_bytes_max = 8;
    let call = call(WEB, tight);
    let start = b"grpc-status: 0\r\nx-a: ";
    for (len, expected) in [
        (100, None),
        (max, None),
        (max + 1, Some(Code::ResourceExhausted)),
    ] {
        let mut block = start.to_vec();
        block.resize(len, b'1');
        let (_, end) = outcome_of(&call, &web_head(), &envelope(0x80, &block), None);
        assert_eq!(end.err().map(|error| error.code()), expected, "{len}");
    }
    let mut head = web_head();
    head.headers.append("grpc-encoding", "gzip");
    let bomb = envelope(0x81, &gzip(&vec![b'\n'; max + 1]));
    assert_eq!(
        code(outcome_of(&call, &head, &bomb, None)),
        Code::ResourceExhausted
    );
}

#[test]
fn nothing_follows_the_trailers() {
    let trailers = envelope(0x80, b"grpc-status: 0\r\n");
    for more in [&b"\0"[..], &envelope(0, b"a"), &trailers] {
        let body = [&trailers[..], more].concat();
        assert_eq!(code(outcome(WEB, &web_head(), &body, None)), Code::Internal);
    }
    // Not for a client's half either: requests have no trailers.
    let mut decoder = call(WEB, options()).decoder(Side::Server);
    decoder.feed(trailers.into());
    assert_eq!(decoder.next().unwrap_err().code(), Code::Internal);
}

#[test]
fn text_bodies_end_in_whole_groups() {
    let head = answer_head(&[("content-type", "application/grpc-web-text+proto")]);
    let padded = crate::base64::encode_padded(&envelope(0x80, b"grpc-status: 0\r\n\r\n"));
    assert!(padded.ends_with('='));
    let (_, end) = outcome(TEXT, &head, padded.as_bytes(), None);
    end.unwrap();
    let unpadded = padded.trim_end_matches('=');
    assert_eq!(
        code(outcome(TEXT, &head, unpadded.as_bytes(), None)),
        Code::Internal
    );
    assert_eq!(code(outcome(TEXT, &head, b"AAAA!", None)), Code::Internal);
    // A group that is begun after the last whole envelope.
    let begun = format!("{padded}AA");
    assert_eq!(
        code(outcome(TEXT, &head, begun.as_bytes(), None)),
        Code::Internal
    );
    let mut decoder = call(TEXT, options()).decoder(Side::Server);
    decoder.feed(Bytes::from_static(b"AAAAAAE"));
    decoder.finish(None);
    assert_eq!(decoder.next().unwrap_err().code(), Code::Internal);
}

#[test]
fn the_server_chooses_text_or_binary() {
    let trailers = envelope(0x80, b"grpc-status: 0\r\n");
    let (_, end) = outcome(TEXT, &web_head(), &trailers, None);
    end.unwrap();
    let head = answer_head(&[("content-type", "application/grpc-web-text")]);
    let text = crate::base64::encode_padded(&trailers);
    let (_, end) = outcome(WEB, &head, text.as_bytes(), None);
    end.unwrap();
}
