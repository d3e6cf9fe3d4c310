//! What a check allocates: nothing.

use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use allocation_counter::measure;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, Response};
use throttle_kit::client_ip::{ClientIpConfig, IpNet, resolve_client_identity};
use throttle_kit::tower::{LimitHeaders, PeerAddr, RateLimitLayer};
use throttle_kit::{
    DirectRateLimiter, InMemoryBackend, KeyedRateLimiter, ManualClock, Quota, RateLimiter,
};
use tower_layer::Layer;
use tower_service::Service;

fn allocations(run: impl FnOnce()) -> u64 {
    measure(run).count_total
}

/// A limiter whose counters, with the feature `metrics`, are registered: its
/// first check does that, and that allocates.
fn limiter() -> RateLimiter<InMemoryBackend> {
    let limiter = RateLimiter::new(Quota::per_hour(5), InMemoryBackend::new());
    let _ = limiter.check_now("the first");
    limiter
}

fn now<F: Future>(future: F) -> F::Output {
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut cx) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("an in-memory check waits"),
    }
}

/// The counter counts, or all of this proves nothing.
#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1]))), 1);
}

#[test]
fn a_check_allocates_nothing_warm_or_fresh() {
    let limiter = limiter();
    let text = "a key of some length, but well below sixty-four bytes";
    let long = "x".repeat(1000);
    let ip: IpAddr = "2001:db8::1".parse().unwrap();
    let count = allocations(|| {
        for n in 0..1000_u64 {
            let _ = (limiter.check_now(&n), now(limiter.check(&n)));
            let _ = (limiter.check_now(text), now(limiter.check(text)));
            let _ = (limiter.check_now(&long), limiter.check_now(&ip));
            let _ = limiter.check_now(&(ip, n, text));
            let _ = (limiter.peek_now(&n), limiter.reset_now(&n));
            let decision = limiter.check_n_now(&n, 3);
            let _ = (
                decision.remaining(),
                decision.retry_after(),
                decision.reset_after(),
            );
            let _ = limiter.refund_now(&n, decision);
            let both = [limiter.demand(&n), limiter.demand(text)];
            let _ = limiter.check_all_now(&both);
        }
    });
    // The tuple is longer than what is kept in place.
    assert_eq!(count, 1000, "only the long tuple may allocate");
    let direct = DirectRateLimiter::new(Quota::per_hour(5));
    assert_eq!(allocations(|| assert!(direct.check_now().is_allowed())), 0);
}

#[test]
fn a_keyed_check_allocates_nothing_with_or_without_an_override() {
    let limiter = KeyedRateLimiter::new(Quota::per_hour(5), InMemoryBackend::new());
    let ours = |limiter: &KeyedRateLimiter<_>| {
        for key in ["ann", "bob", "somebody else"] {
            let _ = (limiter.check_now(key), now(limiter.check(key)));
        }
    };
    let _ = limiter.check_now("the first");
    assert_eq!(allocations(|| ours(&limiter)), 0);
    limiter.with_quota_for_key("ann", Quota::per_hour(50));
    assert_eq!(allocations(|| ours(&limiter)), 0);
}

#[test]
fn identity_resolution_allocates_nothing() {
    let config = ClientIpConfig {
        trusted_proxies: vec![IpNet::parse("10.0.0.0/8").unwrap()],
        ..ClientIpConfig::default()
    };
    let forwarded = ClientIpConfig {
        trusted_header: Some(http::header::FORWARDED),
        ..config.clone()
    };
    let mut headers = HeaderMap::new();
    headers.append(
        "x-forwarded-for",
        HeaderValue::from_static("9.9.9.9, [2001:db8::1]:80"),
    );
    headers.append(
        "x-forwarded-for",
        HeaderValue::from_static("203.0.113.7, 10.0.0.254"),
    );
    headers.append(
        "forwarded",
        HeaderValue::from_static("for=\"[2001:db8::1]:80\";proto=https"),
    );
    let peer = Some("10.0.0.9".parse().unwrap());
    let count = allocations(|| {
        for config in [&config, &forwarded, &ClientIpConfig::default()] {
            let client = resolve_client_identity(&headers, peer, config).unwrap();
            let _ = client.group(64);
        }
    });
    assert_eq!(count, 0);
}

/// Answers with a header of its own, as services do; the map has room for more.
#[derive(Clone)]
struct Typed;

impl Service<Request<()>> for Typed {
    type Response = Response<()>;
    type Error = Infallible;
    type Future = Ready<Result<Response<()>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        let mut response = Response::new(());
        let headers = response.headers_mut();
        headers.reserve(16);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        ready(Ok(response))
    }
}

fn layer_allocations(which: LimitHeaders) -> u64 {
    let layer = RateLimitLayer::new(Quota::per_hour(1_000_000), InMemoryBackend::new());
    let mut limited = layer.with_headers(which).layer(Typed);
    let request = || {
        let mut request = Request::new(());
        let peer: SocketAddr = "192.0.2.1:80".parse().unwrap();
        request.extensions_mut().insert(PeerAddr(peer));
        request
    };
    assert!(now(limited.call(request())).is_ok(), "the first");
    let (mut bare, first, second) = (Typed, request(), request());
    let of_inner = allocations(|| assert!(now(bare.call(first)).is_ok()));
    let of_both = allocations(|| assert!(now(limited.call(second)).is_ok()));
    // The request's extensions are dropped by both; they only free.
    of_both - of_inner
}

#[test]
fn the_layer_allocates_once_with_headers_and_not_without() {
    assert_eq!(layer_allocations(LimitHeaders::None), 0);
    assert_eq!(layer_allocations(LimitHeaders::XRateLimit), 1);
    assert_eq!(layer_allocations(LimitHeaders::Both), 1);
}

#[test]
fn one_clock_read_a_check() {
    let clock = ManualClock::new();
    let limiter = RateLimiter::new(
        Quota::per_hour(2),
        InMemoryBackend::with_clock(100, clock.clone()),
    );
    // Fresh, warm, refused, and more than the burst.
    for (index, n) in [1, 1, 1, 9].into_iter().enumerate() {
        let _ = limiter.check_n_now("key", n);
        assert_eq!(clock.reads(), index as u64 + 1);
    }
}
