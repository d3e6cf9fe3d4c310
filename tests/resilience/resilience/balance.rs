//! Several servers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use quill::auth::{ApiKeyValidator, AuthLayer, Identity};
use quill::client::{Backoff, Balance, HealthCheck, Outliers, Token, Tokens};
use quill::{Code, Request, Server, TransportError, TransportErrorKind};
use quill_health::Status;
use quill_tests_resilience::{Flaky, FlakyClient, FlakyRequest, FlakyServer};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::peers::{Way, builder, client, closed_url, eventually, failing, serve_named, ways};

/// How many of `calls` calls each server answered.
async fn spread(client: &FlakyClient, calls: usize) -> BTreeMap<String, usize> {
    let mut spread = BTreeMap::new();
    for _ in 0..calls {
        let answer = client.get(failing("x", 0)).await.expect("an answer");
        *spread.entry(answer.into_inner().server).or_default() += 1;
    }
    spread
}

fn counts(all: &[(&str, usize)]) -> BTreeMap<String, usize> {
    all.iter()
        .map(|(name, count)| ((*name).to_owned(), *count))
        .collect()
}

fn soon(balance: Balance) -> Balance {
    balance.reconnect(Backoff::new(
        Duration::from_millis(20),
        Duration::from_millis(100),
    ))
}

