//! Whole exchanges, both ways.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use quill_core::{Headers, HttpMethod, HttpVersion};
use quill_transport::{Chunk, Empty, Full, TransportErrorKind};

use crate::support::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_and_bodies_arrive() {
    for version in VERSIONS {
        let (_, _running, channel) = pair(version).await;
        let mut head = post("/echo");
        head.headers.append("x-one", "1");
        head.headers.append("x-two", [b'a', 0xff]);
        head.headers.append("connection", "close");
        let big = Bytes::from(vec![3; 3_000_000]);
        let sent = channel.send(head, Full::new(big.clone()));
        let (head, body) = soon(sent).await.unwrap();
        assert_eq!(head.status, 200);
        assert_eq!(head.headers.first("x-one"), Some(&b"1"[..]));
        assert_eq!(head.headers.first("x-two"), Some(&[b'a', 0xff][..]));
        let (bytes, _) = soon(collect(body)).await.unwrap();
        assert_eq!(bytes, big, "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_sees_method_target_authority_and_peer() {
    for version in VERSIONS {
        let (_, running, channel) = pair(version).await;
        let mut head = post("/head?x=%20y");
        head.method = HttpMethod::Get;
        let (_, body) = soon(channel.send(head, Empty)).await.unwrap();
        let address = running.local_addr().unwrap();
        let expected = format!(
            "Get /head?x=%20y {address} {version:?} address=true secure=false certificates=0"
        );
        assert_eq!(text(body).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_and_a_prefix_are_kept() {
    let (_, running, _) = pair(HttpVersion::Http2).await;
    let channel = channel(
        &format!("{}/he/", url(&running)),
        options(HttpVersion::Http2),
    );
    let mut head = post("ad");
    head.authority = "example.com".to_owned();
    let (head, _) = soon(channel.send(head, Empty)).await.unwrap();
    // "/he" before "ad" is "/head".
    assert_eq!(head.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn trailers_go_both_ways() {
    for version in VERSIONS {
        let (_, _running, channel) = pair(version).await;
        let (feed, body) = fed();
        tokio::spawn(async move {
            feed.send(Ok(Chunk::Data("abc".into()))).await.unwrap();
            let mut trailers = Headers::new();
            trailers.append("x-sum", "6");
            feed.send(Ok(Chunk::Trailers(trailers))).await.unwrap();
        });
        let mut head = post("/trailers");
        // HTTP/1.1 sends only what these announce and ask for.
        head.headers.append("trailer", "x-sum");
        head.headers.append("te", "trailers");
        let (_, body) = soon(channel.send(head, body)).await.unwrap();
        let (bytes, trailers) = soon(collect(body)).await.unwrap();
        assert_eq!(bytes, "abc");
        assert_eq!(trailers.first("x-received"), Some(&b"6"[..]), "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sides_talk_at_once_on_http2() {
    let (_, _running, channel) = pair(HttpVersion::Http2).await;
    let (feed, body) = fed();
    let (_, mut body) = soon(channel.send(post("/echo"), body)).await.unwrap();
    for turn in 0..10 {
        let said = Bytes::from(format!("turn {turn}"));
        feed.send(Ok(Chunk::Data(said.clone()))).await.unwrap();
        let heard = soon(next(&mut body)).await.unwrap().unwrap();
        assert_eq!(heard, Chunk::Data(said));
    }
    drop(feed);
    assert!(soon(next(&mut body)).await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_exchanges_share_one_http2_connection() {
    let (shared, _running, channel) = pair(HttpVersion::Http2).await;
    let mut calls = tokio::task::JoinSet::new();
    for index in 0..600 {
        let channel = channel.clone();
        calls.spawn(async move {
            let said = format!("call {index}");
            let sent = channel.send(post("/echo"), Full::new(said.clone()));
            let (_, body) = sent.await.unwrap();
            assert_eq!(text(body).await, said);
        });
    }
    while let Some(call) = soon(calls.join_next()).await {
        call.unwrap();
    }
    assert_eq!(shared.calls.load(Ordering::SeqCst), 600);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_the_answer_to_come_reaches_the_handler() {
    for version in VERSIONS {
        let (shared, _running, channel) = pair(version).await;
        let call =
            tokio::spawn(async move { channel.send(post("/hang"), Empty).await.map(|_| ()) });
        soon(shared.arrived.notified()).await;
        call.abort();
        soon(shared.dropped.notified()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_the_answer_reaches_the_body_that_is_sent() {
    for version in VERSIONS {
        let (shared, _running, channel) = pair(version).await;
        let (_, mut body) = soon(channel.send(post("/endless"), Empty)).await.unwrap();
        soon(next(&mut body)).await.unwrap().unwrap();
        drop(body);
        soon(shared.dropped.notified()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_the_answer_ends_the_body_of_the_request() {
    for version in VERSIONS {
        let (_, _running, channel) = pair(version).await;
        let (feed, body) = fed();
        if version == HttpVersion::Http1 {
            feed.send(Ok(Chunk::Data("x".into()))).await.unwrap();
        }
        let (_, body) = soon(channel.send(post("/echo"), body)).await.unwrap();
        drop(body);
        soon(feed.closed()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aborted_request_is_no_whole_request() {
    for version in VERSIONS {
        let (shared, _running, channel) = pair(version).await;
        let (feed, body) = fed();
        let call =
            tokio::spawn(async move { channel.send(post("/count"), body).await.map(|_| ()) });
        feed.send(Ok(Chunk::Data("half".into()))).await.unwrap();
        soon(shared.calls_reach(1)).await;
        let error = quill_transport::TransportError::new(TransportErrorKind::Canceled, "stop");
        feed.send(Err(error)).await.unwrap();
        let error = soon(call).await.unwrap().unwrap_err();
        assert_ne!(error.kind(), TransportErrorKind::Timeout);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aborted_answer_is_an_error() {
    for version in VERSIONS {
        let (_, _running, channel) = pair(version).await;
        let (_, body) = soon(channel.send(post("/fail"), Empty)).await.unwrap();
        let error = soon(collect(body)).await.unwrap_err();
        match version {
            // CANCEL, as the sender's error says.
            HttpVersion::Http2 => assert_eq!(error.kind(), TransportErrorKind::Reset(8)),
            _ => assert_eq!(error.kind(), TransportErrorKind::Closed),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_nobody_reads_is_not_polled_beyond_the_window() {
    let (shared, _running, channel) = pair(HttpVersion::Http2).await;
    let (_, body) = soon(channel.send(post("/endless"), Empty)).await.unwrap();
    let polled = settled(&shared.polled_bytes).await;
    // The client's stream window and the server's send buffer.
    let bound = (1024 + 256) * 1024 + 64 * 1024;
    assert!(polled > 32 * 1024, "{polled}");
    assert!(polled <= bound, "{polled}");
    drop(body);

    let (shared, _running, channel) = pair(HttpVersion::Http2).await;
    let polled_bytes = shared.polled_bytes.clone();
    let endless = Endless {
        polled_bytes: polled_bytes.clone(),
        dropped: shared.dropped.clone(),
    };
    let call = tokio::spawn(async move { channel.send(post("/stall"), endless).await.map(|_| ()) });
    soon(shared.arrived.notified()).await;
    let polled = settled(&polled_bytes).await;
    assert!(polled > 32 * 1024, "{polled}");
    assert!(polled <= bound, "{polled}");
    call.abort();
    soon(shared.dropped.notified()).await;
}

/// The count once it no longer grows.
async fn settled(count: &std::sync::atomic::AtomicUsize) -> usize {
    let mut last = count.load(Ordering::SeqCst);
    let mut still = 0;
    while still < 10 {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = count.load(Ordering::SeqCst);
        still = if now == last && now > 0 { still + 1 } else { 0 };
        last = now;
    }
    last
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unix_sockets_serve_both_versions() {
    use quill_transport::{HttpServer, Listener};

    let path = std::env::temp_dir().join(format!("quill-exchange-{}", std::process::id()));
    let address = format!("unix:{}", path.display());
    let listener = Listener::bind(&address).await.unwrap();
    assert_eq!(listener.paths(), [path.as_path()]);
    let running = HttpServer::new(listener).start(Shared::default());
    assert_eq!(running.local_addr(), None);
    for version in VERSIONS {
        let channel = channel(&address, options(version));
        let (_, body) = soon(channel.send(post("/head"), Empty)).await.unwrap();
        let expected =
            format!("Post /head localhost {version:?} address=false secure=false certificates=0");
        assert_eq!(text(body).await, expected);
    }
    let _ = soon(running.shutdown(LONG)).await;
    assert!(!path.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn either_engine_talks_to_either() {
    use quill_transport::{ClientOptions, Http2Engine, ServerOptions};

    let engines = [Http2Engine::Quill, Http2Engine::Hyper];
    for (server, client) in engines.iter().flat_map(|s| engines.map(|c| (*s, c))) {
        let mut options = ServerOptions::default();
        options.http2_engine = server;
        let running = start(&Shared::default(), options).await;
        let mut options = ClientOptions::default();
        options.http2_engine = client;
        let channel = channel(&url(&running), options);
        let big = Bytes::from(vec![3; 1_000_000]);
        for _ in 0..3 {
            let sent = channel.send(post("/echo"), Full::new(big.clone()));
            let (_, body) = soon(sent).await.unwrap();
            let (bytes, _) = soon(collect(body)).await.unwrap();
            assert_eq!(bytes, big, "{server:?} {client:?}");
        }
        let (feed, body) = fed();
        tokio::spawn(async move {
            let mut trailers = Headers::new();
            trailers.append("x-sum", "6");
            feed.send(Ok(Chunk::Trailers(trailers))).await.unwrap();
        });
        let (_, body) = soon(channel.send(post("/trailers"), body)).await.unwrap();
        let (_, trailers) = soon(collect(body)).await.unwrap();
        assert_eq!(trailers.first("x-received"), Some(&b"6"[..]));
    }
}
