//! Peers that stop in the middle: requests that do not go on, answers that
//! nobody takes, and streams that rest, which are neither.

use std::sync::atomic::Ordering;
use std::time::Duration;

use base64::Engine as _;
use futures_util::{StreamExt, stream};
use quill::{Protocol, ServerBuilder, ServerOptions};

use crate::peer::{self, Answer, Http1, head, soon};
use crate::probe::{PROTOCOLS, ProbeRequest, eventually, say, serve_with};

/// What a peer of these tests may stall.
const TIMEOUT: Duration = Duration::from_millis(250);

fn impatient(builder: ServerBuilder) -> ServerBuilder {
    let mut options = ServerOptions::default();
    options.write_timeout = Some(TIMEOUT);
    builder.receive_timeout(TIMEOUT).transport(options)
}

fn says_deadline(answer: &Answer) -> bool {
    let body = String::from_utf8_lossy(&answer.body);
    let says = |text| body.contains(text);
    answer.grpc_status() == Some("4") || says("deadline_exceeded") || says("grpc-status: 4")
}

#[tokio::test]
async fn a_request_on_http1_that_stalls_is_answered() {
    let served = serve_with(impatient).await;
    let envelope = "\0\0\0\0\x09";
    for (path, content_type, begun) in [
        ("One", "application/json", r#"{"te"#),
        ("One", "application/json", ""),
        ("One", "application/quill+json", r#"{"te"#),
        ("One", "application/grpc-web", "\0\0"),
        ("Up", "application/connect+proto", envelope),
        ("Up", "application/grpc-web-text", "AAA"),
        ("Up", "application/quill-stream+proto", "\x09"),
        ("Up", "application/quill-stream+proto", "\x09\x01"),
    ] {
        let mut connection = Http1::connect(&served.url).await;
        let request = format!(
            "POST /probe.v1.ProbeService/{path} HTTP/1.1\r\nhost: a\r\n\
             content-type: {content_type}\r\ncontent-length: 100\r\n\r\n{begun}"
        );
        connection.write(request).await;
        let mut answer = connection.answer().await;
        if content_type == "application/grpc-web-text" {
            let text = base64::engine::general_purpose::STANDARD.decode(&answer.body);
            answer.body = text.unwrap().into();
        }
        assert!(
            says_deadline(&answer),
            "{content_type} {begun:?}: {answer:?}"
        );
        let text = [&answer.body[..], answer.grpc_message().as_bytes()].concat();
        let text = String::from_utf8_lossy(&text);
        assert!(text.contains("receive_timeout"), "{text}");
    }
}

#[tokio::test]
async fn a_request_on_http2_that_stalls_is_answered_and_its_connection_lives() {
    let served = serve_with(impatient).await;
    let channel = peer::http2(&served.url);
    for (path, begun) in [("One", &[][..]), ("Up", &[0, 0, 0, 0, 9]), ("Up", &[0])] {
        let head = head(
            &format!("/probe.v1.ProbeService/{path}"),
            &[("content-type", "application/grpc")],
        );
        let body = crate::budgets::Unfinished::new(begun.to_vec(), 0);
        let answer = soon(peer::exchange(&channel, head, body)).await;
        assert!(says_deadline(&answer), "{path} {begun:?}: {answer:?}");
    }
    let good = head(
        "/probe.v1.ProbeService/One",
        &[("content-type", "application/json")],
    );
    assert_eq!(peer::send(&channel, good, "{}").await.status, 200);
}

#[tokio::test]
async fn a_stream_that_rests_between_messages_goes_on() {
    let served = serve_with(impatient).await;
    for protocol in PROTOCOLS {
        let (sender, messages) = tokio::sync::mpsc::channel::<ProbeRequest>(1);
        let messages = stream::unfold(messages, |mut messages| async move {
            Some((messages.recv().await?, messages))
        });
        sender.send(say("one")).await.unwrap();
        let client = served.client(protocol);
        let mut answers = client.both(messages).await.unwrap().into_inner();
        for text in ["one", "two"] {
            assert_eq!(answers.message().await.unwrap().unwrap().text, text);
            tokio::time::sleep(TIMEOUT * 4).await;
            if text == "one" {
                sender.send(say("two")).await.unwrap();
            }
        }
        drop(sender);
        assert!(answers.message().await.unwrap().is_none(), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_handler_that_takes_its_time_is_not_the_callers_stall() {
    let served = serve_with(impatient).await;
    let client = served.client(Protocol::Grpc);
    let hanging = client.one(crate::probe::ending("hang"));
    assert!(tokio::time::timeout(TIMEOUT * 4, hanging).await.is_err());
    // It was given up here, not there.
    eventually("the handler is dropped", || {
        served.seen.dropped.load(Ordering::SeqCst)
    })
    .await;
}

/// An endless answer of large messages.
fn endless() -> ProbeRequest {
    ProbeRequest {
        pad_bytes: 100_000,
        ..say("")
    }
}

#[tokio::test]
async fn an_answer_on_http1_that_nobody_reads_ends() {
    let served = serve_with(impatient).await;
    let mut connection = Http1::connect(&served.url).await;
    let message = r#"{"padBytes":100000}"#;
    let body = peer::envelope(0, message.as_bytes());
    let head = format!(
        "POST /probe.v1.ProbeService/Down HTTP/1.1\r\nhost: a\r\n\
         content-type: application/connect+json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    connection.write([head.as_bytes(), &body].concat()).await;
    eventually("the handler is dropped", || {
        served.seen.dropped.load(Ordering::SeqCst)
    })
    .await;
}

#[tokio::test]
async fn an_answer_on_http2_that_nobody_reads_ends_and_its_connection_lives() {
    let served = serve_with(|builder| impatient(builder).enable_compression(false)).await;
    for protocol in PROTOCOLS {
        served.seen.dropped.store(false, Ordering::SeqCst);
        let client = served.client(protocol);
        let mut answers = client.down(endless()).await.unwrap().into_inner();
        assert!(answers.message().await.unwrap().is_some());
        eventually("the handler is dropped", || {
            served.seen.dropped.load(Ordering::SeqCst)
        })
        .await;
        let ended = soon(async { while let Some(Ok(_)) = answers.next().await {} });
        ended.await;
        let answer = client.one(say("on")).await;
        assert!(answer.is_ok(), "{protocol:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_large_answer_is_taken_in_pieces() {
    let served = serve_with(|builder| impatient(builder).enable_compression(false)).await;
    for protocol in PROTOCOLS {
        let request = ProbeRequest {
            pad_bytes: 3_000_001,
            ..say("x")
        };
        let answer = served.client(protocol).one(request).await.unwrap();
        assert_eq!(answer.message().pad.len(), 3_000_001, "{protocol:?}");
    }
}
