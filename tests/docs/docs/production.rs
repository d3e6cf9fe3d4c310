//! What the pages on overload, compression and shutdown show. Compiled, not run.

#![allow(
    dead_code,
    reason = "each function is a page's block and its surroundings"
)]

use std::time::Duration;

use quill::concurrency::{AdaptiveLimit, ConcurrencyLimitLayer, Priority};
use quill::metrics::MetricsCollector;
use quill::{Error, Response, ServeError, Server};
use quill_examples::Greeter;
use quill_examples::greet::{GreetResponse, GreetServer};
use quill_health::{HealthReporter, Status};

fn fixed(metrics: &MetricsCollector) -> impl Sized {
    Server::builder()
        .service(GreetServer::new(Greeter))
        .layer(ConcurrencyLimitLayer::new(1000).metrics(metrics))
}

fn adaptive() -> ConcurrencyLimitLayer {
    ConcurrencyLimitLayer::adaptive(AdaptiveLimit {
        initial: 50,
        least: 10,
        most: 500,
        ..AdaptiveLimit::default()
    })
}

fn queued() -> ConcurrencyLimitLayer {
    ConcurrencyLimitLayer::new(1000)
        .queue(200, Duration::from_millis(100))
        .priority(|request| match request.metadata.get("x-batch") {
            Some(_) => Priority::Low,
            None => Priority::Normal,
        })
}

fn connections() -> impl Sized {
    Server::builder()
        .connections_max(20_000)
        .connections_per_ip_max(100)
        .max_connection_age(Duration::from_secs(30 * 60))
        .max_connection_age_grace(Duration::from_secs(60))
        .max_connection_idle(Duration::from_secs(5 * 60))
}

fn compression() -> impl Sized {
    Server::builder()
        .compress_bytes_min(4 * 1024)
        .compression_level(1)
}

fn secrets() -> impl Sized {
    Server::builder()
        .service(GreetServer::new(Greeter))
        .without_compression("/greet.v1.GreetService/Greet")
}

fn secret(reply: GreetResponse) -> Result<Response<GreetResponse>, Error> {
    Ok(Response::new(reply).without_compression())
}

/// Whatever a user's process has to flush.
struct Telemetry;

impl Telemetry {
    fn start() -> Self {
        Self
    }

    async fn flush(self) {}
}

async fn shutdown() -> Result<(), ServeError> {
    let telemetry = Telemetry::start();
    let (health, reporter) = quill_health::reporter();
    reporter.set("greet.v1.GreetService", Status::Serving);
    Server::builder()
        .service(GreetServer::new(Greeter))
        .service(health)
        .drain_delay(Duration::from_secs(10))
        .drain_limit(Duration::from_secs(30))
        .on_shutdown(async move { telemetry.flush().await })
        .bind("127.0.0.1:8080")
        .await?
        .serve_until(quill::shutdown_signal())
        .await
}

fn readiness(reporter: &HealthReporter, database_is_there: bool) {
    if database_is_there {
        reporter.set_all(Status::Serving);
    } else {
        reporter.set_all(Status::NotServing);
    }
}
