//! Budgets in Redis, against servers that the tests start.

#![cfg(feature = "redis")]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "waits for other programs, and says why a test is skipped"
)]

mod redis_server;

use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use redis_server::{Cluster, Server, is_available, wait_for};
use throttle_kit::gcra::{self, Tat};
use throttle_kit::store::redis::RedisStoreError;
use throttle_kit::{
    Decision, Demand, Key, KeyRef, Namespace, Operation, Outcome, Quota, RateLimitBackend,
    RateLimiter, RedisBackend, WhenDown,
};

/// Long enough for a busy machine; the tests that are about it set their own.
const PATIENT: Duration = Duration::from_secs(5);

fn backend(server: &Server) -> RedisBackend {
    RedisBackend::single(server.url())
        .timeout(PATIENT)
        .when_down(WhenDown::Closed)
        .build()
        .unwrap()
}

fn key(name: &str) -> KeyRef<'_> {
    KeyRef::new(<str as Key>::KIND, name.as_bytes())
}

macro_rules! require {
    ($binary:literal) => {
        if !is_available($binary) {
            return;
        }
    };
}

#[tokio::test]
async fn every_operation() {
    require!("redis-server");
    let server = Server::start();
    let limiter = RateLimiter::new(Quota::per_hour(5), backend(&server));

    assert_eq!(limiter.peek("a").await.remaining(), 5);
    let first = limiter.check("a").await;
    assert!(first.is_allowed() && !first.is_degraded());
    assert_eq!((first.limit(), first.remaining(), first.cost()), (5, 4, 1));
    assert_eq!(limiter.check_n("a", 4).await.remaining(), 0);
    let refused = limiter.check("a").await;
    assert_eq!(refused.outcome(), Outcome::Denied);
    let retry = refused.retry_after().unwrap();
    assert!(retry > Duration::from_secs(710) && retry <= Duration::from_secs(720));
    assert_eq!(limiter.peek("a").await.outcome(), Outcome::Denied);
    assert_eq!(limiter.peek("b").await.remaining(), 5);

    assert_eq!(
        limiter.check_n("a", 6).await.outcome(),
        Outcome::InsufficientCapacity
    );
    assert_eq!(limiter.refund("a", first).await.remaining(), 1);
    assert!(limiter.check("a").await.is_allowed());
    assert_eq!(limiter.reset("a").await.remaining(), 5);
    assert_eq!(limiter.check("a").await.remaining(), 4);

    let none = RateLimiter::new(Quota::per_second(0), backend(&server));
    assert_eq!(
        none.check("a").await.outcome(),
        Outcome::InsufficientCapacity
    );
    assert_eq!(none.check("a").await.retry_after(), None);
}

#[tokio::test]
async fn refunds_cannot_be_saved_up() {
    require!("redis-server");
    let server = Server::start();
    let quota = Quota::new(2, Duration::from_secs(4), 2);
    let limiter = RateLimiter::new(quota, backend(&server));
    let saved = limiter.check_n("a", 2).await;
    while limiter.peek("a").await.remaining() < 2 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let start = Instant::now();
    let now = limiter.check_n("a", 2).await;
    let after = limiter.refund("a", saved).await;
    // Later than this, time has brought a cell.
    if start.elapsed() < Duration::from_secs(2) {
        assert_eq!(after.remaining(), 0, "time had given these back");
    }
    assert_eq!(limiter.refund("a", now).await.remaining(), 2);
}

#[tokio::test]
async fn keys_lie_under_the_prefix_and_expire() {
    require!("redis-server");
    let server = Server::start();
    let backend = RedisBackend::single(server.url())
        .prefix("shop:")
        .timeout(PATIENT)
        .build()
        .unwrap();
    let limiter = RateLimiter::new(Quota::per_minute(60), backend).with_namespace("api");
    let _ = limiter.check_n("ann", 10).await;
    let keys = server.command("KEYS *");
    assert!(keys.contains("\r\nshop:3:api:b:ann\r\n"), "{keys}");
    let left = server.command("PTTL shop:3:api:b:ann");
    let left: u64 = left.lines().next().unwrap()[1..].parse().unwrap();
    assert!((9_000..=12_000).contains(&left), "{left} ms");
    let _ = limiter.reset("ann").await;
    assert!(server.command("DBSIZE").starts_with(":0"));
}

