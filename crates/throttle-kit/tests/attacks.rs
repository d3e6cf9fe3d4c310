//! Attempts to get more than the quota through that once worked, or that look
//! as if they might. `docs/attacks.md` lists these and all the others.

use std::net::SocketAddr;
use std::time::Duration;

use http::{HeaderValue, Request, Response, StatusCode};
use throttle_kit::tower::{PeerAddr, RateLimitLayer, RequestKey};
use throttle_kit::{
    Decision, DirectRateLimiter, InMemoryBackend, KeyRef, ManualClock, Operation, Quota,
    RateLimiter, SyncBackend,
};
use tower_layer::Layer;
use tower_service::Service;

const BURST: u32 = 10;

fn at_ten_a_second() -> (ManualClock, RateLimiter<InMemoryBackend<ManualClock>>) {
    let clock = ManualClock::new();
    let backend = InMemoryBackend::with_clock(100, clock.clone());
    let quota = Quota::per_second(BURST);
    (clock, RateLimiter::new(quota, backend))
}

/// Work that lasts long and then fails is refunded. Whoever saves such refunds
/// up must not be able to spend them all at once.
#[test]
fn refunds_cannot_be_saved_up() {
    let (clock, limiter) = at_ten_a_second();
    let mut saved = Vec::new();
    for _ in 0..600 {
        let decision = limiter.check_now("key");
        assert!(decision.is_allowed());
        saved.push(decision);
        clock.advance(Duration::from_millis(100));
    }
    let mut admitted = 0;
    for decision in saved {
        let _ = limiter.refund_now("key", decision);
        while limiter.check_now("key").is_allowed() {
            admitted += 1;
        }
    }
    assert_eq!(admitted, BURST, "saved refunds bought a second burst");
}

#[test]
fn refunds_of_a_budget_without_keys_cannot_be_saved_up() {
    let clock = ManualClock::new();
    let limiter = DirectRateLimiter::with_clock(Quota::per_second(BURST), clock.clone());
    let saved: Vec<_> = (0..600)
        .map(|_| {
            clock.advance(Duration::from_millis(100));
            limiter.check_now()
        })
        .collect();
    clock.advance(Duration::from_millis(100));
    let mut admitted = 0;
    for decision in saved {
        let _ = limiter.refund_now(decision);
        while limiter.check_now().is_allowed() {
            admitted += 1;
        }
    }
    assert_eq!(admitted, BURST);
}

#[cfg(feature = "sliding-window")]
#[test]
fn refunds_of_past_windows_cannot_be_saved_up() {
    let clock = ManualClock::new();
    let backend = throttle_kit::SlidingWindowBackend::with_clock(100, clock.clone());
    let limiter = RateLimiter::new(Quota::per_second(BURST), backend);
    let mut saved = Vec::new();
    for _ in 0..60 {
        saved.extend((0..BURST / 3).map(|_| limiter.check_now("key")));
        clock.advance(Duration::from_secs(1));
    }
    assert!(saved.iter().all(Decision::is_allowed));
    clock.advance(Duration::from_secs(2));
    let mut admitted = 0;
    for decision in saved {
        let _ = limiter.refund_now("key", decision);
        while limiter.check_now("key").is_allowed() {
            admitted += 1;
        }
    }
    assert_eq!(admitted, BURST);
}

/// A prompt refund still gives all of it back, and one half way the other half.
#[test]
fn a_refund_gives_back_what_time_has_not() {
    let (clock, limiter) = at_ten_a_second();
    let decision = limiter.check_n_now("key", BURST);
    assert_eq!(limiter.refund_now("key", decision).remaining(), BURST);
    let decision = limiter.check_n_now("key", BURST);
    clock.advance(Duration::from_millis(500));
    assert_eq!(limiter.peek_now("key").remaining(), 5);
    assert!(limiter.check_n_now("key", 5).is_allowed());
    assert_eq!(limiter.refund_now("key", decision).remaining(), 5);
}

/// A store that is down while `is_down`, and admits everything then.
#[derive(Clone)]
struct Failing(InMemoryBackend<ManualClock>, bool);

impl SyncBackend for Failing {
    fn apply_now(&self, key: KeyRef<'_>, quota: &Quota, n: u32, op: Operation) -> Decision {
        if self.1 {
            Decision::from_debt(quota, Duration::ZERO, n, true).into_degraded()
        } else {
            self.0.apply_now(key, quota, n, op)
        }
    }
}

/// What a policy admits in an outage was never taken from the store, so giving
/// it back there afterwards would be a gift.
#[test]
fn what_was_admitted_in_an_outage_is_not_given_back_after_it() {
    let store = InMemoryBackend::with_clock(100, ManualClock::new());
    let up = RateLimiter::new(Quota::per_hour(BURST), Failing(store.clone(), false));
    let down = RateLimiter::new(Quota::per_hour(BURST), Failing(store, true));
    assert!(up.check_n_now("key", BURST).is_allowed());
    for _ in 0..BURST {
        let decision = down.check_now("key");
        assert!(decision.is_allowed() && decision.is_degraded());
        let _ = up.refund_now("key", decision);
    }
    assert!(!up.check_now("key").is_allowed());
}

