//! A deadline on its way through several servers.

use std::time::Duration;

use quill::{BuffaCodec, Idempotency, Incoming, Method, MethodKind, Reply, Request, Server};
use quill_core::Encodable;

use crate::probe::{PROTOCOLS, ProbeClient, say, serve};

const WHOLE: Duration = Duration::from_secs(8);
const SPENT: Duration = Duration::from_millis(200);

#[tokio::test]
async fn what_is_left_of_a_deadline_goes_with_the_calls_a_handler_makes() {
    for protocol in PROTOCOLS {
        let last = serve().await;
        let onward = last.client(protocol);
        let method = Method::new("/probe.v1.ProbeService/One", MethodKind::Unary)
            .with_idempotency(Idempotency::NoSideEffects);
        // The server in the middle says nothing of deadlines.
        let relay = move |_: Request<Incoming>| {
            let onward = onward.clone();
            async move {
                tokio::time::sleep(SPENT).await;
                let response = onward.one(say("x")).await?;
                let codec = BuffaCodec;
                Ok(response.map(|message| Reply::One(Box::new(Encodable { message, codec }))))
            }
        };
        let middle = Server::builder()
            .route(method, relay)
            .bind("127.0.0.1:0")
            .await
            .expect("it binds")
            .start();
        let address = middle.local_addr().expect("a TCP socket");
        let first = quill::QuillClient::builder()
            .base_url(format!("http://{address}"))
            .protocol(protocol)
            .build()
            .expect("a client");
        let request = Request::new(say("x")).with_timeout(WHOLE);
        let answer = ProbeClient::new(first)
            .one(request)
            .await
            .expect("an answer");
        let left = Duration::from_millis(answer.message().number.into());
        assert!(left > Duration::ZERO, "{protocol:?}: no deadline came");
        assert!(left <= WHOLE - SPENT, "{protocol:?}: {left:?}");
    }
}
