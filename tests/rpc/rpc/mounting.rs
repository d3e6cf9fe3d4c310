//! Beside axum, both ways round.

use axum::routing::get;
use quill::{Code, Protocol, QuillClient, Server};

use crate::probe::{PROTOCOLS, Probe, ProbeClient, ProbeServer, say, serve_with};

async fn http_get(url: &str, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let address = url.strip_prefix("http://").unwrap();
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn axum_routes_sit_beside_quill_on_its_port() {
    let pages = axum::Router::new().route("/about", get(|| async { "about this" }));
    let served = serve_with(|builder| builder.http_fallback(pages)).await;
    let answer = http_get(&served.url, "/about").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with("about this"), "{answer}");
    for protocol in PROTOCOLS {
        assert!(
            served.client(protocol).one(say("x")).await.is_ok(),
            "{protocol:?}"
        );
    }
}

#[tokio::test]
async fn quill_can_be_mounted_in_axum() {
    let quill = Server::builder()
        .service(ProbeServer::new(Probe::default()))
        .into_http_service()
        .unwrap();
    let router = axum::Router::new()
        .route("/about", get(|| async { "about this" }))
        .fallback_service(quill);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    assert!(http_get(&url, "/about").await.ends_with("about this"));
    for protocol in PROTOCOLS {
        let client = QuillClient::builder()
            .base_url(&url)
            .protocol(protocol)
            .build()
            .unwrap();
        let probe = ProbeClient::new(client.clone());
        assert_eq!(
            probe.one(say("x")).await.unwrap().message().text,
            "x",
            "{protocol:?}"
        );
        let error = client.call("no.Such", "Method", "").await.unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented, "{protocol:?}");
    }
    serving.abort();
}

#[tokio::test]
async fn a_client_of_a_bad_url_errs_at_the_call() {
    for url in ["not a url", "ftp://x", "http://", "http://user:pass@x"] {
        let error = QuillClient::new(url)
            .call("a.B", "C", "")
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{url}: {error}");
        assert!(
            QuillClient::builder().base_url(url).build().is_err(),
            "{url}"
        );
    }
    let error = QuillClient::new("http://127.0.0.1:1")
        .call("a.B", "C", "")
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
    let _ = Protocol::Quill;
}
