//! Instructions that a unary call takes its server, each with a limit: a gRPC call of 100
//! bytes each way, of which 16 come at once.
//!
//! `cargo bench -p quill-server --bench iai_unary`

#[path = "../tests/support/caller.rs"]
mod caller;

use std::process::ExitCode;

use caller::{Calls, Echo, Measured, TOGETHER};
use callgrind_gate::{Case, counted, gate};
use quill_core::trace::{Flush, Span, SpanSink, Tracer};
use quill_server::auth::{ApiKeyValidator, AuthLayer, Identity};
use quill_server::log::RequestLogger;
use quill_server::metrics::MetricsCollector;
use quill_server::rate_limit::{ClientIpConfig, RateLimitLayer};
use quill_server::{Server, ServerBuilder};

const KEY: &str = "0123456789abcdef0123456789abcdef";
const BEARER: &str = "Bearer 0123456789abcdef0123456789abcdef";

/// Calls of the shorter run.
const N: u64 = 100 * TOGETHER as u64;

const CASES: &[Case] = &[
    Case {
        name: "unary_100b",
        limit: 7_700,
        run: unary,
    },
    Case {
        name: "unary_100b_traced",
        limit: 9_000,
        run: unary_traced,
    },
    Case {
        name: "unary_100b_recorded",
        limit: 10_400,
        run: unary_recorded,
    },
    Case {
        name: "unary_100b_logged",
        limit: 22_700,
        run: unary_logged,
    },
    Case {
        name: "unary_100b_full",
        limit: 12_400,
        run: unary_full,
    },
];

fn main() -> ExitCode {
    gate("iai_unary", N, CASES)
}

/// `n` calls, counted.
fn call(mut measured: Measured, n: u64) {
    let times = u32::try_from(n / u64::from(TOGETHER)).expect("few calls");
    counted(|| measured.run(times));
}

fn unary(n: u64) {
    let server = async || {
        let server = Server::builder().service(Echo).bind("127.0.0.1:0").await;
        server.expect("a server")
    };
    call(Measured::start(server, Calls::UNARY), n);
}

/// Drops spans.
struct Nowhere;

impl SpanSink for Nowhere {
    fn take(&self, _: Span) {}

    fn flush(&self) -> Flush {
        Box::pin(std::future::ready(()))
    }
}

fn observed(n: u64, settings: fn(ServerBuilder) -> ServerBuilder) {
    let server = async move || {
        let builder = settings(Server::builder().service(Echo));
        builder.bind("127.0.0.1:0").await.expect("a server")
    };
    call(Measured::start(server, Calls::UNARY), n);
}

/// Whose place in a trace is noted, and nothing else.
fn unary_traced(n: u64) {
    observed(n, |builder| builder.tracer(Tracer::unrecorded()));
}

/// Of which a span is made.
fn unary_recorded(n: u64) {
    observed(n, |builder| builder.tracer(Tracer::new(Nowhere)));
}

/// With a line of JSON. What its thread does is counted too.
fn unary_logged(n: u64) {
    observed(n, |builder| {
        builder.request_logger(RequestLogger::json().to(std::io::sink()))
    });
}

/// With the fields of a call in earnest, whose key is looked up, limited and counted.
fn unary_full(n: u64) {
    let server = async || {
        let keys = ApiKeyValidator::new().as_bearer();
        let keys = keys.key(KEY, Identity::new("tenant"));
        let server = Server::builder()
            .service(Echo)
            .metrics(&MetricsCollector::new())
            .layer(AuthLayer::new(keys))
            .layer(RateLimitLayer::new(1e9, 1e9).per_identity(ClientIpConfig::default()))
            .bind("127.0.0.1:0")
            .await;
        server.expect("a server")
    };
    let fields = &[
        ("grpc-timeout", "10S"),
        ("authorization", BEARER),
        (
            "traceparent",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
    ];
    call(Measured::start(server, Calls::UNARY.with(fields)), n);
}
