//! Connections that become too old, and addresses that have too many, with each engine.

use std::time::Duration;

use quill_core::HttpVersion;
use quill_transport::{
    Channel, ConnectionCounts, Empty, Http2Engine, HttpServer, Listener, Running, ServerOptions,
    TransportErrorKind,
};

use crate::support::*;

const AGE: Duration = Duration::from_millis(100);

/// Every version of HTTP with everything that speaks it.
const WAYS: [(HttpVersion, Http2Engine); 3] = [
    (HttpVersion::Http1, Http2Engine::Quill),
    (HttpVersion::Http2, Http2Engine::Quill),
    (HttpVersion::Http2, Http2Engine::Hyper),
];

struct Aging {
    shared: Shared,
    running: Running,
    channel: Channel,
    counts: ConnectionCounts,
}

async fn aging((version, engine): (HttpVersion, Http2Engine), grace: Option<Duration>) -> Aging {
    let mut server = ServerOptions::default();
    server.http2_engine = engine;
    server.max_connection_age = Some(AGE);
    server.max_connection_age_grace = grace;
    let shared = Shared::default();
    let counts = ConnectionCounts::default();
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let server = HttpServer::new(listener).with_options(server).unwrap();
    let running = server.with_counts(counts.clone()).start(shared.clone());
    let channel = channel(&url(&running), options(version));
    Aging {
        shared,
        running,
        channel,
        counts,
    }
}

async fn aged(counts: &ConnectionCounts) {
    while counts.aged() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_open_when_a_connection_is_too_old_is_finished_and_the_next_is_made_elsewhere() {
    for way in WAYS {
        let aging = aging(way, None).await;
        let calling = aging.channel.clone();
        let call = tokio::spawn(async move {
            let (_, body) = calling.send(post("/wait"), Empty).await.unwrap();
            text(body).await
        });
        soon(aging.shared.arrived.notified()).await;
        soon(aged(&aging.counts)).await;
        tokio::time::sleep(2 * AGE).await;
        assert!(!call.is_finished(), "{way:?}");
        aging.shared.release.notify_one();
        assert_eq!(soon(call).await.unwrap(), "released", "{way:?}");
        let accepted = aging.counts.accepted();
        let (head, _) = soon(aging.channel.send(post("/refuse"), Empty))
            .await
            .unwrap();
        assert_eq!(head.status, 404);
        assert!(aging.counts.accepted() > accepted, "{way:?}: another one");
        drop(aging.running);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_open_after_the_grace_is_cut() {
    for way in WAYS {
        let aging = aging(way, Some(AGE)).await;
        let begun = std::time::Instant::now();
        let error = soon(aging.channel.send(post("/hang"), Empty))
            .await
            .map(|_| ());
        let error = error.unwrap_err();
        assert_eq!(error.kind(), TransportErrorKind::Closed, "{way:?}: {error}");
        assert!(error.maybe_processed(), "{way:?}");
        // The age may be a tenth shorter than said, and the grace may not.
        let least = AGE.mul_f64(0.9) + AGE;
        assert!(begun.elapsed() >= least, "{way:?}: {:?}", begun.elapsed());
        soon(aging.shared.dropped.notified()).await;
        assert_eq!(aging.counts.aged(), 1, "{way:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn per_core_servers_count_the_connections_of_an_address_together() {
    let mut options = ServerOptions::default();
    options.connections_per_ip_max = Some(3);
    let server = HttpServer::per_core("127.0.0.1:0", 2).await.unwrap();
    let counts = ConnectionCounts::default();
    let server = server
        .with_options(options)
        .unwrap()
        .with_counts(counts.clone());
    let running = server.start(Shared::default());
    let address = running.local_addr().unwrap();
    let mut open = Vec::new();
    for _ in 0..12 {
        open.push(tokio::net::TcpStream::connect(address).await.unwrap());
    }
    soon(async {
        while (counts.open(), counts.refused()) != (3, 9) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
