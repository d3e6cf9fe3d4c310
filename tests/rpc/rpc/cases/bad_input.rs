//! Bad input gets one clear error in its caller's own protocol, and the
//! connection lives on where HTTP lets it.

use buffa::Message as _;

use crate::peer::{Answer, Http1, soon};
use crate::probe::proto::ProbeResponse;
use crate::probe::{Served, say, serve, serve_with};

const ONE: &str = "/probe.v1.ProbeService/One";
const UP: &str = "/probe.v1.ProbeService/Up";
const CONNECT: (&str, &str) = ("content-type", "application/json");
const QUILL: (&str, &str) = ("content-type", "application/quill+json");
const QUILL_STREAM: (&str, &str) = ("content-type", "application/quill-stream+json");
const WEB: (&str, &str) = ("content-type", "application/grpc-web+proto");

/// Checks that the connection still answers a good call.
async fn lives_on(connection: &mut Http1) {
    let fields = [("content-type", "application/quill+proto")];
    let answer = connection
        .post(ONE, &fields, say("on").encode_to_vec())
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let message = ProbeResponse::decode_from_slice(&answer.body).expect("a message");
    assert_eq!(message.text, "on");
}

/// Checks a problem document, or a Connect error, and returns its text.
fn told(answer: &Answer, status: u16, code: &str) -> String {
    assert_eq!(answer.status, status, "{answer:?}");
    let document = answer.json();
    assert_eq!(document["code"], code, "{document}");
    let text = match answer.header("content-type") {
        Some("application/problem+json") => &document["detail"],
        Some("application/json") => &document["message"],
        other => panic!("a failure of type {other:?}"),
    };
    text.as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn an_unknown_path_is_answered_in_the_protocol_that_asked() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    for path in [
        "/probe.v1.ProbeService/Nope",
        "/no.Such/One",
        "/nope",
        "/a/b/c",
        "/",
    ] {
        for protocol in [CONNECT, QUILL] {
            let answer = connection.post(path, &[protocol], "{}").await;
            let text = told(&answer, 404, "unimplemented");
            assert!(text.contains("/package.Service/Method"), "{text}");
        }
        let answer = connection.post(path, &[WEB], "").await;
        assert_eq!((answer.status, answer.grpc_status()), (200, Some("12")));
        let answer = connection.post(path, &[], "").await;
        assert_eq!(answer.status, 404);
        assert_eq!(
            answer.header("content-type"),
            Some("text/plain; charset=utf-8")
        );
        lives_on(&mut connection).await;
    }
}

#[tokio::test]
async fn a_path_that_is_not_canonical_is_400() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    for path in [
        "//probe.v1.ProbeService/One",
        "/probe.v1.ProbeService//One",
        "/probe.v1.ProbeService/One/",
        "/./probe.v1.ProbeService/One",
        "/x/../probe.v1.ProbeService/One",
        "/probe.v1.ProbeService/%4fne",
        "/probe.v1.ProbeService%2fOne",
        "//",
    ] {
        for protocol in [CONNECT, QUILL] {
            let answer = connection.post(path, &[protocol], "{}").await;
            let text = told(&answer, 400, "invalid_argument");
            assert!(text.contains("canonical"), "{path}: {text}");
        }
        assert_eq!(
            connection.post(path, &[WEB], "").await.status,
            400,
            "{path}"
        );
        assert_eq!(connection.post(path, &[], "").await.status, 400, "{path}");
        lives_on(&mut connection).await;
    }
}

#[tokio::test]
async fn a_wrong_http_method_is_405_with_those_that_work() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    for (path, allow) in [(ONE, "GET, POST"), (UP, "POST")] {
        for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "QUILL"] {
            for content_type in ["application/json", "application/quill+json", "image/png"] {
                let request = format!(
                    "{method} {path} HTTP/1.1\r\nhost: a\r\ncontent-type: {content_type}\r\ncontent-length: 2\r\n\r\n{{}}"
                );
                connection.write(request).await;
                let answer = connection.answer().await;
                assert_eq!(answer.status, 405, "{method} {path}: {answer:?}");
                assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
                assert!(answer.body.is_empty());
            }
        }
        lives_on(&mut connection).await;
    }
}

