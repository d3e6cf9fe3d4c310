//! What goes on from one server's error to another server's caller.

use quill::{Code, Incoming, Method, MethodKind, Protocol, QuillClient, Request, Server};

use crate::peer::Script;
use crate::probe::{PROTOCOLS, rich_error, serve};

/// A server whose one method asks `upstream` and passes its failure on.
async fn in_front_of(upstream: QuillClient) -> quill::RunningServer {
    let method = Method::new("/front.v1.Front/Ask", MethodKind::Unary);
    let ask = move |_: Request<Incoming>| {
        let upstream = upstream.clone();
        async move {
            let error = upstream
                .call("probe.v1.ProbeService", "One", "\x12\x05error")
                .await;
            Err(error.expect_err("it fails"))
        }
    };
    let bound = Server::builder().route(method, ask).bind("127.0.0.1:0");
    bound.await.unwrap().start()
}

async fn asked(front: &quill::RunningServer, protocol: Protocol) -> quill::Error {
    let url = format!("http://{}", front.local_addr().unwrap());
    let client = QuillClient::builder().base_url(url).protocol(protocol);
    let client = client.build().unwrap();
    client.call("front.v1.Front", "Ask", "").await.unwrap_err()
}

#[tokio::test]
async fn the_headers_of_a_server_that_was_asked_stay_with_the_handler() {
    let script = Script {
        status: 503,
        ..Script::default()
    };
    let upstream = script
        .field("content-type", "text/html")
        .field("set-cookie", "session=secret")
        .field("server", "inner/1.0")
        .field("x-internal", "1")
        .serve()
        .await;
    for protocol in PROTOCOLS {
        let client = QuillClient::builder().base_url(&upstream.url);
        let client = client.protocol(protocol).build().unwrap();
        let direct = client.call("probe.v1.ProbeService", "One", "").await;
        let direct = direct.unwrap_err();
        let received = direct.received_metadata();
        assert_eq!(received.get("x-internal"), Some("1"), "{protocol:?}");
        assert!(direct.metadata().is_empty(), "{protocol:?}: {direct:?}");

        let front = in_front_of(client).await;
        let error = asked(&front, protocol).await;
        assert_eq!(error.code(), Code::Unavailable, "{protocol:?}: {error}");
        for name in ["set-cookie", "server", "x-internal"] {
            let leaked = error.received_metadata().get(name);
            assert_eq!(leaked, None, "{protocol:?}: {name}");
        }
    }
}

#[tokio::test]
async fn code_message_and_details_are_passed_on() {
    let served = serve().await;
    for protocol in PROTOCOLS {
        let front = in_front_of(served.builder(protocol).build().unwrap()).await;
        let error = asked(&front, protocol).await;
        let sent = rich_error();
        assert_eq!(error.code(), sent.code(), "{protocol:?}: {error}");
        assert_eq!(error.message(), sent.message(), "{protocol:?}");
        assert_eq!(error.details(), sent.details(), "{protocol:?}");
        assert_eq!(error.received_metadata().get("x-why"), None, "{protocol:?}");
    }
}
