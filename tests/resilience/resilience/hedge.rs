//! Second attempts beside the first.

use std::time::Duration;

use quill::client::{Hedge, RetryBudget};
use quill::{Code, Error, Idempotency, Pushback};
use quill_tests_resilience::FlakyRequest;
use tokio::time::Instant;

use crate::peers::{client, eventually, failing, serve, ways};
use crate::services::{Count, ending, request, through};

const DELAY: Duration = Duration::from_millis(50);
/// What nothing takes but a call that is not overtaken.
const LONG: Duration = Duration::from_secs(25);

#[tokio::test]
async fn a_late_answer_is_overtaken_where_the_method_may_be_repeated() {
    let served = serve().await;
    for way in ways() {
        let client = client(way.builder(&served.url).hedge(Hedge::after(DELAY)));
        let id = |name: &str| format!("{way:?} {name}");
        let slow = |name| FlakyRequest {
            delay_ms: 60_000,
            slow: 1,
            ..failing(id(name), 0)
        };
        let begun = Instant::now();
        let answer = client.get(slow("get")).await.unwrap();
        assert_eq!(answer.message().run, 2, "{way:?}");
        assert!((DELAY..LONG).contains(&begun.elapsed()), "{way:?}");
        let set = tokio::spawn({
            let (client, request) = (client.clone(), slow("set"));
            async move { client.set(request).await }
        });
        eventually("it runs", || served.flaky.runs(&id("set")) > 0).await;
        // Where there was to be another attempt, it would be there by then.
        tokio::time::sleep(DELAY * 10).await;
        assert_eq!(served.flaky.runs(&id("set")), 1, "{way:?}");
        assert!(!set.is_finished(), "{way:?}");
        set.abort();
    }
    // Those that came too late were given up.
    let server = served.server;
    // The server itself would break them off after 10 s.
    tokio::time::timeout(Duration::from_secs(8), server.shutdown())
        .await
        .expect("nothing is under way any more");
    eventually("each id has run", || served.flaky.ids() == 2 * ways().len()).await;
}

#[tokio::test(start_paused = true)]
async fn attempts_begin_one_after_the_other_and_the_first_answer_counts() {
    let count = Count::default();
    let hedge = Hedge::after(DELAY).attempts_max(3);
    let third = ending(&count, |before| async move {
        if before < 2 {
            std::future::pending::<()>().await;
        }
        Ok(())
    });
    let begun = Instant::now();
    through(&hedge, third, request(Idempotency::NoSideEffects))
        .await
        .unwrap();
    assert_eq!((count.get(), begun.elapsed().as_millis() / 10), (3, 10));
}

#[tokio::test(start_paused = true)]
async fn failures_bring_the_next_attempt_forward_unless_they_end_the_call() {
    let hedge = Hedge::after(DELAY);
    let pause = Duration::from_secs(3);
    for (error, calls, waits) in [
        (Error::unavailable("down"), 2, Duration::ZERO),
        (Error::invalid_argument("no"), 1, Duration::ZERO),
        (
            Error::unavailable("no").with_pushback(Pushback::Never),
            1,
            Duration::ZERO,
        ),
        (
            Error::unavailable("wait").with_pushback(Pushback::After(pause)),
            2,
            pause,
        ),
        (
            Error::unavailable("long").with_pushback(Pushback::After(Duration::from_secs(61))),
            1,
            Duration::ZERO,
        ),
        (
            Error::unavailable("ever").with_pushback(Pushback::After(Duration::MAX)),
            1,
            Duration::ZERO,
        ),
    ] {
        let (count, code) = (Count::default(), error.code());
        let pushback = error.pushback();
        let service = ending(&count, move |_| async move {
            let error = Error::new(code, "again");
            Err(pushback.map_or_else(|| Error::new(code, "x"), |said| error.with_pushback(said)))
        });
        let begun = Instant::now();
        let called = through(&hedge, service, request(Idempotency::NoSideEffects)).await;
        assert_eq!(called.unwrap_err().code(), code);
        assert_eq!(count.get(), calls, "{error}");
        assert!(
            begun.elapsed() >= waits && begun.elapsed() < waits + DELAY,
            "{error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_ends_further_attempts_too() {
    let count = Count::default();
    let failing = ending(&count, |_| async { Err(Error::unavailable("down")) });
    let hedge = Hedge::after(DELAY).budget(RetryBudget::new(10, 0.1));
    for _ in 0..20 {
        let called = through(&hedge, failing.clone(), request(Idempotency::Idempotent)).await;
        assert_eq!(called.unwrap_err().code(), Code::Unavailable);
    }
    assert_eq!(count.get(), 22);
}
