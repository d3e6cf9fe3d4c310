//! Answers that no good server gives, to our client.

use std::time::Duration;

use buffa::Message as _;
use quill::{Code, Error, Format, Protocol, QuillClient, Request};

use crate::peer::{Script, ToldServer, envelope, soon};
use crate::probe::proto::ProbeResponse;
use crate::probe::{ProbeClient, ProbeRequest, say};

fn client(server: &ToldServer, protocol: Protocol, format: Format) -> ProbeClient {
    let builder = QuillClient::builder()
        .base_url(&server.url)
        .protocol(protocol)
        .format(format);
    ProbeClient::new(builder.build().expect("a client"))
}

/// What a unary call makes of an answer.
async fn one(script: Script, protocol: Protocol) -> Result<ProbeResponse, Error> {
    let server = script.serve().await;
    let client = client(&server, protocol, Format::Proto);
    let response = soon(client.one(say("x"))).await?;
    Ok(response.into_inner())
}

/// What a stream makes of an answer: the messages before its end, and that.
async fn many(script: Script, protocol: Protocol) -> (usize, Result<(), Error>) {
    let server = script.serve().await;
    let client = client(&server, protocol, Format::Proto);
    let mut count = 0;
    let read = async {
        let mut answers = client.down(ProbeRequest::default()).await?.into_inner();
        while answers.message().await?.is_some() {
            count += 1;
        }
        Ok(())
    };
    let end = soon(read).await;
    (count, end)
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> Code {
    result.expect_err("no success").code()
}

fn answer(text: &str) -> Vec<u8> {
    let message = ProbeResponse {
        text: text.to_owned(),
        ..Default::default()
    };
    message.encode_to_vec()
}

fn grpc() -> Script {
    Script::ok("application/grpc")
}

fn web() -> Script {
    Script::ok("application/grpc-web+proto")
}

#[tokio::test]
async fn a_unary_answer_of_none_or_two_messages_is_12() {
    let none = grpc().trailer("grpc-status", "0");
    assert_eq!(code(one(none, Protocol::Grpc).await), Code::Unimplemented);
    let two = grpc()
        .body(envelope(0, &answer("a")))
        .body(envelope(0, &answer("b")))
        .trailer("grpc-status", "0");
    assert_eq!(code(one(two, Protocol::Grpc).await), Code::Unimplemented);
    let in_head = grpc().field("grpc-status", "0");
    assert_eq!(
        code(one(in_head, Protocol::Grpc).await),
        Code::Unimplemented
    );
    let good = grpc()
        .body(envelope(0, &answer("a")))
        .trailer("grpc-status", "0");
    assert_eq!(one(good, Protocol::Grpc).await.expect("one").text, "a");
}

#[tokio::test]
async fn trailers_outweigh_a_status_in_the_head() {
    let script = grpc()
        .field("grpc-status", "9")
        .body(envelope(0, &answer("a")))
        .trailer("grpc-status", "0");
    assert_eq!(one(script, Protocol::Grpc).await.expect("one").text, "a");
    let script = grpc()
        .field("grpc-status", "0")
        .body(envelope(0, &answer("a")))
        .trailer("grpc-status", "5");
    assert_eq!(code(one(script, Protocol::Grpc).await), Code::NotFound);
}

#[tokio::test]
async fn an_answer_without_a_status_is_never_a_success() {
    let message = envelope(0, &answer("a"));
    for script in [
        grpc().body(&message).trailer("grpc-message", "hm"),
        grpc().body(&message).trailer("grpc-status", "x"),
        grpc().body(&message).trailer("grpc-status", "17"),
        grpc().body(&message).trailer("grpc-status", ""),
    ] {
        assert_eq!(code(one(script, Protocol::Grpc).await), Code::Unknown);
    }
    let without = grpc().body(&message);
    let (count, end) = many(without, Protocol::Grpc).await;
    assert_eq!((count, code(end)), (1, Code::Internal));
}

#[tokio::test]
async fn details_that_contradict_the_status_are_noticed() {
    // google.rpc.Status { code: 3 }
    let script = grpc()
        .field("grpc-status", "5")
        .field("grpc-message", "gone")
        .field("grpc-status-details-bin", "CAM");
    let error = one(script, Protocol::Grpc).await.unwrap_err();
    assert_eq!(error.code(), Code::Internal);
    assert!(error.message().contains("contradicts"), "{error}");
}

#[tokio::test]
async fn answers_of_proxies_go_by_their_status() {
    for protocol in Protocol::ALL {
        for (status, code) in [
            (401, Code::Unauthenticated),
            (403, Code::PermissionDenied),
            (404, Code::Unimplemented),
            (429, Code::Unavailable),
            (502, Code::Unavailable),
            (503, Code::Unavailable),
            (500, Code::Unknown),
            (418, Code::Unknown),
        ] {
            let mut script = Script::ok("text/html").body("<html>no</html>");
            script.status = status;
            let error = one(script.clone(), protocol).await.unwrap_err();
            assert_eq!(error.code(), code, "{protocol:?} {status}: {error}");
            let (count, end) = many(script, protocol).await;
            let error = end.unwrap_err();
            assert_eq!((count, error.code()), (0, code), "{protocol:?} {status}");
        }
        let page = Script::ok("text/html").body("<html>welcome</html>");
        assert!(one(page.clone(), protocol).await.is_err(), "{protocol:?}");
        assert!(many(page, protocol).await.1.is_err(), "{protocol:?}");
    }
}

#[tokio::test]
async fn trailers_of_grpc_web_are_read_in_any_spelling() {
    for block in [
        &b"grpc-status: 5\r\ngrpc-message: gone\r\n"[..],
        b"grpc-status:5\r\ngrpc-message:gone\r\n",
        b"Grpc-Status: 5\r\nGRPC-MESSAGE: gone\r\n",
        b"x: \r\nx:\r\ngrpc-status: 5\r\ngrpc-message: gone",
    ] {
        let script = web().body(envelope(0x80, block));
        let error = one(script, Protocol::GrpcWeb).await.unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::NotFound, "gone"));
    }
    let repeated = web().body(envelope(0, &answer("a"))).body(envelope(
        0x80,
        b"grpc-status: 0\r\nX-Many: 1\r\nx-many: 2\r\n",
    ));
    let server = repeated.serve().await;
    let client = client(&server, Protocol::GrpcWeb, Format::Proto);
    let response = soon(client.one(say("x"))).await.expect("an answer");
    let all: Vec<&[u8]> = response.trailers().all("x-many").collect();
    assert_eq!(all, [b"1", b"2"]);
}

