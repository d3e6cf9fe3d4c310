//! Answers that failed by their status, and whose bodies do not end. The clock
//! runs ahead as soon as everybody waits.

use std::time::Duration;

use quill::{Code, Error, Protocol, QuillClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::probe::{PROTOCOLS, ProbeClient, say};

/// What a call makes of an answer whose body stays out; and how long it took.
async fn answered(protocol: Protocol, content_type: &str, begun: &str) -> (Error, Duration) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: {content_type}\r\ncontent-length: 1000000\r\n\r\n{begun}"
    );
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let _ = socket.read(&mut [0; 4096]).await.unwrap();
        socket.write_all(answer.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    });
    let builder = QuillClient::builder().base_url(url).protocol(protocol);
    let client = ProbeClient::new(builder.http1().build().unwrap());
    let begun = Instant::now();
    let error = client.one(say("x")).await.unwrap_err();
    server.abort();
    (error, begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_status_is_enough_where_the_body_never_ends() {
    for protocol in PROTOCOLS {
        if protocol == Protocol::Grpc {
            continue;
        }
        for content_type in [
            "text/html",
            "application/json",
            "application/problem+json",
            "application/grpc-web+proto",
        ] {
            let begun = if content_type.ends_with("json") {
                "{\"code\":"
            } else {
                ""
            };
            let (error, took) = answered(protocol, content_type, begun).await;
            let way = format!("{protocol:?}, {content_type}: {error}, after {took:?}");
            assert_eq!(error.code(), Code::Unavailable, "{way}");
            assert!(took < Duration::from_secs(6), "{way}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_document_is_not_waited_for() {
    let (error, took) = answered(Protocol::Quill, "text/html", "<html>").await;
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    assert!(took < Duration::from_secs(1), "{took:?}");
}
