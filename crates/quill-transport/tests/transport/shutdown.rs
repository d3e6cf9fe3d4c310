//! Draining, its limit, and what clients make of it.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use quill_core::HttpVersion;
use quill_transport::{Empty, Full, HttpServer, Listener, ServerOptions, TransportErrorKind};
use tokio::net::TcpStream;

use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_exchanges_are_finished() {
    for version in VERSIONS {
        let (shared, running, channel) = pair(version).await;
        let address = running.local_addr().unwrap();
        let calling = channel.clone();
        let call = tokio::spawn(async move {
            let (_, body) = calling.send(post("/wait"), Empty).await.unwrap();
            text(body).await
        });
        soon(shared.arrived.notified()).await;
        let drained = tokio::spawn(running.shutdown(LONG));
        // The socket goes first.
        soon(async {
            while TcpStream::connect(address).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
        assert!(!drained.is_finished());
        // What was under way when the peer learned of it is still answered.
        let error = soon(async {
            loop {
                match channel.send(post("/refuse"), Empty).await {
                    Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                    Err(error) => return error,
                }
            }
        })
        .await;
        assert_eq!(error.kind(), TransportErrorKind::Connect, "{error}");
        assert!(!error.maybe_processed());
        shared.release.notify_one();
        assert_eq!(soon(call).await.unwrap(), "released");
        assert_eq!(soon(drained).await.unwrap().cut_connections, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_open_at_the_limit_is_cut() {
    for version in VERSIONS {
        let (shared, running, channel) = pair(version).await;
        let call =
            tokio::spawn(async move { channel.send(post("/hang"), Empty).await.map(|_| ()) });
        soon(shared.arrived.notified()).await;
        let begun = Instant::now();
        let drained = soon(running.shutdown(Duration::from_millis(200))).await;
        assert!(begun.elapsed() >= Duration::from_millis(200));
        assert_eq!(drained.cut_connections, 1);
        soon(shared.dropped.notified()).await;
        let error = soon(call).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), TransportErrorKind::Closed, "{error}");
        assert!(error.maybe_processed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_do_not_hold_a_drain_up() {
    for version in VERSIONS {
        let (_, running, channel) = pair(version).await;
        let (_, body) = soon(channel.send(post("/refuse"), Empty)).await.unwrap();
        text(body).await;
        let silent = TcpStream::connect(running.local_addr().unwrap())
            .await
            .unwrap();
        let begun = Instant::now();
        let drained = soon(running.shutdown(LONG)).await;
        assert_eq!(drained.cut_connections, 0);
        assert!(begun.elapsed() < Duration::from_secs(5));
        drop(silent);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_server_cuts_at_once() {
    for version in VERSIONS {
        let (shared, running, channel) = pair(version).await;
        let call =
            tokio::spawn(async move { channel.send(post("/hang"), Empty).await.map(|_| ()) });
        soon(shared.arrived.notified()).await;
        drop(running);
        soon(shared.dropped.notified()).await;
        soon(call).await.unwrap().unwrap_err();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_signal_begins_the_drain() {
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let signal = async move { drop(stopped.await) };
    let server = HttpServer::new(listener).serve_until(Shared::default(), signal, LONG);
    let served = tokio::spawn(server);
    let channel = channel(&format!("http://{address}"), options(HttpVersion::Http2));
    soon(channel.connect()).await.unwrap();
    stop.send(()).unwrap();
    assert_eq!(soon(served).await.unwrap().cut_connections, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_outlives_the_server_it_called() {
    for version in VERSIONS {
        let (shared, running, channel) = pair(version).await;
        let address = running.local_addr().unwrap().to_string();
        for _ in 0..3 {
            let (_, body) = soon(channel.send(post("/echo"), Full::new("a")))
                .await
                .unwrap();
            assert_eq!(text(body).await, "a");
        }
        soon(running.shutdown(LONG)).await;
        let listener = Listener::bind(&address).await.unwrap();
        let _running = HttpServer::new(listener).start(shared.clone());
        let (_, body) = soon(channel.send(post("/echo"), Full::new("b")))
            .await
            .unwrap();
        assert_eq!(text(body).await, "b");
        assert_eq!(shared.calls.load(Ordering::SeqCst), 4, "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_are_let_go_and_made_again() {
    for version in VERSIONS {
        let shared = Shared::default();
        let mut server = ServerOptions::default();
        server.http1_idle_timeout = Some(Duration::from_millis(50));
        server.http2_idle_timeout = Some(Duration::from_millis(50));
        let running = start(&shared, server).await;
        let channel = channel(&url(&running), options(version));
        for turn in 0..3 {
            if turn == 1 {
                // A longer exchange than the idle timeout is left alone.
                let (_, body) = soon(async {
                    let call = channel.send(post("/wait"), Empty);
                    let release = async {
                        tokio::time::sleep(Duration::from_millis(200)).await;
                        shared.release.notify_one();
                    };
                    tokio::join!(call, release).0.unwrap()
                })
                .await;
                assert_eq!(text(body).await, "released");
            }
            let (_, body) = soon(channel.send(post("/echo"), Full::new("a")))
                .await
                .unwrap();
            assert_eq!(text(body).await, "a");
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
    }
}
