//! The tower layer, as a client sees it.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use throttle_kit::client_ip::{ClientIpConfig, IpNet, MissingClientPolicy};
use throttle_kit::tower::{
    LimitHeaders, OwnedKey, PeerAddr, RateLimitLayer, Refusal, RefusalReason, RequestKey,
};
use throttle_kit::{
    Decision, InMemoryBackend, KeyRef, KeyedRateLimiter, ManualClock, NoopBackend, Operation,
    Quota, RateLimitBackend,
};
use tower_layer::Layer;
use tower_service::Service;

/// Answers, but only if it was polled ready since the last call.
#[derive(Default)]
struct Strict {
    is_ready: bool,
    served: Arc<AtomicUsize>,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        // As tower says: a clone is not ready because its original is.
        Self {
            is_ready: false,
            served: Arc::clone(&self.served),
        }
    }
}

impl Service<Request<()>> for Strict {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        assert!(
            std::mem::take(&mut self.is_ready),
            "called without being polled ready"
        );
        self.served.fetch_add(1, Ordering::Relaxed);
        ready(Ok(Response::new("served".to_owned())))
    }
}

fn request(peer: &str, headers: &[(&str, &str)]) -> Request<()> {
    let mut request = Request::builder();
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(()).unwrap();
    let peer: SocketAddr = peer.parse().unwrap();
    request.extensions_mut().insert(PeerAddr(peer));
    request
}

fn to(path: &str) -> Request<()> {
    let mut request = request("192.0.2.1:1", &[]);
    *request.uri_mut() = path.parse().unwrap();
    request
}

async fn send<S>(service: &mut S, request: Request<()>) -> Response<String>
where
    S: Service<Request<()>, Response = Response<String>, Error = Infallible>,
{
    std::future::poll_fn(|cx| service.poll_ready(cx))
        .await
        .unwrap();
    service.call(request).await.unwrap()
}

fn backend(clock: &ManualClock) -> InMemoryBackend<ManualClock> {
    InMemoryBackend::with_clock(1000, clock.clone())
}

fn header<'a>(response: &'a Response<String>, name: &str) -> Option<&'a str> {
    response
        .headers()
        .get(name)
        .map(|value| value.to_str().unwrap())
}

/// A store that must be waited for.
#[derive(Clone)]
struct Far(InMemoryBackend<ManualClock>);

impl RateLimitBackend for Far {
    async fn apply(&self, key: KeyRef<'_>, quota: &Quota, n: u32, op: Operation) -> Decision {
        tokio::task::yield_now().await;
        self.0.apply(key, quota, n, op).await
    }
}

async fn tells_how_much_is_left(backend: impl RateLimitBackend, clock: ManualClock) {
    let layer = RateLimitLayer::new(Quota::per_minute(2), backend);
    let mut service = layer.layer(Strict::default());
    for left in ["1", "0"] {
        let response = send(&mut service, request("192.0.2.1:1", &[])).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.body(), "served");
        assert_eq!(header(&response, "x-ratelimit-limit"), Some("2"));
        assert_eq!(header(&response, "x-ratelimit-remaining"), Some(left));
        assert_eq!(header(&response, "retry-after"), None);
    }
    // A third at once: refused, told when, and then served. The port does not count.
    clock.advance(Duration::from_millis(500));
    let response = send(&mut service, request("192.0.2.1:2", &[])).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.body(), "");
    assert_eq!(header(&response, "x-ratelimit-remaining"), Some("0"));
    assert_eq!(header(&response, "x-ratelimit-reset"), Some("60"));
    assert_eq!(header(&response, "retry-after"), Some("30"));
    clock.advance(Duration::from_secs(30));
    let response = send(&mut service, request("192.0.2.1:3", &[])).await;
    assert_eq!(response.status(), StatusCode::OK);
    // Somebody else was never limited.
    let response = send(&mut service, request("192.0.2.2:1", &[])).await;
    assert_eq!(header(&response, "x-ratelimit-remaining"), Some("1"));
}

#[tokio::test]
async fn a_local_store_tells_how_much_is_left() {
    let clock = ManualClock::new();
    tells_how_much_is_left(backend(&clock), clock).await;
}

#[tokio::test]
async fn a_far_store_tells_how_much_is_left() {
    let clock = ManualClock::new();
    tells_how_much_is_left(Far(backend(&clock)), clock).await;
}

