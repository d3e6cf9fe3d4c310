//! The client code of the page on performance, run against a service that
//! answers to the names in it.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use quill::{
    Error, Method, MethodKind, QuillClient, RawCodec, Response, Routes, RunningServer, Server,
    Service,
};

type Failure = Box<dyn std::error::Error>;

/// `service`: repeats bytes, and counts those of a batch.
struct Untyped;

impl Service for Untyped {
    fn name(&self) -> &str {
        "service"
    }

    fn routes(self, routes: &mut Routes) {
        for name in ["Process", "Method1", "Method2"] {
            let method = Method::named("service", name, MethodKind::Unary);
            routes.unary(&method, RawCodec, RawCodec, |request| async move {
                Ok(Response::new(request.into_inner()))
            });
        }
        let batch = Method::named("service", "ProcessBatch", MethodKind::ClientStreaming);
        routes.client_streaming(&batch, RawCodec, RawCodec, |request| async move {
            let mut items = request.into_inner();
            let mut count = 0;
            while items.message().await?.is_some() {
                count += 1;
            }
            Ok(Response::new(Bytes::from(count.to_string())))
        });
    }
}

async fn serve() -> RunningServer {
    let bound = Server::builder().service(Untyped).bind("127.0.0.1:0").await;
    bound.expect("it binds").start()
}

fn url(server: &RunningServer) -> String {
    format!("http://{}", server.local_addr().expect("a TCP socket"))
}

#[tokio::test]
async fn a_client_is_shared() -> Result<(), Failure> {
    let server = serve().await;
    repeat(Arc::new(QuillClient::new(url(&server)))).await?;
    Ok(())
}

async fn repeat(client: Arc<QuillClient>) -> Result<(), Error> {
    for _ in 0..1000 {
        client.call("service", "Process", "item").await?;
    }
    Ok(())
}

#[allow(
    dead_code,
    reason = "its URL is a user's; the test above runs the same calls"
)]
async fn shared_at_the_default_url() -> Result<(), Error> {
    // Bad: a new client, and a new connection, for each call
    for _ in 0..1000 {
        let client = QuillClient::new("http://localhost:8080");
        client.call("service", "Process", "item").await?;
    }

    // Good: one for all
    let client = Arc::new(QuillClient::new("http://localhost:8080"));
    for _ in 0..1000 {
        client.call("service", "Process", "item").await?;
    }
    Ok(())
}

#[tokio::test]
async fn items_go_in_one_stream() -> Result<(), Failure> {
    let server = serve().await;
    let client = Arc::new(QuillClient::new(url(&server)));
    let items = vec!["a", "b", "c"];
    assert_eq!(batch(&client, items).await?, "3");
    Ok(())
}

async fn batch(client: &QuillClient, items: Vec<&'static str>) -> Result<Bytes, Error> {
    // Bad: a call for each
    for item in &items {
        client.call("service", "Process", *item).await?;
    }

    // Good: a stream of all
    let processed = client
        .call_client_stream("service", "ProcessBatch", stream::iter(items))
        .await?;
    Ok(processed)
}

#[tokio::test]
#[expect(unused_variables, reason = "what the guide advises against")]
async fn independent_calls_run_at_once() -> Result<(), Failure> {
    let server = serve().await;
    let client = QuillClient::new(url(&server));
    let (req1, req2) = ("1", "2");
    // Bad: one waits for the other
    let r1 = client.call("service", "Method1", req1).await?;
    let r2 = client.call("service", "Method2", req2).await?;

    // Good: both are under way
    let (r1, r2) = tokio::join!(
        client.call("service", "Method1", req1),
        client.call("service", "Method2", req2)
    );
    assert_eq!((r1?, r2?), (Bytes::from("1"), Bytes::from("2")));
    Ok(())
}

#[test]
fn compression_is_a_setting() -> Result<(), Failure> {
    threshold(2048)?;
    levels()?;
    let beyond = QuillClient::builder().compression_level(23).build();
    assert!(beyond.is_err(), "levels are 1 to 22");
    Ok(())
}

fn threshold(payload_size: usize) -> Result<QuillClient, Failure> {
    // Only compress if payload > threshold
    let threshold = 1024; // 1 KB
    let client = QuillClient::builder()
        .base_url("http://localhost:8080")
        .enable_compression(payload_size > threshold)
        .build()?;
    Ok(client)
}

#[allow(
    unused_variables,
    reason = "the page's block shows three clients one after the other"
)]
fn levels() -> Result<(), Failure> {
    // Level 1: fastest, lower compression ratio
    let client = QuillClient::builder()
        .compression_level(1)
        .enable_compression(true)
        .build()?;

    // Level 3: the default, a good balance
    let client = QuillClient::builder()
        .compression_level(3)
        .enable_compression(true)
        .build()?;

    // Level 9: slower, better compression
    let client = QuillClient::builder()
        .compression_level(9)
        .enable_compression(true)
        .build()?;
    Ok(())
}
