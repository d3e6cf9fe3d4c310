//! Budgets in a SQLite file, across restarts, kills and full disks.

#![cfg(feature = "sqlite")]
#![allow(clippy::print_stdout, reason = "a child tells its parent what it did")]

#[path = "redis_server/mod.rs"]
mod redis_server;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use redis_server::Directory;
use throttle_kit::store::sqlite::SqliteStoreError;
use throttle_kit::{
    Demand, Key, KeyRef, Operation, Outcome, Quota, RateLimitBackend, RateLimiter, SqliteBackend,
    WhenDown,
};

fn key(name: &str) -> KeyRef<'_> {
    KeyRef::new(<str as Key>::KIND, name.as_bytes())
}

#[tokio::test]
async fn every_operation() {
    let directory = Directory::new();
    let backend = SqliteBackend::open(directory.path().join("a.db")).unwrap();
    let limiter = RateLimiter::new(Quota::per_hour(5), backend);
    assert_eq!(limiter.peek("a").await.remaining(), 5);
    let first = limiter.check("a").await;
    assert_eq!((first.remaining(), first.is_degraded()), (4, false));
    assert_eq!(limiter.check_n("a", 4).await.remaining(), 0);
    assert_eq!(limiter.check("a").await.outcome(), Outcome::Denied);
    assert_eq!(
        limiter.check_n("b", 6).await.outcome(),
        Outcome::InsufficientCapacity
    );
    assert_eq!(limiter.refund("a", first).await.remaining(), 1);
    assert_eq!(limiter.reset("a").await.remaining(), 5);
    assert_eq!(limiter.check("a").await.remaining(), 4);
}

#[tokio::test]
async fn joint_checks_charge_all_or_none() {
    let directory = Directory::new();
    let backend = SqliteBackend::open(directory.path().join("a.db")).unwrap();
    let (small, large) = (Quota::per_hour(1), Quota::per_hour(9));
    let both = [Demand::new("x", large), Demand::new("y", small)];
    assert!(backend.apply_all(&both).await.decision.is_allowed());
    let refused = backend.apply_all(&both).await;
    assert_eq!(
        (refused.binding, refused.decision.outcome()),
        (Some(1), Outcome::Denied)
    );
    let peek = backend.apply(key("x"), &large, 1, Operation::Peek).await;
    assert_eq!(peek.remaining(), 8);
    let twice = [Demand::new("z", small), Demand::new("z", small)];
    assert!(!backend.apply_all(&twice).await.decision.is_allowed());
    let peek = backend.apply(key("z"), &small, 1, Operation::Peek).await;
    assert_eq!(peek.remaining(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_are_exact() {
    let directory = Directory::new();
    let backend = SqliteBackend::open(directory.path().join("a.db")).unwrap();
    let limiter = RateLimiter::new(Quota::per_hour(300), backend);
    let mut set = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let limiter = limiter.clone();
        set.spawn(async move {
            let mut admitted = 0;
            for _ in 0..20 {
                admitted += u32::from(limiter.check("hot").await.is_allowed());
            }
            admitted
        });
    }
    assert_eq!(set.join_all().await.into_iter().sum::<u32>(), 300);
}

/// What the killed process answered is still charged.
#[tokio::test]
async fn a_killed_process_forgets_nothing() {
    let directory = Directory::new();
    let path = directory.path().join("a.db");
    let mut charged = 0;
    for _ in 0..3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "process_that_is_killed",
                "--ignored",
                "--nocapture",
            ])
            .env("THROTTLE_KIT_TEST_SQLITE", &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut answered = 0;
        while answered < 50 {
            let line = lines.next().expect("the child goes on").unwrap();
            answered += u32::from(line.contains("answered"));
        }
        // SIGKILL, in the middle of its work.
        child.kill().unwrap();
        child.wait().unwrap();
        answered += lines
            .filter(|line| line.as_ref().is_ok_and(|l| l.contains("answered")))
            .count() as u32;
        charged += answered;
        let backend = SqliteBackend::open(&path).unwrap();
        let slow = quota_that_hardly_refills();
        let peek = backend
            .try_apply(key("slow"), &slow, 1, Operation::Peek)
            .await
            .unwrap();
        let kept = slow.burst() - peek.remaining();
        // One may have been committed and not yet told.
        assert!(
            (charged..=charged + 1).contains(&kept),
            "{kept} of {charged} were kept"
        );
        charged = kept;
    }
}

fn quota_that_hardly_refills() -> Quota {
    Quota::new(1, Duration::from_secs(3600), 500_000)
}

/// The process of the test above.
#[tokio::test]
#[ignore = "a part of another test"]
async fn process_that_is_killed() {
    let Ok(path) = std::env::var("THROTTLE_KIT_TEST_SQLITE") else {
        return;
    };
    let backend = SqliteBackend::open(path).unwrap();
    let slow = quota_that_hardly_refills();
    for _ in 0..200_000 {
        let decision = backend
            .try_apply(key("slow"), &slow, 1, Operation::Check)
            .await
            .unwrap();
        assert!(decision.is_allowed());
        println!("answered");
    }
}

