//! Many exchanges at once on HTTP/2: when one connection is not enough, what
//! happens where there may be no further one, and that no answer stops another.

use std::sync::atomic::Ordering;
use std::time::Duration;

use quill_core::HttpVersion;
use quill_transport::{Channel, ClientOptions, Empty, ServerOptions, TransportErrorKind};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::client::{counting, say};
use crate::raw::{Frame, Raw};
use crate::support::*;

/// A server that allows so many streams a connection, and its address.
async fn narrow(streams_max: u32) -> (Shared, quill_transport::Running) {
    let shared = Shared::default();
    let mut options = ServerOptions::default();
    options.http2_streams_max = streams_max;
    let running = start(&shared, options).await;
    (shared, running)
}

fn wait(calls: &mut JoinSet<String>, channel: &Channel) {
    let channel = channel.clone();
    calls.spawn(async move {
        let (_, body) = channel.send(post("/wait"), Empty).await.unwrap();
        text(body).await
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_over_a_servers_limit_get_a_connection_more() {
    let (shared, running) = narrow(2).await;
    let (url, count) = counting(running.local_addr().unwrap()).await;
    let channel = channel(&url, ClientOptions::default());
    let mut calls = JoinSet::new();
    for _ in 0..5 {
        wait(&mut calls, &channel);
    }
    soon(shared.calls_reach(5)).await;
    assert_eq!(count.load(Ordering::SeqCst), 3);
    for _ in 0..5 {
        shared.release.notify_one();
        soon(calls.join_next()).await.unwrap().unwrap();
    }
    say(&channel, "a").await;
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_are_not_needed_any_more_are_closed_but_for_one() {
    let (shared, running) = narrow(1).await;
    let (url, count) = counting(running.local_addr().unwrap()).await;
    let mut options = ClientOptions::default();
    options.idle_timeout = Duration::from_millis(50);
    let channel = channel(&url, options);
    let mut calls = JoinSet::new();
    for _ in 0..2 {
        wait(&mut calls, &channel);
    }
    soon(shared.calls_reach(2)).await;
    for _ in 0..2 {
        shared.release.notify_one();
        soon(calls.join_next()).await.unwrap().unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
    // The second pair of calls needs a third connection only once the second is closed.
    soon(async {
        while count.load(Ordering::SeqCst) < 3 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let calls_before = shared.calls.load(Ordering::SeqCst);
            wait(&mut calls, &channel);
            wait(&mut calls, &channel);
            shared.calls_reach(calls_before + 2).await;
            for _ in 0..2 {
                shared.release.notify_one();
                calls.join_next().await.unwrap().unwrap();
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_no_connection_more_may_be_made_a_call_waits_and_says_for_what() {
    let (shared, running) = narrow(1).await;
    let mut options = ClientOptions::default();
    options.http2_connections_max = 1;
    let channel = channel(&url(&running), options);
    let mut calls = JoinSet::new();
    wait(&mut calls, &channel);
    soon(shared.calls_reach(1)).await;
    let deadline = Instant::now() + Duration::from_millis(50);
    let error = soon(channel.lease(Some(deadline))).await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Timeout);
    assert!(!error.maybe_processed());
    let told = error.to_string();
    assert!(told.contains("http2_connections_max is 1"), "{told}");
    for _ in 0..9 {
        wait(&mut calls, &channel);
    }
    for _ in 0..10 {
        shared.release.notify_one();
        soon(calls.join_next()).await.unwrap().unwrap();
    }
    assert_eq!(shared.calls.load(Ordering::SeqCst), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_reads_do_not_stop_others() {
    let (shared, _running, channel) = pair(HttpVersion::Http2).await;
    let mut unread = Vec::new();
    for _ in 0..8 {
        let (_, body) = soon(channel.send(post("/endless"), Empty)).await.unwrap();
        unread.push(body);
    }
    // Each has filled the window that a stream begins with.
    let filled = 8 * 65_535;
    soon(async {
        while shared.polled_bytes.load(Ordering::SeqCst) < filled {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    say(&channel, "a").await;
    drop(unread);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_after_a_goaway_takes_a_new_connection_and_open_ones_go_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (told, goaway) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut raw = Raw::server(socket).await;
        raw.until(|frame| frame.kind == Frame::HEADERS).await;
        raw.write(&Frame::headers(1, 4, &[0x88])).await;
        raw.write(&Frame::goaway(1, 0)).await;
        let (socket, _) = listener.accept().await.unwrap();
        let mut second = Raw::server(socket).await;
        second.until(|frame| frame.kind == Frame::HEADERS).await;
        second.write(&Frame::headers(1, 5, &[0x88])).await;
        goaway.await.unwrap();
        raw.write(&Frame::data(1, 1, b"the end")).await;
        tokio::join!(raw.rest(), second.rest());
    });
    let channel = channel(&url, ClientOptions::default());
    let (_, first) = soon(channel.send(post("/"), Empty)).await.unwrap();
    let (head, _) = soon(channel.send(post("/"), Empty)).await.unwrap();
    assert_eq!(head.status, 200);
    told.send(()).unwrap();
    assert_eq!(text(first).await, "the end");
}
