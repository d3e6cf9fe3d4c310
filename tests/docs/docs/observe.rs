//! What the pages on tracing and access logs show. Compiled, and run where it needs
//! nothing but this process.

#![allow(
    dead_code,
    clippy::print_stderr,
    reason = "each function is a page's block and its surroundings"
)]

use std::io::Write;
use std::time::Duration;

use quill::log::RequestLogger;
use quill::metrics::MetricsCollector;
use quill::trace::{Sampling, SpanId, TraceContext, TraceId, Tracer};
use quill::{CallContext, Error, Otlp, QuillClient, Request, Server, shutdown_signal};
use quill_examples::Greeter;
use quill_examples::greet::{GreetClient, GreetRequest, GreetServer};

type Failure = Box<dyn std::error::Error>;

async fn traced() -> Result<(), Failure> {
    let metrics = MetricsCollector::new();
    let otlp = Otlp::builder("greeter")
        .endpoint("http://localhost:4317")
        .sampling(Sampling::ratio(0.1))
        .metrics(&metrics)
        .start()?;
    let client = QuillClient::builder()
        .base_url("http://orders:8080")
        .tracer(&otlp)
        .build()?;
    Server::builder()
        .service(GreetServer::new(Greeter))
        .tracer(&otlp)
        .metrics(&metrics)
        .bind("127.0.0.1:8080")
        .await?
        .serve_until(shutdown_signal())
        .await?;
    drop(client);
    Ok(())
}

fn tuned(client: QuillClient) -> Result<Otlp, Failure> {
    let otlp = Otlp::builder("greeter")
        .client(client)
        .attribute("deployment.environment.name", "production")
        .spans_max(4096)
        .spans_every(Duration::from_secs(1))
        .metrics_every(Duration::from_secs(15))
        .start()?;
    Ok(otlp)
}

fn unrecorded() -> impl Sized {
    Server::builder().tracer(Tracer::unrecorded())
}

fn strangers(otlp: &Otlp) -> impl Sized {
    let sampling = Sampling::ratio(0.01).ignoring_callers();
    Server::builder().tracer(otlp.tracer().sampling(sampling))
}

async fn spawned(client: GreetClient) {
    let context = CallContext::current();
    tokio::spawn(context.scope(async move {
        // Of the same trace as the call being handled.
        let _ = client.greet(GreetRequest::default()).await;
    }));
}

async fn bridged(client: GreetClient, trace_id: TraceId, span_id: SpanId) -> Result<(), Error> {
    let mut context = CallContext::current();
    context.trace = Some(TraceContext::new(trace_id, span_id, true).into());
    context.scope(client.greet(GreetRequest::default())).await?;
    Ok(())
}

async fn told(client: GreetClient, request: Request<GreetRequest>) {
    if let Err(error) = client.greet(request).await {
        eprintln!("{error}, trace {}", error.request_id().unwrap_or("unknown"));
    }
}

fn logged() -> impl Sized {
    Server::builder()
        .service(GreetServer::new(Greeter))
        .request_logger(RequestLogger::json())
}

fn chosen(file: impl Write + Send + 'static) -> RequestLogger {
    RequestLogger::text()
        .to(file)
        .sample(0.01)
        .metadata(["user-agent", "x-tenant"])
        .redact(["x-tenant"])
        .queue_bytes_max(256 * 1024)
}

fn not_in_production() -> quill::ServerBuilder {
    // Disable logging in production if not needed
    let logger = RequestLogger::disabled();
    Server::builder().request_logger(logger)
}

#[tokio::test]
async fn the_settings_make_a_server() {
    let bound = Server::builder()
        .tracer(Tracer::unrecorded())
        .request_logger(chosen(std::io::sink()))
        .bind("127.0.0.1:0")
        .await;
    bound.unwrap().start().shutdown().await;
}
