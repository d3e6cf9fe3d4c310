//! Connections that lead nowhere, and how often a server is asked whether it
//! is there. The clock is stopped once a connection is there, and then runs
//! ahead as soon as everybody waits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quill_core::HttpVersion;
use quill_transport::{Channel, ClientOptions, Empty, TransportError, TransportErrorKind};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::raw::{Frame, Raw};
use crate::support::*;

/// Hands one connection on to a server, until it is told to swallow everything.
async fn black_hole(server: SocketAddr) -> (String, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (swallow, swallowing) = oneshot::channel();
    tokio::spawn(async move {
        let (mut inside, _) = listener.accept().await.unwrap();
        let mut outside = TcpStream::connect(server).await.unwrap();
        tokio::select! {
            _ = copy_bidirectional(&mut inside, &mut outside) => return,
            _ = swallowing => {}
        }
        std::future::pending::<()>().await;
    });
    (url, swallow)
}

fn hanging_call(channel: &Channel) -> JoinHandle<Result<(), TransportError>> {
    let channel = channel.clone();
    tokio::spawn(async move { channel.send(post("/hang"), Empty).await.map(|_| ()) })
}

#[tokio::test]
async fn a_connection_that_leads_nowhere_ends_its_calls() {
    let (shared, running, _) = pair(HttpVersion::Http2).await;
    let (url, swallow) = black_hole(running.local_addr().unwrap()).await;
    let options = ClientOptions::default();
    let interval = options.http2_ping_interval.unwrap();
    let most = interval + options.http2_ping_timeout + Duration::from_secs(1);
    let call = hanging_call(&channel(&url, options));
    soon(shared.arrived.notified()).await;
    swallow.send(()).unwrap();

    tokio::time::pause();
    let begun = Instant::now();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Timeout, "{error}");
    let took = begun.elapsed();
    assert!(took > interval - Duration::from_secs(1), "{took:?}");
    assert!(took <= most, "{took:?}");
}

#[tokio::test]
async fn nobody_is_pinged_while_no_call_is_open_unless_that_is_asked_for() {
    for while_idle in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = tokio::spawn(async move {
            let (socket, _) = listener.accept().await.unwrap();
            let mut raw = Raw::server(socket).await;
            let pinged = raw.until(|frame| frame.kind == Frame::PING);
            let hour = Duration::from_secs(60 * 60);
            tokio::time::timeout(hour, pinged).await.is_ok()
        });
        let mut options = ClientOptions::default();
        options.http2_ping_while_idle = while_idle;
        let channel = channel(&url, options);
        soon(channel.connect()).await.unwrap();
        tokio::time::pause();
        assert_eq!(served.await.unwrap(), while_idle);
        tokio::time::resume();
    }
}

/// What a server may do often in the long run, though not at once.
#[tokio::test]
async fn a_server_may_ping_as_long_as_it_likes() {
    const PINGS: u32 = 300;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut raw = Raw::server(socket).await;
        raw.until(|frame| frame.kind == Frame::HEADERS).await;
        let _held = stop_clock();
        for _ in 0..PINGS {
            tokio::time::advance(Duration::from_secs(1)).await;
            raw.write(&Frame::ping(0, [0; 8])).await;
            raw.until(|frame| frame.kind == Frame::PING && frame.flags == 1)
                .await;
        }
        raw.write(&Frame::headers(1, 5, &[0x88])).await;
    });
    let mut options = ClientOptions::default();
    options.http2_ping_interval = None;
    let channel = channel(&url, options);
    let (head, _) = channel.send(post("/"), Empty).await.unwrap();
    assert_eq!(head.status, 200);
    served.await.unwrap();
}

#[tokio::test]
async fn a_server_that_reads_nothing_does_not_keep_a_connection_that_nobody_needs() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let accepted = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        // What is written below is not held back by the kernel.
        socket.set_nodelay(true).unwrap();
        let mut raw = Raw::server(socket).await;
        raw.write(&Frame::window_update(0, 0x7000_0000)).await;
        raw.until(|frame| frame.kind == Frame::HEADERS).await;
        raw.write(&Frame::window_update(1, 0x7000_0000)).await;
        raw
    });
    let channel = channel(&url, ClientOptions::default());
    let polled_bytes = Arc::new(AtomicUsize::new(0));
    let body = Endless {
        polled_bytes: polled_bytes.clone(),
        dropped: Arc::default(),
    };
    let calling = channel.clone();
    let call = tokio::spawn(async move { calling.send(post("/"), body).await.map(|_| ()) });
    let mut raw = soon(accepted).await.unwrap();
    // Until the sockets take no more.
    let mut before = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let polled = polled_bytes.load(Ordering::SeqCst);
        if polled == before && polled > 65_535 {
            break;
        }
        before = polled;
    }
    call.abort();
    drop(channel);
    tokio::time::pause();
    let begun = Instant::now();
    while raw.try_write(&Frame::ping(1, [0; 8])).await {
        assert!(begun.elapsed() < Duration::from_secs(600));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(begun.elapsed() > Duration::from_secs(5));
}

#[tokio::test]
async fn pings_become_rarer_when_the_server_asks_for_calm() {
    let interval = Duration::from_secs(10);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::time::pause();
    let served = tokio::spawn(async move {
        let mut silences = Vec::new();
        for _ in 0..3 {
            let (socket, _) = listener.accept().await.unwrap();
            let mut raw = Raw::server(socket).await;
            let begun = Instant::now();
            raw.until(|frame| frame.kind == Frame::PING).await;
            silences.push(begun.elapsed());
            raw.write(&Frame::goaway(1, 11)).await;
        }
        silences
    });
    let mut options = ClientOptions::default();
    options.http2_ping_interval = Some(interval);
    let channel = channel(&url, options);
    for _ in 0..3 {
        hanging_call(&channel).await.unwrap().unwrap_err();
    }
    let silences = served.await.unwrap();
    for (silence, times) in silences.iter().zip([1, 2, 4]) {
        let due = interval * times;
        let near = due - Duration::from_secs(1)..due + Duration::from_secs(1);
        assert!(near.contains(silence), "{silences:?}");
    }
}