#[tokio::test]
async fn an_empty_trailers_frame_leaves_the_status_of_the_head() {
    let script = web().field("grpc-status", "3").body(envelope(0x80, b""));
    let error = one(script, Protocol::GrpcWeb).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
    let script = web()
        .body(envelope(0, &answer("a")))
        .body(envelope(0x80, b""));
    assert!(one(script, Protocol::GrpcWeb).await.is_err());
}

#[tokio::test]
async fn a_connect_stream_ends_well_by_its_end_alone() {
    let stream = || Script::ok("application/connect+proto").body(envelope(0, &answer("a")));
    for junk in [
        stream(),
        stream().body(envelope(2, b"{")),
        stream().body(envelope(2, b"[]")),
        stream().body(envelope(2, b"{\"error\": 5}")),
        stream().body(b"\x02\0\0\0\x05{}"),
        stream().body(b"\0\0"),
        stream().body(envelope(2, b"{}")).body(envelope(0, b"")),
    ] {
        let (count, end) = many(junk, Protocol::Connect).await;
        assert_eq!((count, code(end)), (1, Code::Internal));
    }
    let (count, end) = many(stream().body(envelope(2, b"{}")), Protocol::Connect).await;
    assert_eq!(count, 1);
    end.expect("a good end");
}

#[tokio::test]
async fn a_quill_stream_ends_well_by_its_end_alone() {
    let message = answer("a");
    let frame = |flags: u8, payload: &[u8]| {
        let length = u8::try_from(payload.len()).expect("a short payload");
        [&[length, flags], payload].concat()
    };
    let stream = || Script::ok("application/quill-stream+proto").body(frame(1, &message));
    for junk in [
        stream(),
        stream().body(b"\x05\x01a"),
        stream().body(frame(0x12, b"{")),
        stream().body(frame(0x80, b"")),
        stream().body(b"\xff\xff\xff\xff\xff\xff"),
    ] {
        let (count, end) = many(junk, Protocol::Quill).await;
        let error = end.expect_err("no good end");
        assert_eq!(count, 1);
        assert!(
            matches!(error.code(), Code::Internal | Code::Unknown),
            "{error}"
        );
    }
    let (count, end) = many(stream().body(frame(2, b"")), Protocol::Quill).await;
    assert_eq!(count, 1);
    end.expect("a good end");
}

