//! Connect as curl, browsers and other clients speak it.

use buffa::Message as _;
use serde_json::{Value, json};

use crate::peer::{Answer, Http1, envelope, head, http2, send};
use crate::probe::proto::ProbeResponse;
use crate::probe::{ProbeRequest, ending, say, serve};

const ONE: &str = "/probe.v1.ProbeService/One";
const DOWN: &str = "/probe.v1.ProbeService/Down";
const BOTH: &str = "/probe.v1.ProbeService/Both";
const JSON: (&str, &str) = ("content-type", "application/json");

async fn get(connection: &mut Http1, target: &str) -> Answer {
    let head = format!("GET {target} HTTP/1.1\r\nhost: a\r\n\r\n");
    connection.write(head).await;
    connection.answer().await
}

/// The flags and payloads of a stream's envelopes.
fn envelopes(mut body: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut found = Vec::new();
    while let [flags, a, b, c, d, rest @ ..] = body {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let (payload, rest) = rest.split_at(length);
        found.push((*flags, payload.to_vec()));
        body = rest;
    }
    assert!(body.is_empty(), "a broken envelope: {body:?}");
    found
}

/// The error in the last envelope of a stream.
fn stream_error(answer: &Answer) -> Value {
    assert_eq!(answer.status, 200, "{answer:?}");
    let (flags, payload) = envelopes(&answer.body).pop().expect("an end");
    assert_eq!(flags, 2, "{answer:?}");
    let end: Value = serde_json::from_slice(&payload).expect("JSON");
    end["error"].clone()
}

#[tokio::test]
async fn a_get_has_its_message_in_the_query_in_every_form() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    // `text: "?"`, whose base64 has both of the letters in which alphabets differ.
    let request = say("\u{fb}\u{ff}?>").encode_to_vec();
    use base64::Engine as _;
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD};
    let percent = |text: String| {
        text.replace('+', "%2B")
            .replace('/', "%2F")
            .replace('=', "%3D")
    };
    for message in [
        BASE64_URL_SAFE_NO_PAD.encode(&request),
        BASE64_URL_SAFE.encode(&request),
        percent(BASE64_URL_SAFE.encode(&request)),
        percent(BASE64_STANDARD.encode(&request)),
    ] {
        let target = format!("{ONE}?connect=v1&encoding=proto&base64=1&message={message}");
        let answer = get(&mut connection, &target).await;
        assert_eq!(answer.status, 200, "{target}: {answer:?}");
        let message = ProbeResponse::decode_from_slice(&answer.body).expect("a message");
        assert_eq!(message.text, "\u{fb}\u{ff}?>");
    }
    let target = format!("{ONE}?encoding=json&message=%7B%22text%22%3A%22caf%C3%A9%22%7D");
    assert_eq!(get(&mut connection, &target).await.json()["text"], "café");
}

#[tokio::test]
async fn what_a_get_says_wrong_is_400_and_a_method_with_effects_405() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    for (query, named) in [
        ("connect=v1&encoding=proto&base64=0&message=", "base64"),
        ("connect=v1&encoding=proto&base64=1&message=!!", "base64"),
        ("connect=v1&encoding=json&message=%zz", "message"),
        (
            "connect=v1&encoding=json&message=%7B%22text%22%3A5%7D",
            "text",
        ),
        ("connect=v2&encoding=json&message=%7B%7D", "connect"),
        ("connect=v1&encoding=json", "message"),
        ("connect=v1&message=%7B%7D", "encoding"),
        ("connect=v1&encoding=json&message=%FF", "JSON"),
    ] {
        let answer = get(&mut connection, &format!("{ONE}?{query}")).await;
        assert_eq!(answer.status, 400, "{query}: {answer:?}");
        let error = answer.json();
        assert_eq!(error["code"], "invalid_argument", "{query}");
        let message = error["message"].as_str().expect("a message");
        assert!(message.contains(named), "{query}: {message}");
    }
    let query = "connect=v1&encoding=xml&message=";
    assert_eq!(
        get(&mut connection, &format!("{ONE}?{query}")).await.status,
        415
    );
    let query = "connect=v1&encoding=json&message=%7B%7D";
    let answer = get(&mut connection, &format!("{DOWN}?{query}")).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
}

