//! gRPC as any client of HTTP/2 may speak it.

use buffa::Message as _;
use quill_core::{HttpMethod, RequestHead};

use crate::peer::{Answer, envelope, head, http2, send, soon};
use crate::probe::proto::ProbeResponse;
use crate::probe::{ProbeRequest, Served, ending, say, serve, serve_with};

const ONE: &str = "/probe.v1.ProbeService/One";

async fn call(served: &Served, fields: &[(&str, &str)], body: impl Into<Vec<u8>>) -> Answer {
    let mut all = vec![("content-type", "application/grpc"), ("te", "trailers")];
    all.extend(fields);
    send(&http2(&served.url), head(ONE, &all), body.into()).await
}

fn framed(message: &ProbeRequest) -> Vec<u8> {
    envelope(0, &message.encode_to_vec())
}

/// The one message of a good answer.
fn message(answer: &Answer) -> ProbeResponse {
    assert_eq!(answer.grpc_status(), Some("0"), "{answer:?}");
    ProbeResponse::decode_from_slice(&answer.body[5..]).expect("a message")
}

#[tokio::test]
async fn a_malformed_timeout_fails_the_call_and_a_huge_one_does_not() {
    let served = serve().await;
    for timeout in ["99999999H", "99999999n", "00000001H"] {
        let answer = call(&served, &[("grpc-timeout", timeout)], framed(&say("x"))).await;
        assert_eq!(message(&answer).text, "x", "{timeout}");
    }
    for timeout in [
        "123456789S",
        "1",
        "",
        "-1S",
        "+5S",
        "S",
        "5s",
        "1 S",
        "1.5S",
        "5SS",
    ] {
        let answer = call(&served, &[("grpc-timeout", timeout)], framed(&say("x"))).await;
        assert_eq!(answer.status, 200, "{timeout}");
        assert_eq!(answer.grpc_status(), Some("13"), "{timeout}");
        assert!(
            answer.grpc_message().contains("grpc-timeout"),
            "{timeout}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn a_passed_deadline_is_4() {
    let served = serve().await;
    for timeout in ["50m", "1n", "0n"] {
        let answer = call(
            &served,
            &[("grpc-timeout", timeout)],
            framed(&ending("hang")),
        )
        .await;
        assert_eq!(answer.grpc_status(), Some("4"), "{timeout}: {answer:?}");
    }
}

#[tokio::test]
async fn an_error_is_one_head_with_its_message_percent_coded() {
    let served = serve().await;
    let answer = call(&served, &[], framed(&ending("error"))).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/grpc"));
    assert_eq!(answer.header("grpc-status"), Some("9"));
    assert_eq!(answer.header("grpc-message"), Some("100%25 n%C3%B6"));
    assert_eq!(answer.header("x-why"), Some("because"));
    assert!(answer.body.is_empty() && answer.trailers.is_empty());
}

#[tokio::test]
async fn binary_metadata_is_read_with_padding_and_written_without() {
    let served = serve().await;
    for value in ["AQIDBA", "AQIDBA=="] {
        let answer = call(&served, &[("x-echo-bin", value)], framed(&say("x"))).await;
        assert_eq!(answer.header("x-echo-bin"), Some("AQIDBA"), "{value}");
    }
    for value in ["!!!!", "AQI DBA", "A", "AQ=A"] {
        let answer = call(&served, &[("x-echo-bin", value)], framed(&say("x"))).await;
        assert_eq!(answer.grpc_status(), Some("13"), "{value}");
        assert!(
            answer.grpc_message().contains("x-echo-bin"),
            "{value}: {answer:?}"
        );
    }
}

#[tokio::test]
async fn compression_that_is_not_named_or_not_known_is_told_apart() {
    let served = serve().await;
    let answer = call(&served, &[], envelope(1, b"x")).await;
    assert_eq!(answer.grpc_status(), Some("13"), "{answer:?}");
    let identity = [("grpc-encoding", "identity")];
    let answer = call(&served, &identity, envelope(1, b"x")).await;
    assert_eq!(answer.grpc_status(), Some("13"), "{answer:?}");
    let unknown = [("grpc-encoding", "x-foo")];
    for body in [envelope(1, b"x"), framed(&say("x"))] {
        let answer = call(&served, &unknown, body).await;
        assert_eq!(answer.grpc_status(), Some("12"), "{answer:?}");
        assert_eq!(answer.header("grpc-accept-encoding"), Some("zstd,gzip"));
    }
    // What is named, but isn't what came.
    for encoding in ["gzip", "zstd"] {
        let named = [("grpc-encoding", encoding)];
        let answer = call(&served, &named, envelope(1, b"no such stream")).await;
        assert_eq!(answer.grpc_status(), Some("13"), "{answer:?}");
    }
}

#[tokio::test]
async fn an_empty_message_is_one_compressed_or_not() {
    const GZIP_OF_NOTHING: &[u8] = b"\x1f\x8b\x08\0\0\0\0\0\0\xff\x03\0\0\0\0\0\0\0\0\0";
    let served = serve().await;
    let gzip = [("grpc-encoding", "gzip")];
    for (flags, payload) in [(0, &[][..]), (1, &[]), (1, GZIP_OF_NOTHING)] {
        let answer = call(&served, &gzip, envelope(flags, payload)).await;
        assert_eq!(message(&answer).text, "");
    }
}

#[tokio::test]
async fn the_limit_is_the_last_size_that_passes_both_ways() {
    let request = say(&"x".repeat(200));
    let request_bytes = request.encode_to_vec().len();
    let answer = ProbeResponse {
        text: request.text.clone(),
        ..Default::default()
    };
    let answer_bytes = answer.encode_to_vec().len();
    for (limit, code) in [(request_bytes, "0"), (request_bytes - 1, "8")] {
        let served = serve_with(|builder| builder.receive_bytes_max(limit)).await;
        let answer = call(&served, &[], framed(&request)).await;
        assert_eq!(answer.grpc_status(), Some(code), "{answer:?}");
    }
    for (limit, code) in [(answer_bytes, "0"), (answer_bytes - 1, "8")] {
        let served = serve_with(|builder| builder.send_bytes_max(limit)).await;
        let answer = call(&served, &[], framed(&request)).await;
        assert_eq!(answer.grpc_status(), Some(code), "{answer:?}");
    }
}

#[tokio::test]
async fn a_length_that_lies_is_refused_from_its_header() {
    let served = serve().await;
    let endless = b"\0\xff\xff\xff\xffhello".to_vec();
    assert_eq!(call(&served, &[], endless).await.grpc_status(), Some("8"));
    for truncated in [&b"\0\0\0\0\xffhello"[..], b"\0\0\0", b"\0"] {
        let answer = call(&served, &[], truncated).await;
        assert_eq!(answer.grpc_status(), Some("13"), "{answer:?}");
    }
    for flags in [2, 0x80, 0xff] {
        let answer = call(&served, &[], envelope(flags, b"")).await;
        assert_eq!(answer.grpc_status(), Some("13"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_unary_method_takes_one_message_neither_none_nor_two() {
    let served = serve().await;
    let two = [framed(&say("x")), framed(&say("y"))].concat();
    for body in [Vec::new(), two] {
        let answer = call(&served, &[], body).await;
        assert_eq!(answer.grpc_status(), Some("12"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_content_type_is_grpcs_or_it_is_415() {
    let served = serve().await;
    let channel = http2(&served.url);
    for (content_type, status) in [
        ("image/jpeg", 415),
        ("application/grpcfoo", 415),
        ("application/grpc+thrift", 415),
        ("application/grpc;charset=utf-8", 200),
        ("application/grpc+proto", 200),
        ("APPLICATION/GRPC", 200),
    ] {
        let head = head(ONE, &[("content-type", content_type)]);
        let answer = send(&channel, head, framed(&say("x"))).await;
        assert_eq!(answer.status, status, "{content_type}: {answer:?}");
        if status == 200 {
            assert_eq!(message(&answer).text, "x");
        } else {
            let is_grpc = content_type.starts_with("application/grpc+");
            assert_eq!(answer.body.is_empty(), is_grpc, "{answer:?}");
            let accepted = answer.header("accept-post").expect("what is accepted");
            assert!(accepted.contains("application/grpc"), "{accepted}");
        }
    }
}

#[tokio::test]
async fn a_message_that_is_no_protobuf_is_3_and_says_so() {
    let served = serve().await;
    // A field cut short, text that is no UTF-8, a field number of 0.
    for broken in [&b"\x0a\x05ab"[..], b"\x0a\x02\xff\xfe", b"\0\0"] {
        let answer = call(&served, &[], envelope(0, broken)).await;
        assert_eq!(answer.grpc_status(), Some("3"), "{broken:?}: {answer:?}");
        assert!(answer.grpc_message().contains("protobuf"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_method_that_is_not_there_is_12_and_a_wrong_http_method_405() {
    let served = serve().await;
    let channel = http2(&served.url);
    let fields = [("content-type", "application/grpc")];
    for path in ["/probe.v1.ProbeService/Nope", "/no.Such/One", "/nope"] {
        let answer = send(&channel, head(path, &fields), framed(&say("x"))).await;
        assert_eq!((answer.status, answer.grpc_status()), (200, Some("12")));
        assert_eq!(answer.header("content-type"), Some("application/grpc"));
    }
    for path in [
        "//probe.v1.ProbeService/One",
        "/probe.v1.ProbeService/%4fne",
    ] {
        let answer = send(&channel, head(path, &fields), framed(&say("x"))).await;
        assert_eq!(answer.status, 400, "{path}");
    }
    let mut put: RequestHead = head(ONE, &fields);
    put.method = HttpMethod::Other("PUT".into());
    let answer = send(&channel, put, framed(&say("x"))).await;
    assert_eq!(answer.status, 405);
    assert!(
        answer
            .header("allow")
            .is_some_and(|allow| allow.contains("POST"))
    );
}

#[tokio::test]
async fn a_connection_outlives_every_bad_call() {
    let served = serve().await;
    let channel = http2(&served.url);
    let fields = [("content-type", "application/grpc")];
    let bad: [&[u8]; 4] = [b"\0\xff\xff\xff\xff", b"\x07\0\0\0\0", b"\0\0", b""];
    for _ in 0..50 {
        for body in bad {
            send(&channel, head(ONE, &fields), body).await;
        }
    }
    let answer = soon(send(&channel, head(ONE, &fields), framed(&say("on")))).await;
    assert_eq!(message(&answer).text, "on");
}

#[tokio::test]
async fn grpc_web_text_is_read_in_parts_and_refused_unless_whole() {
    let served = serve().await;
    let channel = http2(&served.url);
    let fields = [("content-type", "application/grpc-web-text")];
    let body = framed(&say("hello"));
    let encode = |bytes: &[u8]| base64::Engine::encode(&base64::prelude::BASE64_STANDARD, bytes);
    // Parts that were padded by themselves, cut anywhere.
    for cut in 0..=body.len() {
        let (first, rest) = body.split_at(cut);
        let text = encode(first) + &encode(rest);
        let answer = send(&channel, head(ONE, &fields), text).await;
        let decoded = decode_parts(answer.text());
        let trailers = decoded.windows(13).any(|part| part == b"grpc-status: ");
        assert!(trailers || decoded.windows(12).any(|part| part == b"grpc-status:"));
        assert!(decoded.windows(5).any(|part| part == b"hello"), "{cut}");
    }
    let text = encode(&body);
    let unpadded = text.trim_end_matches('=');
    for broken in [
        &text[..text.len() - 1],
        "AAA",
        "A",
        "!!!!",
        &format!("{unpadded}A"),
    ] {
        let answer = send(&channel, head(ONE, &fields), broken.to_owned()).await;
        let status = match answer.grpc_status() {
            Some(status) => status.to_owned(),
            None => String::from_utf8_lossy(&decode_parts(answer.text())).into_owned(),
        };
        assert!(status.contains("13"), "{broken}: {status}");
    }
}

/// Undoes base64 whose parts were padded by themselves.
fn decode_parts(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(4)
        .flat_map(|quad| {
            base64::Engine::decode(&base64::prelude::BASE64_STANDARD, quad).expect("base64")
        })
        .collect()
}
