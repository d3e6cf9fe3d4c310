//! Quill and axum on one port, both ways round: Quill's services in an axum
//! router, and axum's routes behind a Quill server.

use axum::Router;
use axum::routing::get;
use quill::Server;
use quill_examples::Greeter;
use quill_examples::greet::{GreetClient, GreetRequest, GreetServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    quill_in_axum().await?;
    axum_in_quill().await
}

/// For a router that is there already.
async fn quill_in_axum() -> Result<(), Failure> {
    let quill = Server::builder()
        .service(GreetServer::new(Greeter))
        .into_http_service()?;
    let router = pages().fallback_service(quill);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });

    answers_both(&address).await?;
    println!("Quill in axum: both answered on {address}");
    serving.abort();
    Ok(())
}

/// For Quill's own server, with its limits, TLS and graceful drain.
async fn axum_in_quill() -> Result<(), Failure> {
    let server = Server::builder()
        .service(GreetServer::new(Greeter))
        .http_fallback(pages())
        .bind("127.0.0.1:0")
        .await?
        .start();
    let address = server.local_addr().ok_or("no TCP socket")?.to_string();

    answers_both(&address).await?;
    println!("axum in Quill: both answered on {address}");
    server.shutdown().await;
    Ok(())
}

fn pages() -> Router {
    Router::new().route("/about", get(|| async { "a page" }))
}

async fn answers_both(address: &str) -> Result<(), Failure> {
    let client = GreetClient::connect(format!("http://{address}")).await?;
    let request = GreetRequest {
        name: "Ada".into(),
        ..Default::default()
    };
    let reply = client.greet(request).await?;
    assert_eq!(reply.message().greeting, "Hello, Ada!");

    // What a browser would ask for.
    let mut socket = TcpStream::connect(address).await?;
    let request = format!("GET /about HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await?;
    let mut page = String::new();
    socket.read_to_string(&mut page).await?;
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    assert!(page.ends_with("a page"), "{page}");
    Ok(())
}
