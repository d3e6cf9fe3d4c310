use super::*;
use quill_core::{HttpMethod, HttpVersion};
use quill_wire::Encode;

fn get(query: &str, fields: &[(&str, &str)]) -> RequestHead {
    let mut head = RequestHead::post(format!("{PATH}?{query}"));
    head.method = HttpMethod::Get;
    for (name, value) in fields {
        head.headers.append(name, value);
    }
    head
}

/// What a server reads of a GET that it takes.
fn read(head: &RequestHead) -> (Call, Vec<u8>) {
    let call = opened(head, readable(), Arc::default());
    assert_eq!(call.wire, Wire::ConnectGet);
    let seen = events(&mut call.decoder(Side::Server), &[]);
    let [Seen::Message(message), Seen::End(_)] = &seen[..] else {
        panic!("{seen:?}")
    };
    (call, message.clone())
}

#[test]
fn the_message_is_read_in_every_form() {
    for (query, message) in [
        (
            "connect=v1&encoding=proto&base64=1&message=_-8",
            &[255, 239][..],
        ),
        (
            "connect=v1&encoding=proto&base64=1&message=_-8=",
            &[255, 239],
        ),
        ("encoding=proto&base64=1&message=_-8%3D", &[255, 239]),
        ("encoding=proto&base64=1&message=%2F%2B8", &[255, 239]),
        ("message=&encoding=proto", &[]),
        ("message=a%00b&encoding=proto&cache=7", b"a\0b"),
        (
            "encoding=json&message=%7B%22a%22%3A+%22%2B%20%22%7D",
            br#"{"a": "+ "}"#,
        ),
    ] {
        let (call, read) = read(&get(query, &[]));
        assert_eq!(read, message, "{query}");
        let json = query.contains("encoding=json");
        assert_eq!(call.format == Format::Json, json);
    }
}

#[test]
fn a_decoder_holds_the_message_whatever_body_comes() {
    let head = get("encoding=json&message=%7B%7D", &[]);
    let call = opened(&head, readable(), Arc::default());
    // Feeding it once more, or the empty body of the GET, changes nothing.
    let seen = events(&mut call.decoder(Side::Server), &[b"{}", b""]);
    let message = Seen::Message(b"{}".to_vec());
    assert_eq!(seen, [message, Seen::End(Metadata::new())]);

    let limited = options(|options| options.receive_bytes_max = 1);
    let call = opened(&head, readable(), limited);
    let seen = events(&mut call.decoder(Side::Server), &[]);
    assert_eq!(seen, [Seen::Broken(Code::ResourceExhausted)]);
}

#[test]
fn a_compressed_message_is_unpacked() {
    let mut query = "encoding=json&compression=gzip&base64=1&message=".to_owned();
    for byte in gzip(b"{}") {
        query.push_str(&format!("%{byte:02x}"));
    }
    // Percent coding of raw bytes is no base64.
    assert_eq!(
        open_code(&get(&query, &[]), readable()),
        Code::InvalidArgument
    );
    let query = query.replace("base64=1&", "");
    assert_eq!(read(&get(&query, &[])).1, b"{}");
}

#[test]
fn what_a_query_gets_wrong_is_named() {
    for (query, code) in [
        (
            "connect=v1&encoding=json&message=%7B%7D&base64=0",
            Code::InvalidArgument,
        ),
        (
            "connect=v1&encoding=json&message=%7B%7D&base64=",
            Code::InvalidArgument,
        ),
        (
            "connect=v2&encoding=json&message=%7B%7D",
            Code::InvalidArgument,
        ),
        ("connect=v1&encoding=json", Code::InvalidArgument),
        ("connect=v1&message=%7B%7D", Code::InvalidArgument),
        ("connect=v1&encoding=json&message=%7", Code::InvalidArgument),
        (
            "connect=v1&encoding=json&message=%zz",
            Code::InvalidArgument,
        ),
        (
            "connect=v1&encoding=proto&base64=1&message=!",
            Code::InvalidArgument,
        ),
        (
            "connect=v1&encoding=json&message=a&compression=br",
            Code::Unimplemented,
        ),
    ] {
        assert_eq!(open_code(&get(query, &[]), readable()), code, "{query}");
    }
    let head = get(
        "connect=v1&encoding=json&message=a",
        &[("connect-timeout-ms", "+1")],
    );
    assert_eq!(open_code(&head, readable()), Code::InvalidArgument);
    let head = get("connect=v1&encoding=foo&message=a", &[]);
    let refused = open(&head, readable(), Arc::default()).unwrap_err();
    assert_eq!(refused, Refusal::MediaType);
}