#[tokio::test]
async fn an_unknown_content_type_is_415_with_those_that_work() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    for content_type in [
        "image/jpeg",
        "",
        "text/json",
        "application/quill",
        "application/quill+xml",
        "application/connect+xml",
        "application/jsonx",
        "application/quill-stream+json",
        "application/connect+json",
    ] {
        let fields = [("content-type", content_type)];
        let answer = connection.post(ONE, &fields, "{}").await;
        assert_eq!(answer.status, 415, "{content_type}: {answer:?}");
        let accepted = answer.header("accept-post").expect("what is accepted");
        assert!(accepted.contains("application/json"), "{accepted}");
        // What is of no protocol comes from a person at a command line, more often
        // than not.
        let is_known = content_type.starts_with("application/") && content_type.contains('+');
        assert_eq!(
            answer.body.is_empty(),
            is_known,
            "{content_type}: {answer:?}"
        );
        lives_on(&mut connection).await;
    }
}

#[tokio::test]
async fn what_a_head_says_wrong_is_400_and_named() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    for (protocol, name, value) in [
        (QUILL, "quill-timeout-ms", "-1"),
        (QUILL, "quill-timeout-ms", "+5"),
        (QUILL, "quill-timeout-ms", "10s"),
        (QUILL, "quill-timeout-ms", "12345678901"),
        (QUILL, "quill-timeout-ms", ""),
        (QUILL, "x-echo-bin", "!!!"),
        (CONNECT, "connect-timeout-ms", "-1"),
        (CONNECT, "connect-protocol-version", "2"),
    ] {
        let answer = connection.post(ONE, &[protocol, (name, value)], "{}").await;
        let text = told(&answer, 400, "invalid_argument");
        assert!(text.to_lowercase().contains(name), "{name}: {text}");
        lives_on(&mut connection).await;
    }
    let framed = ("content-type", "application/quill-stream+json");
    for credits in ["-1", "x", "", "4294967296000"] {
        let fields = [framed, ("quill-credits", credits)];
        let answer = connection.post(ONE, &fields, b"\x02\x01{}").await;
        assert!(answer.status >= 200, "{answer:?}");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(text.contains("invalid_argument"), "{credits}: {answer:?}");
        lives_on(&mut connection).await;
    }
}

#[tokio::test]
async fn a_body_that_does_not_decode_is_400_with_the_fields_path() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    for protocol in [CONNECT, QUILL] {
        for (body, named) in [
            (&b"{\"count\": \"x\"}"[..], "count"),
            (b"{\"padBytes\": -1}", "padBytes"),
            (b"{\"text\": \"\xff\"}", "JSON"),
            (b"{", "JSON"),
            (b"", "JSON"),
            (b"{} {}", "JSON"),
        ] {
            let answer = connection.post(ONE, &[protocol], body).await;
            let text = told(&answer, 400, "invalid_argument");
            assert!(text.contains(named), "{body:?}: {text}");
            lives_on(&mut connection).await;
        }
    }
    for content_type in ["application/proto", "application/quill+proto"] {
        // A field cut short, text that is no UTF-8, a field number of 0.
        for body in [&b"\x0a\x05ab"[..], b"\x0a\x02\xff\xfe", b"\0\0"] {
            let fields = [("content-type", content_type)];
            let answer = connection.post(ONE, &fields, body).await;
            let text = told(&answer, 400, "invalid_argument");
            assert!(text.contains("protobuf"), "{body:?}: {text}");
            lives_on(&mut connection).await;
        }
    }
}