#[tokio::test]
async fn a_timeout_is_one_to_ten_digits() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    for timeout in ["-1", "+5", "10s", "12345678901", "1.5", "", "0x10"] {
        let fields = [JSON, ("connect-timeout-ms", timeout)];
        let answer = connection.post(ONE, &fields, "{}").await;
        assert_eq!(answer.status, 400, "{timeout}: {answer:?}");
        assert_eq!(answer.json()["code"], "invalid_argument", "{timeout}");
    }
    for timeout in ["9999999999", "60000"] {
        let fields = [JSON, ("connect-timeout-ms", timeout)];
        assert_eq!(connection.post(ONE, &fields, "{}").await.status, 200);
    }
    let fields = [JSON, ("connect-timeout-ms", "50")];
    let answer = connection.post(ONE, &fields, r#"{"ending": "hang"}"#).await;
    assert_eq!(answer.status, 504);
    assert_eq!(answer.json()["code"], "deadline_exceeded");
}

#[tokio::test]
async fn an_error_is_json_with_its_details_whatever_was_asked() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    let body = ending("error").encode_to_vec();
    let fields = [("content-type", "application/proto")];
    let answer = connection.post(ONE, &fields, body).await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let error = answer.json();
    assert_eq!(error["code"], "failed_precondition");
    assert_eq!(error["message"], "100% nö");
    assert_eq!(error["details"][0]["type"], "probe.v1.ProbeResponse");
}

#[tokio::test]
async fn a_compression_that_is_not_known_is_named_with_those_that_are() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    let fields = [JSON, ("content-encoding", "x-foo")];
    let answer = connection.post(ONE, &fields, "{}").await;
    assert_eq!(answer.status, 501);
    assert_eq!(answer.json()["code"], "unimplemented");
    assert_eq!(answer.header("accept-encoding"), Some("zstd,gzip"));
    let fields = [JSON, ("content-encoding", "gzip")];
    let answer = connection.post(ONE, &fields, "no gzip").await;
    assert_eq!(answer.status, 400, "{answer:?}");
    let stream = [
        ("content-type", "application/connect+json"),
        ("connect-content-encoding", "x-foo"),
    ];
    let answer = connection.post(DOWN, &stream, envelope(0, b"{}")).await;
    assert_eq!(stream_error(&answer)["code"], "unimplemented");
}

#[tokio::test]
async fn a_broken_stream_ends_with_an_error_in_its_end() {
    let served = serve().await;
    let channel = http2(&served.url);
    let fields = [("content-type", "application/connect+json")];
    let good = envelope(0, b"{\"count\": 1}");
    let two = [good.clone(), good.clone()].concat();
    for (body, code) in [
        (Vec::new(), "unimplemented"),
        (two, "unimplemented"),
        (envelope(1, b"x"), "internal"),
        (envelope(0, b"{"), "invalid_argument"),
        (b"\0\xff\xff\xff\xff".to_vec(), "resource_exhausted"),
        (b"\0\0\0\0\x05{}".to_vec(), "invalid_argument"),
        (b"\0\0".to_vec(), "invalid_argument"),
        (envelope(0x80, b"{}"), "invalid_argument"),
    ] {
        let answer = send(&channel, head(DOWN, &fields), body.clone()).await;
        let error = stream_error(&answer);
        assert_eq!(error["code"], code, "{body:?}: {error}");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| !text.is_empty())
        );
    }
    let answer = send(&channel, head(DOWN, &fields), good).await;
    let all = envelopes(&answer.body);
    assert_eq!(all.len(), 2);
    let end: Value = serde_json::from_slice(&all[1].1).expect("JSON");
    assert_eq!(end, json!({"metadata": {"x-trailer": ["down"]}}));
}

#[tokio::test]
async fn both_sides_stream_in_turn_on_http1() {
    let served = serve().await;
    let mut connection = Http1::connect(&served.url).await;
    let messages = ["a", "b", "c"].map(|text| {
        let request = ProbeRequest {
            text: text.to_owned(),
            ..Default::default()
        };
        envelope(0, &request.encode_to_vec())
    });
    let fields = [("content-type", "application/connect+proto")];
    for _ in 0..2 {
        let answer = connection.post(BOTH, &fields, messages.concat()).await;
        assert_eq!(answer.status, 200);
        let all = envelopes(&answer.body);
        assert_eq!(all.len(), 4);
        assert_eq!(all[3], (2, b"{}".to_vec()));
    }
    // gRPC has its end in trailers, which this version of HTTP loses.
    let grpc = [("content-type", "application/grpc")];
    let answer = connection.post(BOTH, &grpc, messages.concat()).await;
    assert_eq!(answer.status, 505);
}