#[derive(Clone)]
struct Fine;

impl Service<Request<()>> for Fine {
    type Response = Response<()>;
    type Error = std::convert::Infallible;
    type Future = std::future::Ready<Result<Response<()>, Self::Error>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Self::Error>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        std::future::ready(Ok(Response::new(())))
    }
}

/// The authentication reads one line of the key's header and the limiter the
/// other: a client makes a new one up for the limiter each time.
#[tokio::test]
async fn a_second_line_of_the_keys_header_buys_no_budget() {
    let quota = Quota::per_hour(BURST);
    let mut service = RateLimitLayer::new(quota, InMemoryBackend::new())
        .with_key(RequestKey::header("x-api-key"))
        .layer(Fine);
    for n in 0..100_u32 {
        let mut request = Request::new(());
        let headers = request.headers_mut();
        headers.append("x-api-key", HeaderValue::from(n));
        headers.append("x-api-key", HeaderValue::from_static("the real one"));
        let response = service.call(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    }
}

/// One peer that claims to be another each time, in every header there is.
#[tokio::test]
async fn no_header_makes_an_untrusted_peer_somebody_else() {
    let quota = Quota::per_hour(BURST);
    let mut service = RateLimitLayer::new(quota, InMemoryBackend::new()).layer(Fine);
    let mut admitted = 0;
    for n in 0..100_u32 {
        let mut request = Request::new(());
        let claim = format!("198.51.100.{n}");
        for name in [
            "x-forwarded-for",
            "x-real-ip",
            "cf-connecting-ip",
            "true-client-ip",
            "x-client-ip",
        ] {
            let value = HeaderValue::try_from(&claim).unwrap();
            request.headers_mut().append(name, value);
        }
        let value = HeaderValue::try_from(format!("for={claim}")).unwrap();
        request.headers_mut().append("forwarded", value);
        let peer: SocketAddr = "192.0.2.1:4711".parse().unwrap();
        request.extensions_mut().insert(PeerAddr(peer));
        admitted += u32::from(service.call(request).await.unwrap().status() == StatusCode::OK);
    }
    assert_eq!(admitted, BURST);
}

/// More debts than a table holds, of one quota, by who has spent a budget: the
/// spent one is the last to go.
#[test]
fn a_flood_of_keys_does_not_wash_away_a_spent_budget() {
    let backend = InMemoryBackend::with_clock(1000, ManualClock::new());
    let limiter = RateLimiter::new(Quota::per_hour(BURST), backend.clone());
    assert!(limiter.check_n_now("mine", BURST).is_allowed());
    for n in 0..1_000_000_u32 {
        let _ = limiter.check_now(&n);
        if n % 1000 == 0 {
            assert!(!limiter.check_now("mine").is_allowed(), "after {n} keys");
        }
    }
    assert!(backend.evicted_live() > 0);
}

/// A clock that goes to and fro admits what its steps forward bring, as if time
/// had passed, and nothing for its steps back.
#[test]
fn a_clock_that_steps_to_and_fro_admits_what_its_steps_forward_bring() {
    let (clock, limiter) = at_ten_a_second();
    let (mut admitted, mut forward_ms, mut last_ms) = (0, 0, 5_000);
    for round in 0..1000_u64 {
        for at_ms in [5_000, 4_000 + round % 1000, 4_900, 4_500] {
            clock.set(Duration::from_millis(at_ms));
            forward_ms += at_ms.saturating_sub(last_ms);
            last_ms = at_ms;
            while limiter.check_now("key").is_allowed() {
                admitted += 1;
            }
        }
    }
    let brought = forward_ms * u64::from(BURST) / 1000;
    assert!(
        admitted <= u64::from(BURST) + brought,
        "{admitted}, {brought}"
    );
}

/// What costs nothing takes nothing, and what costs too much is not for later.
#[test]
fn no_cost_pays_for_another() {
    let (_, limiter) = at_ten_a_second();
    for _ in 0..1000 {
        assert!(limiter.check_n_now("key", 0).is_allowed());
    }
    assert!(!limiter.check_n_now("key", BURST + 1).is_allowed());
    assert!(!limiter.check_n_now("key", u32::MAX).is_allowed());
    assert!(limiter.check_n_now("key", BURST).is_allowed());
    let refused = limiter.check_n_now("key", BURST + 1);
    assert_eq!(refused.retry_after(), None);
    let _ = limiter.refund_now("key", refused);
    let _ = limiter.refund_now("key", limiter.peek_now("key"));
    let free = limiter.check_n_now("key", 0);
    let _ = limiter.refund_now("key", free);
    assert!(!limiter.check_now("key").is_allowed());
}