#[tokio::test]
async fn two_handles_of_one_file_share_it() {
    let directory = Directory::new();
    let path = directory.path().join("a.db");
    let quota = Quota::per_hour(100);
    let limiters = [(); 2].map(|()| RateLimiter::new(quota, SqliteBackend::open(&path).unwrap()));
    let mut set = tokio::task::JoinSet::new();
    for limiter in limiters {
        set.spawn(async move {
            let mut admitted = 0;
            for _ in 0..100 {
                let decision = limiter.check("k").await;
                assert!(!decision.is_degraded());
                admitted += u32::from(decision.is_allowed());
            }
            admitted
        });
    }
    assert_eq!(set.join_all().await.into_iter().sum::<u32>(), 100);
}

#[tokio::test]
async fn past_keys_are_pruned() {
    let directory = Directory::new();
    let path = directory.path().join("a.db");
    let backend = SqliteBackend::open(&path).unwrap();
    let short = Quota::new(1, Duration::from_millis(20), 1);
    for i in 0..3000_u32 {
        let name = i.to_string();
        let _ = backend
            .try_apply(key(&name), &short, 1, Operation::Check)
            .await
            .unwrap();
    }
    tokio::time::sleep(Duration::from_millis(30)).await;
    // As many writes again look at all rows there are.
    for _ in 0..300 {
        let _ = backend
            .try_apply(key("steady"), &short, 1, Operation::Reset)
            .await
            .unwrap();
        let _ = backend
            .try_apply(key("steady"), &short, 1, Operation::Check)
            .await
            .unwrap();
    }
    let rows: i64 = rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("SELECT count(*) FROM budgets", [], |row| row.get(0))
        .unwrap();
    assert!(rows < 10, "{rows} rows");
}

#[tokio::test]
async fn a_full_file_serves_the_keys_it_has() {
    let directory = Directory::new();
    let path = directory.path().join("a.db");
    let backend = SqliteBackend::builder(&path)
        .bytes_max(64 << 10)
        .when_down(WhenDown::Closed)
        .open()
        .unwrap();
    let quota = Quota::per_hour(10);
    let mut refused = None;
    for i in 0..10_000_u32 {
        let name = format!("a key of some length so that pages fill {i}");
        match backend
            .try_apply(key(&name), &quota, 1, Operation::Check)
            .await
        {
            Ok(decision) => assert!(decision.is_allowed()),
            Err(error) => {
                refused = Some((i, error));
                break;
            }
        }
    }
    let (i, error) = refused.expect("a bound");
    assert!(i > 100, "{i}");
    assert!(matches!(error, SqliteStoreError::Failed(_)), "{error}");
    assert!(error.to_string().contains("full"), "{error}");
    let known = "a key of some length so that pages fill 0";
    let decision = backend.apply(key(known), &quota, 1, Operation::Check).await;
    assert_eq!((decision.remaining(), decision.is_degraded()), (8, false));
    let fresh = backend
        .apply(
            key("another key of a length that needs a page"),
            &quota,
            1,
            Operation::Peek,
        )
        .await;
    assert!(!fresh.is_degraded(), "peeking takes no room");
    assert!(std::fs::metadata(&path).unwrap().len() <= 64 << 10);
}

#[test]
fn what_cannot_be_opened_says_why() {
    let directory = Directory::new();
    let missing = directory.path().join("no such directory").join("a.db");
    let error = SqliteBackend::open(&missing).unwrap_err().to_string();
    assert!(error.contains("no such directory"), "{error}");

    let other = directory.path().join("other.db");
    rusqlite::Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (x)")
        .unwrap();
    let error = SqliteBackend::open(&other).unwrap_err().to_string();
    assert!(error.contains("another program"), "{error}");

    let text = directory.path().join("text");
    std::fs::write(
        &text,
        "this is no database, and longer than a header of 100 bytes is ".repeat(9),
    )
    .unwrap();
    let error = SqliteBackend::open(&text).unwrap_err().to_string();
    assert!(error.contains("not a database"), "{error}");

    let error = SqliteBackend::open(":memory:").unwrap_err().to_string();
    assert!(error.contains("write-ahead log"), "{error}");
}

#[test]
fn it_needs_no_runtime() {
    let directory = Directory::new();
    let backend = SqliteBackend::open(directory.path().join("a.db")).unwrap();
    let limiter = RateLimiter::new(Quota::per_hour(5), backend);
    let decision = futures_executor(limiter.check("a"));
    assert_eq!(decision.remaining(), 4);
}

/// Polls with a waker that unparks this thread.
fn futures_executor<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}