#[tokio::test]
async fn broken_frames_are_a_problem_and_the_connection_lives_on() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    for (body, code) in [
        // Reserved flag, no flag, END_STREAM with bytes, CREDIT of 0.
        (&b"\x02\x80{}"[..], "invalid_argument"),
        (b"\x02\x00{}", "invalid_argument"),
        (b"\x02\x02{}", "invalid_argument"),
        (b"\x01\x08\x00", "invalid_argument"),
        // An overlong varint, and one of more than five bytes.
        (b"\x82\x00\x01{}", "invalid_argument"),
        (b"\xff\xff\xff\xff\xff\xff\x01", "invalid_argument"),
        // Compressed without an encoding.
        (b"\x02\x41{}\x00\x02", "invalid_argument"),
        // A length that lies, and one that is too long.
        (b"\x7f\x01{}", "internal"),
        (b"\xff\xff\xff\x7f\x01", "resource_exhausted"),
        // No end.
        (b"\x02\x01{}", "internal"),
        (b"", "internal"),
    ] {
        let answer = connection.post(UP, &[QUILL_STREAM], body).await;
        assert!(answer.status >= 400, "{body:?}: {answer:?}");
        let problem = answer.json();
        let found = problem["code"].as_str().unwrap_or_default();
        let truncated = code == "internal" && found == "invalid_argument";
        assert!(found == code || truncated, "{body:?}: {problem}");
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
        lives_on(&mut connection).await;
    }
    let good = b"\x0c\x03{\"text\":\"a\"}";
    let answer = connection.post(UP, &[QUILL_STREAM], good).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["text"], "a");
}

#[tokio::test]
async fn a_message_over_the_limit_is_refused_before_it_is_there() {
    let served = serve_with(|builder| builder.receive_bytes_max(1000)).await;
    let text = "x".repeat(2000);
    let body = format!("{{\"text\": \"{text}\"}}");
    let mut connection = Http1::connect(&served.url).await;
    for (protocol, status) in [(CONNECT, 429), (QUILL, 429)] {
        let answer = connection.post(ONE, &[protocol], &body).await;
        let text = told(&answer, status, "resource_exhausted");
        assert!(text.contains("1000"), "the limit is named: {text}");
        lives_on(&mut connection).await;
    }
    // A length alone, of a body that never comes.
    for protocol in [CONNECT, QUILL] {
        let mut connection = Http1::connect(&served.url).await;
        let head = format!(
            "POST {ONE} HTTP/1.1\r\nhost: a\r\ncontent-type: {}\r\ncontent-length: 99999999999\r\n\r\n{body}",
            protocol.1
        );
        connection.write(head).await;
        let answer = connection.answer().await;
        told(&answer, 429, "resource_exhausted");
    }
    alive(&served).await;
}

#[tokio::test]
async fn a_body_that_is_cut_is_no_call_and_the_server_lives_on() {
    let served = serve().await;
    for content_type in [
        "application/json",
        "application/quill+json",
        "application/grpc-web",
    ] {
        for framing in [
            "content-length: 10\r\n\r\n{}",
            "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n",
            "transfer-encoding: chunked\r\n\r\n5\r\n{}",
            "transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
            "content-length: 2\r\ncontent-length: 3\r\n\r\n{}x",
            "content-length: -2\r\n\r\n{}",
        ] {
            let mut connection = Http1::connect(&served.url).await;
            let head =
                format!("POST {ONE} HTTP/1.1\r\nhost: a\r\ncontent-type: {content_type}\r\n");
            connection.write(head + framing).await;
            connection.finish().await;
            if let Some(answer) = soon(connection.read_answer()).await {
                let text = String::from_utf8_lossy(&answer.body);
                let status = text.split("grpc-status: ").nth(1);
                let failed = answer.status >= 400 || status.is_some_and(|s| !s.starts_with('0'));
                assert!(failed, "{content_type} {framing:?}: {answer:?}");
            }
        }
    }
    let seen = served.seen.made.load(std::sync::atomic::Ordering::SeqCst);
    assert_eq!(seen, 0, "a handler was given a message that was not whole");
    alive(&served).await;
}

#[tokio::test]
async fn a_chunked_body_may_come_byte_by_byte() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    let mut request = format!(
        "POST {ONE} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    );
    for letter in r#"{"text": "abc"}"#.chars() {
        request.push_str(&format!("1\r\n{letter}\r\n"));
    }
    request.push_str("0\r\n\r\n");
    for byte in request.as_bytes() {
        connection.write([*byte]).await;
    }
    assert_eq!(connection.answer().await.json()["text"], "abc");
    lives_on(&mut connection).await;
}

#[tokio::test]
async fn heads_over_the_limit_are_431() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    let large = "x".repeat(64 * 1024);
    let answer = connection
        .post(ONE, &[CONNECT, ("x-large", &large)], "{}")
        .await;
    assert_eq!(answer.status, 431);
    alive(&served).await;
}

async fn alive(served: &Served) {
    lives_on(&mut Http1::connect(&served.url).await).await;
}