/// A client of several servers that are all connected.
async fn connected(way: Way, urls: &[&str], balance: Balance) -> FlakyClient {
    let built = way
        .builder("")
        .endpoints(urls)
        .balance(soon(balance))
        .build();
    let client = built.expect("a client");
    client.ready().await.expect("a server");
    let flaky = FlakyClient::new(client);
    // One is ready; the others are as soon as they have answered as well.
    for _ in 0..500 {
        let calls = (0..20).map(|_| flaky.get(failing("warm", 0)));
        let answers = join_all(calls).await;
        let names: Vec<_> = answers
            .into_iter()
            .map(|answer| answer.expect("it answers").into_inner().server)
            .collect();
        if names
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len()
            == urls.len()
        {
            return flaky;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("some server never answered");
}

#[tokio::test]
async fn calls_are_spread_by_the_policy() {
    let (a, b, c) = (
        serve_named("a").await,
        serve_named("b").await,
        serve_named("c").await,
    );
    let urls = [a.url.as_str(), &b.url, &c.url];
    for way in ways() {
        let turns = connected(way, &urls, Balance::round_robin()).await;
        let even = counts(&[("a", 4), ("b", 4), ("c", 4)]);
        assert_eq!(spread(&turns, 12).await, even, "{way:?}");

        let drawn = connected(way, &urls, Balance::least_loaded()).await;
        let spread_out = spread(&drawn, 90).await;
        assert_eq!(spread_out.len(), 3, "{way:?}: {spread_out:?}");

        let first = way
            .builder("")
            .endpoints(urls)
            .balance(Balance::pick_first());
        let first = client(first);
        assert_eq!(spread(&first, 9).await, counts(&[("a", 9)]), "{way:?}");
        let answers: Vec<_> = first
            .list(failing("x", 0))
            .await
            .unwrap()
            .into_inner()
            .collect()
            .await;
        assert_eq!(answers[0].as_ref().unwrap().server, "a", "{way:?}");
        let load = first.load(stream::iter([failing("x", 0)])).await.unwrap();
        assert_eq!(load.message().server, "a", "{way:?}");
    }
}

#[tokio::test]
async fn a_slow_server_gets_fewer_calls() {
    let (a, b) = (serve_named("a").await, serve_named("b").await);
    let way = ways()[0];
    let client = connected(way, &[&a.url, &b.url], Balance::least_loaded()).await;
    // Both get some that last longer than the test; then all go to the one with
    // fewer.
    let lasting = || FlakyRequest {
        delay_ms: 600_000,
        slow: 99,
        ..failing("slow", 0)
    };
    let mut slow = JoinSet::new();
    for _ in 0..9 {
        let client = client.clone();
        slow.spawn(async move { client.get(lasting()).await });
    }
    let lasted = || [&a, &b].map(|served| served.flaky.runs("slow"));
    eventually("all of them run", || lasted().iter().sum::<u32>() == 9).await;
    let quick = spread(&client, 50).await;
    let free = match lasted() {
        [4, 5] => "a",
        [5, 4] => "b",
        lasted => panic!("{lasted:?}"),
    };
    assert_eq!(quick, counts(&[(free, 50)]));
}

#[tokio::test]
async fn a_server_that_goes_is_passed_over_and_comes_back() {
    for way in ways() {
        for balance in [Balance::round_robin(), Balance::least_loaded()] {
            let (a, b) = (serve_named("a").await, serve_named("b").await);
            let client = connected(way, &[&a.url, &b.url], balance).await;
            let address = a.server.local_addr().unwrap().to_string();
            a.server.shutdown().await;
            assert_eq!(spread(&client, 20).await, counts(&[("b", 20)]), "{way:?}");
            let again = Flaky::named("a again").serve(&address).await.unwrap();
            let begun = Instant::now();
            while !spread(&client, 2).await.contains_key("a again") {
                assert!(begun.elapsed() < Duration::from_secs(10), "{way:?}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            again.shutdown().await;
        }
    }
}

#[tokio::test]
async fn the_next_is_tried_when_the_first_is_lost() {
    let (a, b) = (serve_named("a").await, serve_named("b").await);
    for way in ways() {
        let urls = [closed_url(), a.url.clone(), b.url.clone()];
        let builder = way.builder("").endpoints(urls);
        let client = client(builder.balance(soon(Balance::pick_first())));
        assert_eq!(spread(&client, 3).await, counts(&[("a", 3)]), "{way:?}");
    }
    let hosts = [a.url.as_str(), &b.url].map(|url| url.trim_start_matches("http://"));
    let urls = format!("http://{}", hosts.join(","));
    let client = client(builder(&urls).balance(soon(Balance::pick_first())));
    assert_eq!(spread(&client, 3).await, counts(&[("a", 3)]));
    a.server.shutdown().await;
    assert_eq!(spread(&client, 3).await, counts(&[("b", 3)]));
}

#[tokio::test]
async fn servers_come_from_a_source_that_is_asked_again() {
    let (a, b) = (serve_named("a").await, serve_named("b").await);
    let urls = Arc::new(Mutex::new(vec![a.url.clone()]));
    let asked = Arc::clone(&urls);
    let source = move || {
        let urls = asked.lock().unwrap().clone();
        async move { Ok(urls) }
    };
    let every = Duration::from_secs(1);
    let client = client(
        builder("")
            .endpoints_from(source)
            .balance(Balance::round_robin().resolve_every(every)),
    );
    assert_eq!(spread(&client, 5).await, counts(&[("a", 5)]));
    // A call that is under way there ends there.
    let slow = FlakyRequest {
        delay_ms: 2_500,
        slow: 9,
        ..failing("slow", 0)
    };
    let lasting = tokio::spawn({
        let client = client.clone();
        async move { client.get(slow).await.expect("it ends").into_inner().server }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    *urls.lock().unwrap() = vec![b.url.clone()];
    let begun = Instant::now();
    while spread(&client, 2).await != counts(&[("b", 2)]) {
        assert!(begun.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(lasting.await.unwrap(), "a");
    // Those that are known stay when the source fails or has none.
    urls.lock().unwrap().clear();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(spread(&client, 5).await, counts(&[("b", 5)]));
}

#[tokio::test]
async fn without_servers_calls_fail_at_once_or_wait() {
    for way in ways() {
        let address = closed_url();
        let hasty = client(way.builder("").endpoints([&address, &closed_url()]));
        let begun = Instant::now();
        let error = hasty.set(failing("x", 0)).await.unwrap_err();
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!(error.code(), Code::Unavailable, "{way:?}");
        assert!(!error.maybe_processed(), "{way:?}");
        let kind = TransportError::of(&error).map(TransportError::kind);
        assert_eq!(kind, Some(TransportErrorKind::Connect), "{way:?}: {error}");

        let waiting = Balance::round_robin().wait_for_ready();
        let patient = client(way.builder(&address).balance(soon(waiting)));
        let request = Request::new(failing("x", 0)).with_timeout(Duration::from_millis(100));
        let error = patient.set(request).await.unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{way:?}");
        assert!(error.message().contains("waiting for a server"), "{error}");
        assert!(!error.maybe_processed(), "{way:?}");
        let waiting = patient.set(failing("x", 0));
        let late = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let address = address.strip_prefix("http://").unwrap();
            Flaky::named("late").serve(address).await.expect("it binds")
        };
        let (answer, server) = tokio::join!(waiting, late);
        assert_eq!(answer.unwrap().message().server, "late", "{way:?}");
        server.shutdown().await;
    }
    let client = builder("").endpoints([closed_url(), closed_url()]).build();
    let client = client.unwrap();
    client.ready().await.unwrap_err();
    let built = builder("").endpoints(["http://a", "ftp://b"]).build();
    assert!(built.unwrap_err().to_string().contains("ftp"));
    let nowhere = builder("")
        .endpoints_from(|| async { Ok(Vec::new()) })
        .build()
        .unwrap();
    let error = FlakyClient::new(nowhere)
        .get(failing("x", 0))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Unavailable, "{error}");
}

#[tokio::test]
async fn health_checks_carry_what_calls_carry() {
    let server = Server::builder()
        .layer(AuthLayer::new(
            ApiKeyValidator::new()
                .key("k", Identity::new("ann"))
                .as_bearer(),
        ))
        .service(quill_health::server())
        .service(FlakyServer::new(Flaky::named("a")))
        .bind("127.0.0.1:0")
        .await
        .unwrap()
        .start();
    let url = format!("http://{}", server.local_addr().unwrap());
    let check = HealthCheck::of("").every(Duration::from_millis(20));
    let check = check.timeout(Duration::from_secs(20));
    let balance = Balance::round_robin().check_health(check);
    for way in ways() {
        let with = |key: &'static str| {
            let tokens = Tokens::new(move || async move { Ok(Token::bearer(key)) });
            client(way.builder(&url).balance(balance.clone()).tokens(tokens))
        };
        assert_eq!(spread(&with("k"), 2).await, counts(&[("a", 2)]), "{way:?}");
        let error = with("another").get(failing("x", 0)).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{way:?}");
        assert!(!error.maybe_processed(), "{way:?}");
        let why = "health check failed: unauthenticated";
        assert!(error.message().contains(why), "{way:?}: {error}");
    }
    server.shutdown().await;
}

/// An HTTP/2 SETTINGS frame without settings.
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Takes connections, says these words and closes a little later; how many there
/// were is counted.
async fn closing(words: &'static [u8]) -> (String, Arc<AtomicU32>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let connects = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&connects);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = socket.write_all(words).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    (url, connects)
}

#[tokio::test]
async fn calls_fail_at_once_while_all_servers_greet_and_close() {
    let (one, _) = closing(&SETTINGS).await;
    let (other, _) = closing(&SETTINGS).await;
    // Nothing comes of it until long after the test.
    let rarely = Backoff::new(Duration::from_secs(600), Duration::from_secs(600));
    let balance = Balance::round_robin().reconnect(rarely);
    let client = client(builder("").endpoints([&one, &other]).balance(balance));
    // The first may be sent, and broken off.
    for _ in 0..20 {
        let called = tokio::time::timeout(Duration::from_secs(60), client.set(failing("x", 0)));
        let error = called.await.expect("it fails at once").unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{error}");
    }
    let error = client.set(failing("x", 0)).await.unwrap_err();
    assert!(!error.maybe_processed(), "{error}");
}

#[tokio::test]
async fn attempts_to_connect_become_rare() {
    let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
    let balance = Balance::pick_first().reconnect(backoff);
    // One that greets may get a call each time, which is sent once more on a
    // connection of its own.
    for (words, each) in [(&b""[..], 1), (&SETTINGS[..], 2)] {
        let (url, connects) = closing(words).await;
        let client = client(builder(&url).balance(balance.clone()));
        let begun = Instant::now();
        let count = || connects.load(Ordering::SeqCst);
        while begun.elapsed() < Duration::from_millis(1_000) || count() < 3 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", count());
            let request = Request::new(failing("x", 0)).with_timeout(Duration::from_secs(1));
            client.get(request).await.unwrap_err();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        // At 0, 100, 300, 700 ms and so on, a fifth off at most; and one more,
        // where the first was made by a call.
        let attempts = count() / each;
        let least = 80 * (2_u64.saturating_pow(attempts.saturating_sub(2)) - 1);
        let time = begun.elapsed();
        assert!(time.as_millis() >= least.into(), "{attempts} in {time:?}");
    }
}

#[tokio::test]
async fn a_server_whose_calls_fail_is_left_out_for_a_while() {
    let (a, b) = (serve_named("a").await, serve_named("b").await);
    for way in ways() {
        let time = Duration::from_secs(1);
        let outliers = Outliers::new().in_a_row(3).time(time);
        let urls = [a.url.as_str(), &b.url];
        let client = connected(way, &urls, Balance::round_robin().eject(outliers)).await;
        let id = format!("{way:?}");
        let broken = || FlakyRequest {
            failing_server: "a".to_owned(),
            ..failing(&id, 0)
        };
        let begun = Instant::now();
        let mut failures = 0;
        for _ in 0..20 {
            failures += u32::from(client.get(broken()).await.is_err());
        }
        assert!((3..=4).contains(&failures), "{way:?}: {failures}");
        assert_eq!(spread(&client, 4).await, counts(&[("b", 4)]), "{way:?}");
        while !spread(&client, 2).await.contains_key("a") {
            assert!(begun.elapsed() < Duration::from_secs(10), "{way:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(begun.elapsed() >= time, "{way:?}");
    }
    // Of one server alone there is no other to call.
    let outliers = Outliers::new().in_a_row(1);
    let client = connected(ways()[0], &[&a.url], Balance::round_robin().eject(outliers)).await;
    for _ in 0..5 {
        let request = FlakyRequest {
            failing_server: "a".to_owned(),
            ..failing("x", 0)
        };
        let error = client.get(request).await.unwrap_err();
        assert!(
            error.maybe_processed(),
            "the server itself says so: {error}"
        );
    }
}

#[tokio::test]
async fn the_next_is_tried_when_the_first_can_be_connected_and_is_of_no_use() {
    let (health, reporter) = quill_health::reporter();
    let server = Server::builder()
        .service(health)
        .service(FlakyServer::new(Flaky::named("a")))
        .bind("127.0.0.1:0")
        .await
        .unwrap()
        .start();
    let url = format!("http://{}", server.local_addr().unwrap());
    let b = serve_named("b").await;
    reporter.set("flaky.v1.FlakyService", Status::NotServing);
    let check = HealthCheck::of("flaky.v1.FlakyService").every(Duration::from_millis(20));
    let check = check.timeout(Duration::from_secs(20));
    let balance = soon(Balance::pick_first());
    let urls = [&url, &b.url];
    let checking = balance.clone().check_health(check).wait_for_ready();
    let checked = client(builder("").endpoints(urls).balance(checking));
    let request = || Request::new(failing("x", 0)).with_timeout(Duration::from_secs(30));
    let answer = checked.get(request()).await.expect("b is healthy");
    assert_eq!(answer.message().server, "b");

    let outliers = Outliers::new().in_a_row(2).time(Duration::from_secs(300));
    let ejecting = client(builder("").endpoints(urls).balance(balance.eject(outliers)));
    let begun = Instant::now();
    loop {
        let broken = FlakyRequest {
            failing_server: "a".to_owned(),
            ..failing("y", 0)
        };
        if let Ok(answer) = ejecting.get(broken).await {
            assert_eq!(answer.message().server, "b");
            break;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "a is all there is"
        );
    }
    server.shutdown().await;
}

#[tokio::test]
async fn calls_go_to_servers_that_say_they_are_healthy() {
    let b = serve_named("b").await;
    for way in ways() {
        let (health, reporter) = quill_health::reporter();
        let server = Server::builder()
            .service(health)
            .service(FlakyServer::new(Flaky::named("a")))
            .bind("127.0.0.1:0")
            .await
            .unwrap()
            .start();
        let url = format!("http://{}", server.local_addr().unwrap());
        reporter.set("flaky.v1.FlakyService", Status::Serving);
        let check = HealthCheck::of("flaky.v1.FlakyService").every(Duration::from_millis(20));
        let balance = Balance::round_robin().check_health(check);
        // The other server has no health service, and counts as healthy.
        let client = connected(way, &[&url, &b.url], balance.clone()).await;
        let begun = Instant::now();
        reporter.set("flaky.v1.FlakyService", Status::NotServing);
        while spread(&client, 4).await != counts(&[("b", 4)]) {
            assert!(begun.elapsed() < Duration::from_secs(10), "{way:?}");
        }
        reporter.set("flaky.v1.FlakyService", Status::Serving);
        while spread(&client, 4).await != counts(&[("a", 2), ("b", 2)]) {
            assert!(begun.elapsed() < Duration::from_secs(10), "{way:?}");
        }
        reporter.set("flaky.v1.FlakyService", Status::NotServing);
        let alone = way.builder(&url).balance(soon(balance)).build().unwrap();
        let error = FlakyClient::new(alone)
            .get(failing("x", 0))
            .await
            .unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{way:?}");
        assert!(
            error.message().contains("takes no calls"),
            "{way:?}: {error}"
        );
        server.shutdown().await;
    }
}