#[tokio::test]
async fn lengths_that_lie_are_errors_in_every_protocol() {
    let endless = b"\0\xff\xff\xff\xffhello";
    let script = grpc().body(endless).trailer("grpc-status", "0");
    assert_eq!(
        code(one(script, Protocol::Grpc).await),
        Code::ResourceExhausted
    );
    let script = web().body(endless);
    assert_eq!(
        code(one(script, Protocol::GrpcWeb).await),
        Code::ResourceExhausted
    );
    let script = Script::ok("application/connect+proto").body(endless);
    assert_eq!(
        code(many(script, Protocol::Connect).await.1),
        Code::ResourceExhausted
    );
    let script = Script::ok("application/quill-stream+proto").body(b"\xff\xff\xff\x7f\x01");
    assert_eq!(
        code(many(script, Protocol::Quill).await.1),
        Code::ResourceExhausted
    );
}

#[tokio::test]
async fn a_message_that_does_not_decode_is_the_servers_fault() {
    let broken = envelope(0, b"\x0a\x05ab");
    let script = grpc().body(broken).trailer("grpc-status", "0");
    assert_eq!(code(one(script, Protocol::Grpc).await), Code::Internal);
    for (content_type, protocol) in [
        ("application/proto", Protocol::Connect),
        ("application/quill+proto", Protocol::Quill),
    ] {
        let script = Script::ok(content_type).body(b"\x0a\x05ab");
        assert_eq!(code(one(script, protocol).await), Code::Internal);
    }
}

#[tokio::test]
async fn a_timeout_is_written_in_few_digits_and_hardly_shorter() {
    let asked = Duration::from_nanos(123_456_789_012);
    for (protocol, name, digits_max) in [
        (Protocol::Grpc, "grpc-timeout", 8),
        (Protocol::GrpcWeb, "grpc-timeout", 8),
        (Protocol::Connect, "connect-timeout-ms", 10),
        (Protocol::Quill, "quill-timeout-ms", 10),
    ] {
        let mut refusal = Script::ok("text/plain");
        refusal.status = 503;
        let server = refusal.serve().await;
        let client = client(&server, protocol, Format::Proto);
        let request = Request::new(say("x")).with_timeout(asked);
        assert!(soon(client.one(request)).await.is_err());
        let heads = server.asked.lock().expect("not poisoned");
        let value = heads[0].headers.text(name).expect("a timeout").to_owned();
        let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
        assert!(digits.len() <= digits_max, "{protocol:?}: {value}");
        let number: u64 = digits.parse().expect("digits");
        let sent = match value.strip_prefix(digits.as_str()) {
            Some("u") => Duration::from_micros(number),
            Some("m" | "") => Duration::from_millis(number),
            other => panic!("{protocol:?}: unit {other:?} of {value}"),
        };
        // The time until it was written is gone.
        let spent = Duration::from_secs(20);
        assert!(
            sent <= asked + Duration::from_millis(1),
            "{protocol:?}: {value}"
        );
        assert!(sent >= asked - spent, "{protocol:?}: {value}");
    }
}