#[tokio::test]
async fn numbers_are_not_rounded() {
    require!("redis-server");
    let server = Server::start();
    let limiter = RateLimiter::new(
        // 14.2857 us a cell: a fraction in every unit but the finest.
        Quota::per_second(70_000),
        backend(&server),
    );
    assert_eq!(limiter.check("a").await.remaining(), 69_999);
    // The server answered in its own unit, and not a nanosecond got lost.
    let fresh = limiter.check("fresh").await;
    assert_eq!(fresh.reset_after(), limiter.quota().interval());
    assert!(server.command("STRLEN throttle:0::b:a").starts_with(":16"));
    // A year's quota next to it: large numbers and small ones in one script.
    let slow = Quota::new(3, Duration::from_secs(365 * 86_400), 3);
    let yearly = RateLimiter::new(slow, backend(&server)).with_namespace("y");
    assert_eq!(yearly.check("a").await.remaining(), 2);
    assert_eq!(yearly.check_n("a", 2).await.remaining(), 0);
    let retry = yearly.check("a").await.retry_after().unwrap();
    let third = Duration::from_secs(365 * 86_400 / 3);
    assert!(retry <= third && retry > third - Duration::from_secs(60));
}

/// Two thousand random operations, on three keys under three quotas, against
/// the pure decision. The quotas are so slow that time plays no part.
#[tokio::test]
async fn the_script_agrees_with_the_pure_decision() {
    require!("redis-server");
    let server = Server::start();
    let backend = backend(&server);
    let hour = Duration::from_secs(3600);
    let quotas = [
        Quota::new(1, hour, 10),
        Quota::new(1, hour * 2, 3),
        Quota::new(1, hour * 24 * 365, 5),
        Quota::DENY_ALL,
    ];
    let operations = [
        Operation::Check,
        Operation::Check,
        Operation::Check,
        Operation::Peek,
        Operation::Refund(None),
        Operation::Reset,
    ];
    let mut states = [Tat::NEVER; 3];
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut below = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % bound as u64) as usize
    };
    for round in 0..2000 {
        let (slot, quota) = (below(3), &quotas[below(quotas.len())]);
        let (n, operation) = (below(7) as u32, operations[below(operations.len())]);
        // These give nothing back, so Redis is not written to; the pure step
        // cuts the debt to the quota's window.
        if matches!(operation, Operation::Refund(_)) && (n == 0 || quota.denies_all()) {
            continue;
        }
        let step = gcra::step(states[slot], 1 << 50, quota, n, operation);
        states[slot] = step.tat;
        let name = ["x", "y", "z"][slot];
        let decision = backend
            .try_apply(key(name), quota, n, operation)
            .await
            .unwrap();
        let said = |d: &Decision| (d.outcome(), d.limit(), d.remaining(), d.cost());
        let context = format!("round {round}: {operation:?} {n} of {name} under {quota}");
        assert_eq!(said(&decision), said(&step.decision), "{context}");
        let (wait, due) = (decision.retry_after(), step.decision.retry_after());
        assert_eq!(wait.is_some(), due.is_some(), "{context}");
        let (wait, due) = (wait.unwrap_or_default(), due.unwrap_or_default());
        assert!(
            wait <= due && due - wait < Duration::from_secs(60),
            "{context}: {wait:?} {due:?}"
        );
    }
}

/// How many of one cell each `tasks` tasks are given in `span`.
async fn admitted(limiter: &RateLimiter<RedisBackend>, tasks: usize, span: Duration) -> u32 {
    let start = Instant::now();
    let mut set = tokio::task::JoinSet::new();
    for _ in 0..tasks {
        let limiter = limiter.clone();
        set.spawn(async move {
            let mut admitted = 0;
            while start.elapsed() < span {
                let decision = limiter.check("hot").await;
                assert!(!decision.is_degraded());
                admitted += u32::from(decision.is_allowed());
            }
            admitted
        });
    }
    set.join_all().await.into_iter().sum()
}

