//! Tower layers on both levels: around calls, where a refusal is an [`Error`]
//! that each caller gets in its own protocol, and around HTTP requests.

use std::time::Duration;

use http::HeaderValue;
use quill::{Code, Error, Incoming, Protocol, QuillClient, Request, Server};
use quill_examples::Greeter;
use quill_examples::greet::{GreetClient, GreetRequest, GreetServer};
use tower::filter::FilterLayer;
use tower::limit::ConcurrencyLimitLayer;
use tower::timeout::TimeoutLayer;
use tower::util::MapResponseLayer;

/// Lets calls pass that show the token.
fn authenticate(request: Request<Incoming>) -> Result<Request<Incoming>, Error> {
    match request.metadata().get("authorization") {
        Some("Bearer let-me-in") => Ok(request),
        _ => Err(Error::unauthenticated("show a token")),
    }
}

/// Adds a header to every HTTP response.
fn brand<B>(mut response: http::Response<B>) -> http::Response<B> {
    let value = HeaderValue::from_static("greeter");
    response.headers_mut().insert("x-served-by", value);
    response
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder()
        .service(GreetServer::new(Greeter))
        // Around calls; the first is the outermost.
        .layer(ConcurrencyLimitLayer::new(1000))
        .layer(TimeoutLayer::new(Duration::from_secs(5)))
        .layer(FilterLayer::new(authenticate))
        // Around HTTP.
        .http_layer(MapResponseLayer::new(brand))
        .bind("127.0.0.1:0")
        .await?
        .start();
    let address = server.local_addr().ok_or("no TCP socket")?;

    for protocol in Protocol::ALL {
        let client = QuillClient::builder()
            .base_url(format!("http://{address}"))
            .protocol(protocol)
            .build()?;
        let client = GreetClient::new(client);
        let ada = || GreetRequest {
            name: "Ada".into(),
            ..Default::default()
        };

        let refused = client.greet(ada()).await.err().ok_or("no token needed?")?;
        println!("{}: {refused}", protocol.name());
        assert_eq!(refused.code(), Code::Unauthenticated);

        let request = Request::new(ada()).with_metadata("authorization", "Bearer let-me-in")?;
        let reply = client.greet(request).await?;
        println!("{}: {}", protocol.name(), reply.message().greeting);
        assert_eq!(reply.metadata().get("x-served-by"), Some("greeter"));
    }

    server.shutdown().await;
    Ok(())
}
