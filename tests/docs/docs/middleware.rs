//! What the pages on authentication, rate limits and metrics show. Compiled, and
//! run where it needs nothing but this process.

#![allow(
    dead_code,
    unused_variables,
    clippy::print_stdout,
    reason = "each function is a page's block and its surroundings"
)]

use quill::auth::{
    ApiKeyValidator, AuthLayer, BasicValidator, CertificateValidator, Identity, JwtValidator,
    TokenValidator,
};
use quill::auth::{Authenticator, Verdict};
use quill::metrics::{MetricsCollector, MetricsPage};
use quill::rate_limit::{ClientIpConfig, IpNet, RateLimitLayer, RateLimiter, RedisBackend};
use quill::{Error, Listener, Peer, Request, RequestParts, Server};
use quill_examples::Greeter;
use quill_examples::greet::{GreetRequest, GreetServer};

type Failure = Box<dyn std::error::Error>;

async fn metrics() -> Result<(), Failure> {
    let metrics = MetricsCollector::new();
    let server = Server::builder()
        .service(GreetServer::new(Greeter))
        .metrics(&metrics)
        .metrics_page(MetricsPage::on(Listener::bind("127.0.0.1:9090").await?))
        .bind("127.0.0.1:8080")
        .await?
        .start();
    Ok(())
}

fn by_hand(metrics: &MetricsCollector) {
    metrics.record_request();
    metrics.record_bytes(1024, 0);
    metrics.record_success();
    let snapshot = metrics.snapshot();
    println!("{} of {} failed", snapshot.failures, snapshot.requests);
}

fn page() -> MetricsPage {
    MetricsPage::here().at("/internal/metrics")
}

fn global_limit() -> impl Sized {
    // Use per-user rate limiting only when needed
    // Global rate limiting is faster
    let rate_limiter = RateLimitLayer::new(1000.0, 5000.0);
    Server::builder().layer(rate_limiter)
}

fn limits(metrics: &MetricsCollector) -> Result<impl Sized, Failure> {
    let proxies = ClientIpConfig {
        trusted_proxies: vec![IpNet::parse("10.0.0.0/8")?],
        ..ClientIpConfig::default()
    };
    Ok(Server::builder()
        .service(GreetServer::new(Greeter))
        .layer(RateLimitLayer::new(1000.0, 5000.0).metrics(metrics))
        .layer(
            RateLimitLayer::new(50.0, 100.0)
                .named("clients")
                .per_client(proxies)
                .method("/greet.v1.GreetService/Greet", 5.0, 10.0)
                .metrics(metrics),
        ))
}

fn tenants() -> RateLimitLayer {
    RateLimitLayer::new(100.0, 200.0)
        .named("tenants")
        .per_key(|request| request.metadata.get("x-tenant").map(str::to_owned))
        .cost(|request| {
            if request.metadata.get("x-report").is_some() {
                20
            } else {
                1
            }
        })
}

fn shared() -> Result<RateLimitLayer, Failure> {
    let redis = RedisBackend::single("redis://10.0.0.7").build()?;
    Ok(RateLimitLayer::new(50.0, 100.0)
        .named("clients")
        .per_client(ClientIpConfig::default())
        .with_backend(redis))
}

#[test]
fn a_limiter_is_for_use_by_hand() {
    let limiter = RateLimiter::new(100.0, 10.0);
    if limiter.try_acquire_n(3) {
        assert!(limiter.available() >= 7);
    }
}

fn keys() -> impl Sized {
    let keys = ApiKeyValidator::new().key(
        "4f2c9a61b0d8e7f3",
        Identity::new("billing").with_scopes(["orders.read"]),
    );
    Server::builder()
        .service(GreetServer::new(Greeter))
        .layer(AuthLayer::new(keys))
}

fn rules(keys: ApiKeyValidator) -> AuthLayer {
    AuthLayer::new(keys)
        .public("/grpc.health.v1.Health/*")
        .scopes("/orders.v1.Orders/*", ["orders.read"])
        .scopes("/orders.v1.Orders/Cancel", ["orders.read", "orders.write"])
}

fn whose(request: &Request<GreetRequest>) -> Result<String, Error> {
    let identity = request.extensions().get::<Identity>();
    let identity = identity.ok_or_else(|| Error::unauthenticated("who are you?"))?;
    Ok(format!("Hello, {}!", identity.subject()))
}

fn tokens() -> Result<AuthLayer, Failure> {
    let tokens = JwtValidator::builder()
        .issuer("https://issuer.example")
        .audience("orders")
        .jwks_url("https://issuer.example/keys.json")
        .build()?;
    Ok(AuthLayer::new(tokens))
}

async fn introspect(token: String) -> Result<Option<Identity>, Error> {
    Ok((token == "opaque").then(|| Identity::new("ann")))
}

fn several(keys: ApiKeyValidator) -> AuthLayer {
    AuthLayer::new(keys)
        .or(BasicValidator::new("orders").user("robot", "8Wq2…", Identity::new("robot")))
        .or(TokenValidator::new(introspect))
        .or(CertificateValidator::any())
        .optional()
}

/// Callers of one machine are trusted.
struct Local;

impl Authenticator for Local {
    fn authenticate(&self, request: &RequestParts) -> Verdict {
        let address = request.peer.as_ref().and_then(Peer::address);
        match address {
            Some(address) if address.ip().is_loopback() => {
                Verdict::Known(Identity::new("this machine"))
            }
            _ => Verdict::NoCredentials,
        }
    }
}
