//! What connections are asked to bear.

use std::sync::Arc;
use std::time::Duration;

use buffa::Message as _;
use futures_util::future::join_all;
use quill::Code;

use crate::peer::{envelope, head, http2, send, soon};
use crate::probe::{PROTOCOLS, ProbeRequest, Served, say, serve, serve_with};

/// Ten streams of three messages at once; each ends well or is told why not.
async fn ten_streams(served: &Served) {
    for protocol in PROTOCOLS {
        let client = Arc::new(served.client(protocol));
        let calls = (0..10).map(|_| {
            let client = Arc::clone(&client);
            async move {
                let request = ProbeRequest {
                    count: 3,
                    ..say("x")
                };
                let mut answers = client.down(request).await?.into_inner();
                let mut count = 0;
                while answers.message().await?.is_some() {
                    count += 1;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Ok::<_, quill::Error>(count)
            }
        });
        for result in soon(join_all(calls)).await {
            match result {
                Ok(count) => assert_eq!(count, 3, "{protocol:?}"),
                Err(error) => assert_eq!(error.code(), Code::ResourceExhausted, "{error}"),
            }
        }
    }
}

#[tokio::test]
async fn a_limit_of_one_call_is_no_deadlock_for_ten_streams() {
    let limit = tower::limit::ConcurrencyLimitLayer::new(1);
    ten_streams(&serve_with(|builder| builder.layer(limit)).await).await;
}

#[tokio::test]
async fn a_limit_of_one_stream_is_no_deadlock_for_ten() {
    let mut options = quill_transport::ServerOptions::default();
    options.http2_streams_max = 1;
    ten_streams(&serve_with(|builder| builder.transport(options)).await).await;
}

#[tokio::test]
async fn answers_on_http2_have_no_field_that_it_forbids() {
    let served = serve().await;
    let channel = http2(&served.url);
    let request = ProbeRequest {
        count: 2,
        ..say("x")
    };
    let framed = envelope(0, &request.encode_to_vec());
    for (method, content_type) in [
        ("One", "application/grpc"),
        ("Down", "application/grpc"),
        ("Down", "application/grpc-web"),
        ("Down", "application/connect+proto"),
    ] {
        let path = format!("/probe.v1.ProbeService/{method}");
        let head = head(&path, &[("content-type", content_type)]);
        let answer = send(&channel, head, framed.clone()).await;
        assert_eq!(answer.status, 200, "{content_type}: {answer:?}");
        for name in [
            "connection",
            "keep-alive",
            "proxy-connection",
            "transfer-encoding",
            "upgrade",
        ] {
            assert_eq!(answer.header(name), None, "{content_type}");
        }
    }
}
