//! A function that may be called five times a second, and waits its turn.

#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use throttle_kit::{DirectRateLimiter, InMemoryBackend, Jitter, Outcome, Quota, RateLimiter};

fn main() {
    refuse();
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(wait());
}

/// One budget for each user; whoever is too fast is told when to come back.
fn refuse() {
    let limiter = RateLimiter::new(Quota::per_second(5).allow_burst(2), InMemoryBackend::new());
    for user in ["ann", "ann", "ann", "bob"] {
        let decision = limiter.check_now(user);
        match decision.outcome() {
            Outcome::Allowed => println!("{user}: served, {} left", decision.remaining()),
            Outcome::Denied => println!("{user}: come back in {:?}", decision.retry_after()),
            Outcome::InsufficientCapacity => println!("{user}: never"),
        }
    }
}

/// One budget for all that goes out, say to somebody else's API.
async fn wait() {
    let limiter = DirectRateLimiter::new(Quota::per_second(5).allow_burst(1));
    let start = Instant::now();
    for call in 0..4 {
        let jitter = Jitter::up_to(Duration::from_millis(10));
        if let Err(error) = limiter.until_ready(jitter).await {
            println!("never: {error}");
            return;
        }
        println!("call {call} after {:?}", start.elapsed());
    }
}