#[test]
fn only_methods_without_side_effects_are_called_by_get() {
    let head = get("connect=v1&encoding=json&message=%7B%7D", &[]);
    let refused = open(&head, method(MethodKind::Unary), Arc::default()).unwrap_err();
    assert_eq!(refused, Refusal::HttpMethod("POST"));
    // A GET that says its content type and has no query.
    let mut head = post("application/json", &[]);
    head.method = HttpMethod::Get;
    assert_eq!(open_code(&head, readable()), Code::InvalidArgument);
}

#[test]
fn caches_are_told_that_answers_vary() {
    let (call, _) = read(&get(
        "connect=v1&encoding=json&message=%7B%7D",
        &[("accept-encoding", "gzip")],
    ));
    let mut out = Out::new();
    let body = message("x".repeat(2_000));
    call.encoder(Side::Server)
        .unary(Ok(&body), &Metadata::new(), &Metadata::new(), &mut out);
    assert_eq!(
        Sent::of(out).headers(),
        [
            ("content-type", "application/json"),
            ("content-encoding", "gzip"),
            ("vary", "accept-encoding"),
        ]
    );
}

fn client(format: Format) -> Call {
    let options = options(|options| options.use_get = true);
    let mut call = Call::outgoing(Wire::ConnectUnary, readable(), format, options);
    call.metadata = metadata(&[("x-a", "1")]);
    call.timeout = Some(std::time::Duration::from_secs(1));
    call.version = HttpVersion::Http1;
    call
}

fn requested(call: &Call, body: impl Into<Bytes>) -> (RequestHead, Vec<u8>) {
    let mut out = Out::new();
    let head = call.unary_request(&message(body), &mut out).unwrap();
    let sent = Sent::of(out);
    assert!(sent.ended);
    (head, sent.body)
}

#[test]
fn a_client_writes_its_parameters_in_one_order() {
    let (head, body) = requested(&client(Format::Json), r#"{"a":"ü +"}"#);
    assert_eq!(head.method, HttpMethod::Get);
    assert_eq!(head.version, HttpVersion::Http1);
    assert_eq!(
        head.target,
        "/a.B/C?connect=v1&encoding=json&message=%7B%22a%22%3A%22%C3%BC%20%2B%22%7D"
    );
    assert_eq!(
        fields(&head.headers),
        [
            ("accept-encoding", "zstd,gzip"),
            ("connect-timeout-ms", "1000"),
            ("x-a", "1"),
        ]
    );
    assert!(body.is_empty());
    assert_eq!(read(&head).1, r#"{"a":"ü +"}"#.as_bytes());

    let (head, _) = requested(&client(Format::Proto), &[255_u8, 239][..]);
    assert_eq!(
        head.target,
        "/a.B/C?connect=v1&base64=1&encoding=proto&message=_-8"
    );
    assert_eq!(read(&head).1, [255, 239]);
}

#[test]
fn a_large_message_is_compressed_or_goes_by_post() {
    let text = "x".repeat(20_000);
    let (head, _) = requested(&client(Format::Json), text.clone());
    let start = "/a.B/C?connect=v1&base64=1&compression=zstd&encoding=json&message=";
    assert!(head.target.starts_with(start), "{}", head.target);
    assert_eq!(read(&head).1, text.as_bytes());

    let mut plain = client(Format::Json);
    plain.send = quill_core::compression::Encoding::Identity;
    for (len, is_get) in [(7_950, true), (8_000, false), (20_000, false)] {
        let (head, body) = requested(&plain, "x".repeat(len));
        assert_eq!(head.method == HttpMethod::Get, is_get, "{len}");
        assert_eq!(body.len(), if is_get { 0 } else { len });
        assert!(head.target.len() <= 8_000);
    }
}

#[test]
fn a_client_posts_where_get_is_not_allowed_or_not_asked_for() {
    let mut writes = client(Format::Json);
    writes.method = method(MethodKind::Unary);
    assert_eq!(requested(&writes, "{}").0.method, HttpMethod::Post);
    let unasked = Call::outgoing(Wire::ConnectUnary, readable(), Format::Json, Arc::default());
    assert_eq!(requested(&unasked, "{}").0.method, HttpMethod::Post);
    let by_wire = Call::outgoing(Wire::ConnectGet, readable(), Format::Json, Arc::default());
    assert_eq!(requested(&by_wire, "{}").0.method, HttpMethod::Get);
}
