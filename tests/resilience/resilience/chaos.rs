//! Servers in processes of their own that are killed and come back, under load.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use quill::client::{Backoff, Balance, RetryPolicy};
use quill_tests_resilience::{FlakyClient, FlakyRequest};
use tokio::time::Instant;

use crate::peers::{Way, failing, ways};

const SERVERS: usize = 3;
/// Callers at a time in each protocol over each version of HTTP, with retries
/// and without.
const CALLERS: usize = 2;
/// How long it lasts at least, and at most where there is little time for it.
const LASTING: Duration = Duration::from_secs(6);
const LASTING_MAX: Duration = Duration::from_secs(120);
const KILLS_MIN: usize = 5;
const ANSWERS_MIN: u64 = 100;

/// A server that is killed when this is dropped.
struct Peer(Child);

impl Peer {
    /// Starts a server, and waits until it listens.
    fn start(address: SocketAddr, log: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_resilience-peer"))
            .arg(address.to_string())
            .arg(log)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the peer starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("it was asked for");
        BufReader::new(out)
            .read_line(&mut line)
            .expect("it is read");
        assert_eq!(line, "ready\n");
        Self(child)
    }
}

impl Drop for Peer {
    /// SIGKILL: it has no time for a last word.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What callers have seen.
#[derive(Default)]
struct Tally {
    is_over: AtomicBool,
    next: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
}

/// Calls one after the other, until it is over; what went wrong that must not.
async fn call(client: FlakyClient, retries: bool, way: Way, tally: Arc<Tally>) -> Vec<String> {
    let mut wrong = Vec::new();
    while !tally.is_over.load(Ordering::SeqCst) {
        let number = tally.next.fetch_add(1, Ordering::SeqCst);
        let got = client.get(failing(format!("get {number}"), 0)).await;
        if let Err(error) = got
            && (retries || !error.maybe_processed())
        {
            wrong.push(format!(
                "{way:?}: a call that may be repeated was lost: {error:?}"
            ));
        }
        // It lasts, so that servers are killed while it runs.
        let set = FlakyRequest {
            delay_ms: 5,
            slow: 1,
            ..failing(format!("set {number}"), 0)
        };
        match client.set(set).await {
            Ok(_) => tally.answered.fetch_add(1, Ordering::SeqCst),
            Err(error) if error.maybe_processed() => tally.failed.fetch_add(1, Ordering::SeqCst),
            Err(error) => {
                wrong.push(format!(
                    "{way:?}: a call that did not run was lost: {error:?}"
                ));
                0
            }
        };
    }
    wrong
}

/// A log of the test's own, which is gone with it.
struct Log(PathBuf);

impl Drop for Log {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_is_lost_or_made_twice_when_servers_are_killed() {
    let name = format!("quill-resilience-{}.log", std::process::id());
    let log = Log(std::env::temp_dir().join(name));
    let addresses: Vec<SocketAddr> = (0..SERVERS)
        .map(|_| std::net::TcpListener::bind("127.0.0.1:0").expect("a port"))
        .collect::<Vec<_>>()
        .iter()
        .map(|listener| listener.local_addr().expect("its address"))
        .collect();
    let start = |address| Peer::start(address, &log.0);
    let mut peers: Vec<Option<Peer>> = addresses.iter().map(|a| Some(start(*a))).collect();

    let tally = Arc::new(Tally::default());
    let urls: Vec<_> = addresses
        .iter()
        .map(|address| format!("http://{address}"))
        .collect();
    let mut callers = Vec::new();
    for way in ways() {
        let reconnect = Backoff::new(Duration::from_millis(20), Duration::from_millis(200));
        let builder = way.builder("").endpoints(&urls);
        // However late a server is back, a call is not for nobody.
        let balance = Balance::least_loaded().wait_for_ready();
        let builder = builder.balance(balance.reconnect(reconnect));
        let retrying = builder.clone().retry(RetryPolicy::new());
        // What never ran is for another server, whether or not there are retries.
        for (builder, retries) in [(retrying, true), (builder, false)] {
            let client = FlakyClient::new(builder.build().expect("a client"));
            for _ in 0..CALLERS {
                let call = call(client.clone(), retries, way, Arc::clone(&tally));
                callers.push(tokio::spawn(call));
            }
        }
    }
    let begun = Instant::now();
    let mut kills = 0;
    let answered = || tally.answered.load(Ordering::SeqCst);
    let is_enough = |kills| kills >= KILLS_MIN && answered() >= ANSWERS_MIN;
    while begun.elapsed() < LASTING || !is_enough(kills) && begun.elapsed() < LASTING_MAX {
        let victim = kills % SERVERS;
        tokio::time::sleep(Duration::from_millis(200)).await;
        tokio::task::block_in_place(|| peers[victim] = None);
        kills += 1;
        tokio::time::sleep(Duration::from_millis(100)).await;
        tokio::task::block_in_place(|| peers[victim] = Some(start(addresses[victim])));
    }
    tally.is_over.store(true, Ordering::SeqCst);
    let mut wrong = Vec::new();
    for caller in callers {
        wrong.extend(caller.await.expect("it does not panic"));
    }
    drop(peers);
    assert!(
        wrong.is_empty(),
        "{} went wrong: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(5)]
    );

    let mut runs = HashMap::<String, u32>::new();
    for line in std::fs::read_to_string(&log.0).expect("the log").lines() {
        *runs.entry(line.to_owned()).or_default() += 1;
    }
    let twice: Vec<_> = runs
        .iter()
        .filter(|(id, runs)| id.starts_with("set") && **runs > 1)
        .collect();
    assert!(twice.is_empty(), "{twice:?}");
    let (answered, failed) = (answered(), tally.failed.load(Ordering::SeqCst));
    let ran = runs.keys().filter(|id| id.starts_with("set")).count() as u64;
    let seen = format!("{kills} kills; {answered} answered, {failed} broken off, {ran} run");
    assert!(ran >= answered && ran <= answered + failed, "{seen}");
    assert!(is_enough(kills), "there was no load: {seen}");
}