/// However slow the machine is: a budget of ten seconds does not get whole in
/// two, so each cell that came back was taken or is there at the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_a_second_are_exact() {
    require!("redis-server");
    let server = Server::start();
    let quota = Quota::per_second(2000).allow_burst(20_000);
    let limiter = RateLimiter::new(quota, backend(&server));
    let before = Instant::now();
    assert!(limiter.check_n("hot", 20_000).await.is_allowed());
    let spent = Instant::now();
    let taken = admitted(&limiter, 64, Duration::from_secs(2)).await;
    let least = 2000.0 * spent.elapsed().as_secs_f64();
    let left = limiter.peek("hot").await.remaining();
    let most = 2000.0 * before.elapsed().as_secs_f64();
    println!("{taken} taken and {left} left, of {least} to {most}");
    let back = f64::from(taken + left);
    // A cell that is on its way, and the server's clock beside ours.
    assert!(
        (least - 8.0..=most + 8.0).contains(&back),
        "{back} came back"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn small_bursts_are_exact() {
    require!("redis-server");
    let server = Server::start();
    let limiter = RateLimiter::new(Quota::per_second(2000).allow_burst(3), backend(&server));
    limiter.backend().ready().await.unwrap();
    let start = Instant::now();
    let taken = f64::from(admitted(&limiter, 64, Duration::from_secs(1)).await);
    let most = 3.0 + 2000.0 * start.elapsed().as_secs_f64();
    assert!(taken <= most, "{taken} of {most}");

    // And no fewer: when a refusal said, the cells are there.
    let slow = RateLimiter::new(Quota::per_second(100).allow_burst(3), backend(&server));
    let mut refusals = 0;
    while refusals < 20 {
        let decision = slow.check_n("alone", 3).await;
        if let Some(wait) = decision.retry_after() {
            refusals += 1;
            tokio::time::sleep(wait).await;
            assert!(slow.check_n("alone", 3).await.is_allowed());
        }
    }
}

#[tokio::test]
async fn a_hundred_thousand_a_second_are_exact() {
    require!("redis-server");
    let server = Server::start();
    let quota = Quota::per_second(100_000);
    let limiter = RateLimiter::new(quota, backend(&server));
    // In large costs, so that the rate and not the machine decides. The debt
    // never reaches 0 and the burst is never full, so not a cell gets lost.
    assert!(limiter.check_n("hot", 100_000).await.is_allowed());
    let start = Instant::now();
    let mut admitted = 0_u64;
    let mut spent = Duration::ZERO;
    while spent < Duration::from_secs(2) {
        let decision = limiter.check_n("hot", 1000).await;
        spent = start.elapsed();
        if decision.is_allowed() {
            admitted += 1000;
        } else {
            tokio::time::sleep(decision.retry_after().unwrap()).await;
        }
    }
    let rate = admitted as f64 / spent.as_secs_f64();
    assert!((98_500.0..=100_100.0).contains(&rate), "{rate} a second");
}

#[tokio::test]
async fn the_clients_clock_is_never_sent() {
    require!("redis-server");
    let server = Server::start();
    let limiter = RateLimiter::new(Quota::per_hour(5), backend(&server));
    let _ = limiter.check("warm").await;
    let mut lines = BufReader::new(server.monitor());
    let mut evalsha = || {
        let mut line = String::new();
        loop {
            line.clear();
            lines.read_line(&mut line).unwrap();
            if line.contains("\"EVALSHA\"") {
                return line[line.find('"').unwrap()..].to_owned();
            }
        }
    };
    // The same question at two moments is the same bytes.
    let _ = limiter.check("same").await;
    let first = evalsha();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let _ = limiter.check("same").await;
    assert_eq!(first, evalsha());
}

#[tokio::test]
async fn a_client_with_another_clock_gets_nothing_more() {
    require!("redis-server");
    let server = Server::start();
    let limiter = RateLimiter::new(Quota::per_hour(10), backend(&server));
    for _ in 0..5 {
        assert!(limiter.check("shared").await.is_allowed());
    }
    // Another process, an hour ahead where the tool for that is installed.
    let skewed = std::process::Command::new("faketime")
        .arg("--version")
        .output()
        .is_ok();
    let this = std::env::current_exe().unwrap();
    let mut child = if skewed {
        let mut faketime = std::process::Command::new("faketime");
        faketime.args(["-f", "+1h"]).arg(this);
        faketime
    } else {
        println!("faketime is not installed: the other process has the same clock");
        std::process::Command::new(this)
    };
    let status = child
        .args(["--exact", "other_process", "--ignored", "--nocapture"])
        .env("THROTTLE_KIT_TEST_REDIS", server.url())
        .status()
        .unwrap();
    assert!(status.success());
    assert!(!limiter.check("shared").await.is_allowed());
}

/// The other process of the test above.
#[tokio::test]
#[ignore = "a part of another test"]
async fn other_process() {
    let Ok(url) = std::env::var("THROTTLE_KIT_TEST_REDIS") else {
        return;
    };
    let backend = RedisBackend::single(url).timeout(PATIENT).build().unwrap();
    let limiter = RateLimiter::new(Quota::per_hour(10), backend);
    let mut admitted = 0;
    for _ in 0..20 {
        let decision = limiter.check("shared").await;
        assert!(!decision.is_degraded());
        admitted += u32::from(decision.is_allowed());
    }
    assert_eq!(admitted, 5);
}

#[tokio::test]
async fn flushed_scripts_are_sent_again() {
    require!("redis-server");
    let server = Server::start();
    let limiter = RateLimiter::new(Quota::per_hour(5), backend(&server));
    assert_eq!(limiter.check("a").await.remaining(), 4);
    server.command("SCRIPT FLUSH");
    let decision = limiter.check("a").await;
    assert_eq!((decision.remaining(), decision.is_degraded()), (3, false));
    assert_eq!(limiter.check("a").await.remaining(), 2);
    assert_eq!(server.calls("eval"), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_at_the_same_time_share_a_call() {
    require!("redis-server");
    let server = Server::start();
    let limiter = RateLimiter::new(Quota::per_hour(1000), backend(&server));
    limiter.backend().ready().await.unwrap();
    let before = server.calls("evalsha");
    let mut set = tokio::task::JoinSet::new();
    for task in 0..100_u32 {
        let limiter = limiter.clone();
        set.spawn(async move {
            for _ in 0..20 {
                assert!(!limiter.check(&(task % 10)).await.is_degraded());
            }
        });
    }
    set.join_all().await;
    let calls = server.calls("evalsha") - before;
    assert!(calls < 1000, "{calls} calls for 2000 checks");
    for key in 0..10_u32 {
        assert_eq!(limiter.peek(&key).await.remaining(), 800);
    }
}

#[tokio::test]
async fn joint_checks_charge_all_or_none() {
    require!("redis-server");
    let server = Server::start();
    let backend = backend(&server);
    let (small, large) = (Quota::per_hour(2), Quota::per_hour(100));
    let demands = || [Demand::new("minute", large), Demand::new("day", small)];
    let before = server.calls("evalsha") + server.calls("eval");
    let first = backend.apply_all(&demands()).await;
    assert!(first.decision.is_allowed());
    assert_eq!((first.binding, first.decision.remaining()), (Some(1), 1));
    assert!(backend.apply_all(&demands()).await.decision.is_allowed());
    let refused = backend.apply_all(&demands()).await;
    assert_eq!(refused.binding, Some(1));
    assert_eq!(refused.decision.outcome(), Outcome::Denied);
    // One that was not there: EVALSHA, then EVAL.
    assert_eq!(server.calls("evalsha") + server.calls("eval") - before, 4);
    let peek = backend
        .apply(key("minute"), &large, 1, Operation::Peek)
        .await;
    assert_eq!(peek.remaining(), 98, "the refusal charged nothing");

    // A debt beyond a quota's window is cut to it even so, or it would never be paid.
    let year = Quota::new(1, Duration::from_secs(365 * 86_400), 5);
    let _ = backend.apply(key("cut"), &year, 5, Operation::Check).await;
    let cut = [Demand::new("cut", small), Demand::new("minute", large)];
    assert!(!backend.apply_all(&cut).await.decision.is_allowed());
    let peek = backend.apply(key("cut"), &year, 1, Operation::Peek).await;
    assert_eq!(peek.remaining(), 4);

    // One key twice counts twice.
    let twice = [Demand::new("t", small).cells(2), Demand::new("t", small)];
    assert!(!backend.apply_all(&twice).await.decision.is_allowed());
    let peek = backend.apply(key("t"), &small, 1, Operation::Peek).await;
    assert_eq!(peek.remaining(), 2);
    let impossible = [Demand::new("t", small), Demand::new("u", small).cells(3)];
    let joint = backend.apply_all(&impossible).await;
    assert_eq!(
        (joint.binding, joint.decision.outcome()),
        (Some(1), Outcome::InsufficientCapacity)
    );
    assert!(backend.apply_all(&[]).await.decision.is_allowed());
}

#[tokio::test]
async fn a_key_of_another_program_is_an_error_of_its_own() {
    require!("redis-server");
    let server = Server::start();
    server.command("LPUSH throttle:0::b:list x");
    server.command("SET throttle:0::b:text 16-bytes-of-text");
    server.command("SET throttle:0::b:word nonsense");
    let backend = backend(&server);
    let quota = Quota::per_hour(5);
    let foreign = backend
        .try_apply(key("list"), &quota, 1, Operation::Check)
        .await;
    assert!(
        matches!(foreign, Err(RedisStoreError::ForeignKey)),
        "{foreign:?}"
    );
    for (name, remaining) in [("word", 4), ("text", 4)] {
        let decision = backend
            .try_apply(key(name), &quota, 1, Operation::Check)
            .await
            .unwrap();
        assert_eq!(decision.remaining(), remaining, "{name}");
    }
    let joint = [Demand::new("fine", quota), Demand::new("list", quota)];
    assert!(backend.try_apply_all(&joint).await.is_err());
    let fine = backend
        .try_apply(key("fine"), &quota, 1, Operation::Peek)
        .await
        .unwrap();
    assert_eq!(fine.remaining(), 5, "nothing was charged");
    assert!(
        backend
            .apply(key("list"), &quota, 1, Operation::Check)
            .await
            .is_degraded()
    );
}

#[tokio::test]
async fn policies_answer_when_it_is_down() {
    require!("redis-server");
    let mut server = Server::start();
    let limiter = |policy| {
        let backend = RedisBackend::single(server.url())
            .timeout(Duration::from_millis(300))
            .when_down(policy)
            .build()
            .unwrap();
        RateLimiter::new(Quota::per_hour(5), backend)
    };
    let all =
        [WhenDown::Open, WhenDown::Closed, WhenDown::Local].map(|policy| (policy, limiter(policy)));
    server.kill();
    for (policy, limiter) in &all {
        let mut admitted = 0;
        for _ in 0..20 {
            let decision = limiter.check("a").await;
            assert!(decision.is_degraded());
            admitted += u32::from(decision.is_allowed());
        }
        let expected = match policy {
            WhenDown::Open => 20,
            WhenDown::Closed => 0,
            WhenDown::Local => 5,
        };
        assert_eq!(admitted, expected, "{policy:?}");
        let joint = limiter.check_all(&[limiter.demand("j")]).await;
        assert!(joint.decision.is_degraded());
        assert_eq!(joint.decision.is_allowed(), *policy != WhenDown::Closed);
    }
    server.restart();
    for (policy, limiter) in &all {
        recover(limiter).await;
        assert_eq!(limiter.check(&format!("{policy:?}")).await.remaining(), 4);
    }
}

/// Waits until `limiter` answers without its policy.
async fn recover(limiter: &RateLimiter<RedisBackend>) -> Duration {
    let start = Instant::now();
    while limiter.peek("recovery").await.is_degraded() {
        assert!(start.elapsed() < Duration::from_secs(15), "no recovery");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    start.elapsed()
}

#[tokio::test]
async fn a_restart_heals_by_itself() {
    require!("redis-server");
    let mut server = Server::start();
    let limiter = RateLimiter::new(Quota::per_hour(5), backend(&server));
    assert!(!limiter.check("a").await.is_degraded());
    for _ in 0..3 {
        server.restart();
        recover(&limiter).await;
        assert_eq!(limiter.check("a").await.remaining(), 4);
    }
}

#[tokio::test]
async fn a_server_that_hangs_costs_one_timeout_not_all() {
    require!("redis-server");
    let server = Server::start();
    let timeout = Duration::from_millis(200);
    let backend = RedisBackend::single(server.url())
        .timeout(timeout)
        .when_down(WhenDown::Open)
        .build()
        .unwrap();
    let limiter = RateLimiter::new(Quota::per_hour(1000), backend);
    recover(&limiter).await;
    server.signal("STOP");
    let start = Instant::now();
    let (mut checks, mut slow) = (0_u32, 0_u32);
    while start.elapsed() < Duration::from_secs(3) {
        let asked = Instant::now();
        let decision = limiter.check("a").await;
        assert!(decision.is_degraded() && decision.is_allowed());
        let took = asked.elapsed();
        assert!(took < timeout * 4, "{took:?}");
        slow += u32::from(took > timeout / 2);
        checks += 1;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    server.signal("CONT");
    assert!(slow < 12 && checks > 200, "{slow} slow ones of {checks}");
    let took = recover(&limiter).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test]
async fn it_starts_while_redis_is_down_and_says_so_when_asked() {
    let port = redis_server::free_port();
    let backend = RedisBackend::single(format!("redis://127.0.0.1:{port}/"))
        .timeout(Duration::from_millis(500))
        .build()
        .unwrap();
    let error = backend.ready().await.unwrap_err();
    assert!(matches!(error, RedisStoreError::Server(_)), "{error}");
    require!("redis-server");
    let _server = Server::start_at(port, &[]);
    backend.ready().await.unwrap();
}

#[test]
fn it_outlives_a_runtime_and_errs_outside_of_one() {
    require!("redis-server");
    let server = Server::start();
    let limiter = RateLimiter::new(Quota::per_hour(5), backend(&server));
    for left in [4, 3, 2] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let decision = runtime.block_on(limiter.check("a"));
        assert_eq!(
            (decision.remaining(), decision.is_degraded()),
            (left, false)
        );
    }
    let outside = std::pin::pin!(limiter.check("a"));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(decision) = outside.poll(&mut context) else {
        panic!("it waits outside of a runtime");
    };
    assert!(decision.is_degraded());
}

#[tokio::test]
async fn a_full_queue_is_the_policys() {
    require!("redis-server");
    let server = Server::start();
    let backend = RedisBackend::single(server.url())
        .timeout(PATIENT)
        .waiting_max(8)
        .when_down(WhenDown::Closed)
        .build()
        .unwrap();
    backend.ready().await.unwrap();
    server.signal("STOP");
    let limiter = RateLimiter::new(Quota::per_hour(1000), backend);
    let mut set = tokio::task::JoinSet::new();
    for task in 0..1000_u32 {
        let limiter = limiter.clone();
        set.spawn(async move { limiter.check(&task).await.is_degraded() });
    }
    // Those that found no room are answered while the others wait.
    for _ in 0..900 {
        assert!(set.join_next().await.unwrap().unwrap());
    }
    server.signal("CONT");
    let served = set
        .join_all()
        .await
        .into_iter()
        .filter(|degraded| !degraded)
        .count();
    assert!(served >= 8, "{served}");
}

#[tokio::test]
async fn leases_save_calls_and_never_admit_too_much() {
    require!("redis-server");
    let server = Server::start();
    let leasing = || {
        let backend = RedisBackend::single(server.url())
            .timeout(PATIENT)
            .when_down(WhenDown::Closed)
            .lease(100, Duration::from_secs(60))
            .build()
            .unwrap();
        RateLimiter::new(Quota::per_hour(1000), backend)
    };
    let (a, b) = (leasing(), leasing());
    a.backend().ready().await.unwrap();
    let before = server.calls("evalsha");
    for left in (0..300).rev() {
        let decision = a.check("k").await;
        assert!(decision.is_allowed());
        assert_eq!(decision.remaining(), 700 + left, "counts down one by one");
    }
    assert_eq!(server.calls("evalsha") - before, 3);

    // Both take what there is, and not one more.
    let mut admitted = 300;
    let (mut a_open, mut b_open) = (true, true);
    while a_open || b_open {
        for (limiter, open) in [(&a, &mut a_open), (&b, &mut b_open)] {
            if *open {
                *open = limiter.check("k").await.is_allowed();
                admitted += u32::from(*open);
            }
        }
    }
    assert_eq!(admitted, 1000);

    // What one holds, the other cannot have; a reset drops it.
    assert!(a.check("r").await.is_allowed());
    assert_eq!(b.peek("r").await.remaining(), 900);
    assert_eq!(a.reset("r").await.remaining(), 1000);
    let before = server.calls("evalsha");
    assert_eq!(a.check("r").await.remaining(), 999);
    assert_eq!(server.calls("evalsha") - before, 1, "asked anew");
    // A refund goes to redis.
    let taken = a.check("r").await;
    let _ = a.refund("r", taken).await;
    assert_eq!(b.peek("r").await.remaining(), 901);
}

#[tokio::test]
async fn leases_end() {
    require!("redis-server");
    let server = Server::start();
    let backend = RedisBackend::single(server.url())
        .timeout(PATIENT)
        .lease(100, Duration::from_millis(200))
        .build()
        .unwrap();
    let limiter = RateLimiter::new(Quota::per_hour(1000), backend);
    limiter.backend().ready().await.unwrap();
    let before = server.calls("evalsha");
    assert_eq!(limiter.check("k").await.remaining(), 999);
    tokio::time::sleep(Duration::from_millis(250)).await;
    assert_eq!(
        limiter.check("k").await.remaining(),
        899,
        "99 were stranded"
    );
    assert_eq!(server.calls("evalsha") - before, 2);
    // A burst too small for a lease is asked for one by one.
    let small = RateLimiter::new(Quota::per_hour(2), limiter.backend().clone()).with_namespace("s");
    assert_eq!(small.check("k").await.remaining(), 1);
    assert_eq!(small.check("k").await.remaining(), 0);
    assert!(!small.check("k").await.is_allowed());
    // So is more than a lease.
    assert_eq!(limiter.check_n("big", 150).await.remaining(), 850);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_name_the_new_primary() {
    require!("redis-server");
    require!("redis-sentinel");
    let mut primary = Server::start();
    let replica = Server::start_with(&["--replicaof", "127.0.0.1", &primary.port.to_string()]);
    wait_for("replication", Duration::from_secs(10), || {
        replica
            .command("INFO replication")
            .contains("master_link_status:up")
    });
    let sentinel = Server::start_sentinel(primary.port);
    wait_for(
        "the sentinel knows the replica",
        Duration::from_secs(15),
        || {
            sentinel
                .command("SENTINEL replicas limits")
                .contains(&replica.port.to_string())
        },
    );
    let backend = RedisBackend::sentinel([sentinel.url()], "limits")
        .timeout(Duration::from_secs(5))
        .when_down(WhenDown::Closed)
        .build()
        .unwrap();
    let limiter = RateLimiter::new(Quota::per_hour(100), backend);
    recover(&limiter).await;
    assert_eq!(limiter.check_n("a", 60).await.remaining(), 40);
    wait_for("the charge is replicated", Duration::from_secs(5), || {
        replica.command("STRLEN throttle:0::b:a").starts_with(":16")
    });
    primary.kill();
    recover(&limiter).await;
    // The sentinel ends a server's connections when it gives it its role, which on a
    // busy machine may come after the first answer; peeking takes nothing.
    let start = Instant::now();
    let decision = loop {
        let decision = limiter.peek("a").await;
        if !decision.is_degraded() {
            break decision;
        }
        assert!(start.elapsed() < Duration::from_secs(15), "no recovery");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(
        decision.remaining(),
        40,
        "the charge went with the failover"
    );
    assert!(replica.command("ROLE").contains("master"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_spreads_keys_moves_slots_and_loses_nodes() {
    require!("redis-server");
    let mut cluster = Cluster::start();
    let backend = RedisBackend::cluster(cluster.urls())
        .timeout(Duration::from_secs(2))
        .when_down(WhenDown::Closed)
        .build()
        .unwrap();
    let limiter = RateLimiter::new(Quota::per_hour(100), backend.clone());
    let mut set = tokio::task::JoinSet::new();
    for task in 0..60_u32 {
        let limiter = limiter.clone();
        set.spawn(async move {
            for _ in 0..10 {
                let decision = limiter.check(&format!("key {task}")).await;
                assert!(!decision.is_degraded());
            }
        });
    }
    set.join_all().await;
    for node in &cluster.0 {
        assert!(
            !node.command("DBSIZE").starts_with(":0"),
            "every node has some"
        );
    }
    for task in 0..60_u32 {
        assert_eq!(limiter.peek(&format!("key {task}")).await.remaining(), 90);
    }
    joint_on_a_cluster(&backend).await;
    resharding(&cluster, &limiter).await;

    // A node that is gone takes its slots with it, and no others.
    let key_of = |node: usize| {
        (0..).map(|i| format!("probe {i}")).find(|key| {
            let reply = cluster.0[0].command(&format!("CLUSTER KEYSLOT \"throttle:0::b:{key}\""));
            let slot = reply.lines().next().unwrap()[1..].parse().unwrap();
            Cluster::owner(slot) == node
        })
    };
    let (gone, stays) = (key_of(2).unwrap(), key_of(0).unwrap());
    cluster.0[2].kill();
    assert!(limiter.check(&gone).await.is_degraded());
    for _ in 0..20 {
        assert!(!limiter.check(&stays).await.is_degraded());
    }
}

async fn joint_on_a_cluster(backend: &RedisBackend) {
    let quota = Quota::per_hour(2);
    let tagged = [
        Demand::new("{t}:minute", quota),
        Demand::new("{t}:day", quota),
    ];
    let joint = backend.try_apply_all(&tagged).await.unwrap();
    assert_eq!(joint.decision.remaining(), 1);
    let namespace = Namespace::new("{api}");
    let one = [
        Demand::new("x", quota).in_namespace(&namespace),
        Demand::new("y", quota).in_namespace(&namespace),
    ];
    assert!(backend.try_apply_all(&one).await.is_ok());

    let apart = [Demand::new("p", quota), Demand::new("q", quota).cells(2)];
    let error = backend.try_apply_all(&apart).await.unwrap_err();
    assert!(
        matches!(error, RedisStoreError::CrossSlot { demand: 1, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("{tag}"), "{error}");
    // A limiter has its answer nevertheless, and nothing stays charged on a refusal.
    assert!(backend.apply_all(&apart).await.decision.is_allowed());
    assert!(!backend.apply_all(&apart).await.decision.is_allowed());
    let peek = backend.apply(key("p"), &quota, 1, Operation::Peek).await;
    assert_eq!(peek.remaining(), 1);
}

/// Keys keep their debt while their slot moves, and are served throughout.
async fn resharding(cluster: &Cluster, limiter: &RateLimiter<RedisBackend>) {
    let name = "{moving}:a";
    let reply = cluster.0[0].command("CLUSTER KEYSLOT moving");
    let slot: u16 = reply.lines().next().unwrap()[1..].parse().unwrap();
    let from = Cluster::owner(slot);
    let to = (from + 1) % 3;
    assert_eq!(limiter.check_n(name, 10).await.remaining(), 90);

    let traffic = tokio::spawn({
        let limiter = limiter.clone();
        async move {
            let mut admitted = 0;
            for i in 0..200 {
                // A new key now and then, which the old node sends on.
                let other = format!("{{moving}}:{}", i / 10);
                let (a, b) = tokio::join!(limiter.check_n(&other, 1), limiter.check("{moving}:b"));
                assert!(!a.is_degraded() && !b.is_degraded());
                admitted += u32::from(b.is_allowed());
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            admitted
        }
    });
    tokio::task::block_in_place(|| {
        std::thread::sleep(Duration::from_millis(50));
        cluster.move_slot(slot, from, to, || {
            std::thread::sleep(Duration::from_millis(100));
        });
    });
    assert_eq!(
        traffic.await.unwrap(),
        100,
        "the quota, not more for the move"
    );
    assert_eq!(limiter.check(name).await.remaining(), 89);
    let keys = cluster.0[to].command(&format!("CLUSTER COUNTKEYSINSLOT {slot}"));
    assert!(!keys.starts_with(":0"), "{keys}");
}
