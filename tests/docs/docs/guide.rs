//! What the guide shows and no example has in the same words. Compiled, not
//! run: the code is about addresses and files of a user's.

#![allow(
    dead_code,
    unused_variables,
    reason = "each function is a page's block and its surroundings"
)]

use std::time::Duration;

use quill::tls::{ClientTls, ServerTls};
use quill::{
    Cors, Error, Protocol, QuillClient, Request, Response, RunningServer, ServeError, Server,
    ServerOptions,
};
use quill_examples::Greeter;
use quill_examples::greet::{
    FILE_DESCRIPTOR_SET, GreetClient, GreetRequest, GreetResponse, GreetServer,
};
use quill_health::Status;

type Failure = Box<dyn std::error::Error>;

async fn several_services() -> Result<RunningServer, ServeError> {
    let (health, reporter) = quill_health::reporter();
    let server = Server::builder()
        .service(GreetServer::new(Greeter))
        .service(health)
        .service(quill_reflection::server(FILE_DESCRIPTOR_SET))
        .bind("127.0.0.1:8080")
        .await?
        .start();
    reporter.set("greet.v1.GreetService", Status::Serving);
    Ok(server)
}

mod common {
    pub(crate) use quill_examples::greet as v1;
}

fn types_of_messages_alone() {
    quill::types::register_types(common::v1::register_types);
}

fn build_script() {
    quill_codegen::Builder::new()
        .compile_descriptor_set("api.binpb")
        .unwrap_or_else(|error| error.exit());
}

fn metadata(request: &Request<GreetRequest>) -> Result<Response<GreetResponse>, Error> {
    let tenant = request.metadata().get("x-tenant").unwrap_or("none");
    let reply = GreetResponse {
        greeting: format!("Hello, tenant {tenant}!"),
        ..Default::default()
    };
    Ok(Response::new(reply)
        .with_metadata("x-region", "north")?
        .with_trailer("x-cost", "1")?)
}

async fn timeout(client: GreetClient, request: GreetRequest) -> Result<(), Error> {
    let request = Request::new(request).with_timeout(Duration::from_millis(500));
    let reply = client.greet(request).await?;
    Ok(())
}

fn spawned(mut request: Request<GreetRequest>) {
    let call_over = request.cancellation();
    tokio::spawn(async move {
        tokio::select! {
            () = call_over.cancelled() => {}
            () = warm_the_cache() => {}
        }
    });
}

async fn warm_the_cache() {}

fn credits() -> Result<QuillClient, Failure> {
    let client = QuillClient::builder()
        .base_url("http://127.0.0.1:8080")
        .credits(32)
        .build()?;
    Ok(client)
}

fn server_tls() -> Result<ServerTls, Failure> {
    let tls = ServerTls::builder()
        .identity_files("server.pem", "server.key")
        .client_ca_file("clients.pem") // leave out, and callers need none
        .build()?;
    Ok(tls)
}

fn client_tls() -> Result<QuillClient, Failure> {
    let tls = ClientTls::builder()
        .ca_file("ca.pem")
        .without_public_authorities()
        .identity_files("client.pem", "client.key")
        .build()?;
    let client = QuillClient::builder()
        .base_url("https://greeter.example")
        .tls(tls)
        .build()?;
    Ok(client)
}

fn client() -> Result<GreetClient, Failure> {
    let client = QuillClient::builder()
        .base_url("http://127.0.0.1:8080")
        .protocol(Protocol::Grpc)
        .timeout(Duration::from_secs(5))
        .build()?;
    let greeter = GreetClient::new(client.clone());
    Ok(greeter)
}

async fn untyped(client: QuillClient, request: Vec<u8>) -> Result<(), Error> {
    let reply = client
        .call("greet.v1.GreetService", "Greet", request)
        .await?;
    Ok(())
}

fn options() {
    let mut options = ServerOptions::default();
    options.connections_max = 100;
    let builder = Server::builder().transport(options);
}

async fn browsers() -> Result<(), ServeError> {
    let cors = Cors::origins(["https://app.example", "http://localhost:3000"])
        .request_metadata(["x-tenant"])
        .response_metadata(["x-region", "x-cost"]);
    let server = Server::builder()
        .cors(cors)
        .service(GreetServer::new(Greeter))
        .bind("127.0.0.1:8080")
        .await?;
    Ok(())
}

async fn shutdown() -> Result<(), ServeError> {
    Server::builder()
        .service(GreetServer::new(Greeter))
        .drain_limit(Duration::from_secs(30))
        .bind("127.0.0.1:8080")
        .await?
        .serve_until(quill::shutdown_signal())
        .await
}