#[tokio::test]
async fn a_refused_request_does_not_reach_the_service() {
    let inner = Strict::default();
    let served = Arc::clone(&inner.served);
    let layer = RateLimitLayer::new(Quota::per_hour(3), InMemoryBackend::new());
    let mut service = layer.layer(inner);
    for _ in 0..10 {
        // Clones share the budgets.
        let mut clone = service.clone();
        send(&mut clone, to("/")).await;
    }
    send(&mut service, to("/")).await;
    assert_eq!(served.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn the_ietf_headers_are_there_when_asked_for() {
    let layer = RateLimitLayer::new(Quota::per_minute(60), InMemoryBackend::new())
        .with_headers(LimitHeaders::Ietf);
    let response = send(&mut layer.layer(Strict::default()), to("/")).await;
    assert_eq!(
        header(&response, "ratelimit-policy"),
        Some("\"default\";q=60;w=60")
    );
    assert_eq!(header(&response, "ratelimit"), Some("\"default\";r=59;t=1"));
    assert_eq!(header(&response, "x-ratelimit-limit"), None);
    let layer = layer.with_headers(LimitHeaders::None);
    let response = send(&mut layer.layer(Strict::default()), to("/")).await;
    assert!(response.headers().is_empty());
}

#[tokio::test]
async fn without_a_peer_a_request_is_refused_unless_there_is_a_fallback() {
    let layer = RateLimitLayer::new(Quota::per_hour(1), InMemoryBackend::new());
    let mut service = layer.layer(Strict::default());
    let response = send(&mut service, Request::new(())).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let policy = MissingClientPolicy::FallbackKey("anyone".into());
    let mut service = layer
        .with_missing_client_policy(policy)
        .layer(Strict::default());
    let first = send(&mut service, Request::new(())).await;
    let second = send(&mut service, Request::new(())).await;
    assert_eq!(first.status(), StatusCode::OK);
    assert_eq!(
        second.status(),
        StatusCode::TOO_MANY_REQUESTS,
        "they share one budget"
    );
}

#[tokio::test]
async fn a_plain_socket_address_will_do_for_a_peer() {
    let layer = RateLimitLayer::new(Quota::per_hour(1), InMemoryBackend::new());
    let mut request = Request::new(());
    let peer: SocketAddr = "192.0.2.1:80".parse().unwrap();
    request.extensions_mut().insert(peer);
    let response = send(&mut layer.layer(Strict::default()), request).await;
    assert_eq!(response.status(), StatusCode::OK);
}

#[tokio::test]
async fn headers_count_only_from_trusted_proxies() {
    let config = ClientIpConfig {
        trusted_proxies: vec![IpNet::parse("10.0.0.0/8").unwrap()],
        num_trusted_hops: 0,
        trusted_header: None,
    };
    let layer = RateLimitLayer::new(Quota::per_hour(1), InMemoryBackend::new());
    let mut service = layer.with_client_ip(config).layer(Strict::default());
    let mut status = async |peer: &str, from: &str| {
        let request = request(peer, &[("x-forwarded-for", from)]);
        send(&mut service, request).await.status()
    };
    assert_eq!(status("10.0.0.1:1", "203.0.113.1").await, StatusCode::OK);
    assert_eq!(status("10.0.0.2:1", "203.0.113.2").await, StatusCode::OK);
    assert_eq!(
        status("10.0.0.2:1", "9.9.9.9, 203.0.113.1").await,
        StatusCode::TOO_MANY_REQUESTS
    );
    // A client of its own that forges: one budget, whatever it writes.
    assert_eq!(status("192.0.2.1:1", "1.1.1.1").await, StatusCode::OK);
    assert_eq!(
        status("192.0.2.1:1", "1.1.1.2").await,
        StatusCode::TOO_MANY_REQUESTS
    );
}

#[tokio::test]
async fn a_whole_ipv6_network_is_one_client() {
    let layer = RateLimitLayer::new(Quota::per_hour(1000), InMemoryBackend::new());
    let mut service = layer.layer(Strict::default());
    for n in 0..1000 {
        let peer = format!("[2001:db8:1:2::{n:x}]:80");
        assert_eq!(
            send(&mut service, request(&peer, &[])).await.status(),
            StatusCode::OK
        );
    }
    let response = send(&mut service, request("[2001:db8:1:2:ffff::1]:80", &[])).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    let response = send(&mut service, request("[2001:db8:1:3::1]:80", &[])).await;
    assert_eq!(response.status(), StatusCode::OK);
    // An operator may know better.
    let key = RequestKey::client_ip(ClientIpConfig::default()).with_ipv6_prefix(128);
    let layer = RateLimitLayer::new(Quota::per_hour(1), InMemoryBackend::new()).with_key(key);
    let mut service = layer.layer(Strict::default());
    for peer in ["[2001:db8::1]:80", "[2001:db8::2]:80"] {
        assert_eq!(
            send(&mut service, request(peer, &[])).await.status(),
            StatusCode::OK
        );
    }
}

#[tokio::test]
async fn keys_come_from_headers_extensions_and_functions() {
    let new = || RateLimitLayer::new(Quota::per_hour(1), InMemoryBackend::new());

    let mut service = new()
        .with_key(RequestKey::header("x-api-key"))
        .layer(Strict::default());
    let with_key = |key: &[u8]| {
        let mut request = Request::new(());
        let value = http::HeaderValue::from_bytes(key).unwrap();
        request.headers_mut().insert("x-api-key", value);
        request
    };
    for (key, expected) in [
        (&b"ann"[..], StatusCode::OK),
        (b"ann", StatusCode::TOO_MANY_REQUESTS),
        (b"bob", StatusCode::OK),
        // Bytes that are no text are a key like any other.
        (b"\xff\xfe", StatusCode::OK),
        (b"\xff\xfe", StatusCode::TOO_MANY_REQUESTS),
    ] {
        assert_eq!(
            send(&mut service, with_key(key)).await.status(),
            expected,
            "{key:?}"
        );
    }
    let response = send(&mut service, Request::new(())).await;
    assert_eq!(
        response.status(),
        StatusCode::BAD_REQUEST,
        "the client sent no key"
    );

    let mut service = new()
        .with_key(RequestKey::extension::<u64>())
        .layer(Strict::default());
    let mut request = Request::new(());
    request.extensions_mut().insert(7_u64);
    assert_eq!(send(&mut service, request).await.status(), StatusCode::OK);
    let response = send(&mut service, Request::new(())).await;
    assert_eq!(
        response.status(),
        StatusCode::SERVICE_UNAVAILABLE,
        "the server left none"
    );

    let by_path = RequestKey::function(|head| Some(OwnedKey::new(head.uri.path())));
    let mut service = new().with_key(by_path).layer(Strict::default());
    assert_eq!(send(&mut service, to("/a")).await.status(), StatusCode::OK);
    assert_eq!(send(&mut service, to("/b")).await.status(), StatusCode::OK);
    assert_eq!(
        send(&mut service, to("/a")).await.status(),
        StatusCode::TOO_MANY_REQUESTS
    );
}

#[tokio::test]
async fn the_text_of_an_address_is_not_the_address() {
    // One backend for both: a header that spells an address's bytes must not
    // use up that address's budget.
    let backend = InMemoryBackend::new();
    let by_ip = RateLimitLayer::new(Quota::per_hour(1), backend.clone());
    let by_name =
        RateLimitLayer::new(Quota::per_hour(1), backend).with_key(RequestKey::header("x-api-key"));
    let forged = request("192.0.2.9:1", &[("x-api-key", "AAAA")]);
    assert_eq!(
        send(&mut by_name.layer(Strict::default()), forged)
            .await
            .status(),
        StatusCode::OK
    );
    let victim = request("65.65.65.65:1", &[]);
    assert_eq!(
        send(&mut by_ip.layer(Strict::default()), victim)
            .await
            .status(),
        StatusCode::OK
    );
}

#[tokio::test]
async fn routes_have_budgets_of_their_own() {
    let layer = RateLimitLayer::new(Quota::per_hour(100), InMemoryBackend::new())
        .with_route("/api/*", Quota::per_hour(10))
        .with_route("/api/login", Quota::per_hour(1))
        .with_route("/api/admin/*", Quota::per_hour(5));
    let mut service = layer.layer(Strict::default());
    for (path, limit) in [
        ("/", "100"),
        ("/api", "100"),
        ("/api/", "10"),
        ("/api/users?page=2", "10"),
        ("/api/login", "1"),
        ("/api/login/x", "10"),
        ("/api/admin/x", "5"),
        ("/apis", "100"),
    ] {
        let response = send(&mut service, to(path)).await;
        assert_eq!(
            header(&response, "x-ratelimit-limit"),
            Some(limit),
            "{path}"
        );
        assert_eq!(response.status(), StatusCode::OK, "{path}");
    }
    let response = send(&mut service, to("/api/login")).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn what_is_skipped_is_free_and_what_is_dear_costs_more() {
    let layer = RateLimitLayer::new(Quota::per_hour(10), InMemoryBackend::new())
        .with_skip(|head| head.uri.path() == "/health")
        .with_cost(|head| if head.uri.path() == "/report" { 6 } else { 1 });
    let mut service = layer.layer(Strict::default());
    for _ in 0..20 {
        let response = send(&mut service, to("/health")).await;
        assert_eq!(header(&response, "x-ratelimit-limit"), None);
    }
    let response = send(&mut service, to("/report")).await;
    assert_eq!(header(&response, "x-ratelimit-remaining"), Some("4"));
    let response = send(&mut service, to("/report")).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(send(&mut service, to("/")).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn more_than_the_burst_is_never_promised() {
    let layer = RateLimitLayer::new(Quota::per_second(5), InMemoryBackend::new()).with_cost(|_| 6);
    let response = send(&mut layer.layer(Strict::default()), to("/")).await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(header(&response, "retry-after"), None);
}

#[tokio::test]
async fn a_refusal_has_the_body_that_its_hook_writes() {
    let layer = RateLimitLayer::new(Quota::per_hour(0), InMemoryBackend::new()).with_refusal(
        |refusal: &Refusal<'_>| {
            assert_eq!(refusal.reason, RefusalReason::Limited);
            assert!(refusal.decision.is_some());
            Response::builder()
                .status(StatusCode::IM_A_TEAPOT)
                .body(format!("no more of {}", refusal.request.uri.path()))
                .unwrap()
        },
    );
    let response = send(&mut layer.layer(Strict::default()), to("/tea")).await;
    assert_eq!(response.status(), StatusCode::IM_A_TEAPOT);
    assert_eq!(response.body(), "no more of /tea");
    assert_eq!(header(&response, "x-ratelimit-limit"), Some("0"));
}

#[tokio::test]
async fn a_grpc_call_is_refused_as_grpc_refuses() {
    let clock = ManualClock::new();
    let layer = RateLimitLayer::new(Quota::per_second(1), backend(&clock));
    let mut service = layer.layer(Strict::default());
    let call = || request("192.0.2.1:1", &[("content-type", "application/grpc+proto")]);
    send(&mut service, call()).await;
    clock.advance(Duration::from_micros(250_500));
    let response = send(&mut service, call()).await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        header(&response, "content-type"),
        Some("application/grpc+proto")
    );
    assert_eq!(header(&response, "grpc-status"), Some("8"));
    assert_eq!(
        header(&response, "grpc-message"),
        Some("rate limit exceeded")
    );
    assert_eq!(header(&response, "grpc-retry-pushback-ms"), Some("750"));
    assert_eq!(response.body(), "");
}

#[tokio::test]
async fn single_keys_may_have_quotas_of_their_own() {
    let limiter = KeyedRateLimiter::new(Quota::per_hour(1), InMemoryBackend::new());
    let handle = limiter.clone();
    let layer = RateLimitLayer::from_limiter(limiter).with_key(RequestKey::header("x-api-key"));
    let mut service = layer.layer(Strict::default());
    let mut limit = async |key: &str| {
        let request = request("192.0.2.1:1", &[("x-api-key", key)]);
        let response = send(&mut service, request).await;
        header(&response, "x-ratelimit-limit").map(str::to_owned)
    };
    assert_eq!(limit("ann").await.as_deref(), Some("1"));
    handle.with_quota_for_key("ann", Quota::per_hour(50));
    assert_eq!(limit("ann").await.as_deref(), Some("50"));
    assert_eq!(limit("bob").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_shadow_limit_denies_nothing() {
    let limiter = KeyedRateLimiter::new(Quota::per_hour(1), InMemoryBackend::new());
    let layer = RateLimitLayer::from_limiter(limiter.in_shadow_mode());
    let mut service = layer.layer(Strict::default());
    for _ in 0..5 {
        assert_eq!(send(&mut service, to("/")).await.status(), StatusCode::OK);
    }
    let layer = RateLimitLayer::new(Quota::per_hour(0), NoopBackend);
    assert_eq!(
        send(&mut layer.layer(Strict::default()), to("/"))
            .await
            .status(),
        StatusCode::OK
    );
}

/// The future needs no box, nor `Unpin`, nor more than the inner one.
#[test]
fn the_future_is_no_larger_than_it_must_be() {
    let layer = RateLimitLayer::new(Quota::per_hour(1), InMemoryBackend::new());
    let mut service = layer.layer(Strict::default());
    let mut cx = Context::from_waker(std::task::Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    let future = service.call(to("/"));
    assert!(size_of_val(&future) <= size_of::<<Strict as Service<Request<()>>>::Future>() + 96);
    let mut future = std::pin::pin!(future);
    assert!(future.as_mut().poll(&mut cx).is_ready());
}
