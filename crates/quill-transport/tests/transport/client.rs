//! The channel: how many connections it makes, when it makes them again, and
//! what it says when it can't.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use quill_core::HttpVersion;
use quill_transport::{
    Channel, Chunk, ClientOptions, Empty, Endpoint, Full, HttpVersions, ServerOptions,
    TransportErrorKind,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::raw::{Frame, Raw};
use crate::support::*;

/// Hands connections on to a server, and counts them.
pub(crate) async fn counting(server: SocketAddr) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    tokio::spawn(async move {
        while let Ok((mut inside, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut outside = TcpStream::connect(server).await.unwrap();
                let _ = copy_bidirectional(&mut inside, &mut outside).await;
            });
        }
    });
    (url, count)
}

pub(crate) async fn say(channel: &Channel, said: &str) {
    let sent = channel.send(post("/echo"), Full::new(said.to_owned()));
    let (_, body) = soon(sent).await.unwrap();
    assert_eq!(text(body).await, said);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_share_the_first_connection_of_http2() {
    let (_, running, _) = pair(HttpVersion::Http2).await;
    let (url, count) = counting(running.local_addr().unwrap()).await;
    let channel = channel(&url, ClientOptions::default());
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let channel = channel.clone();
        calls.spawn(async move { say(&channel, "a").await });
    }
    while let Some(call) = soon(calls.join_next()).await {
        call.unwrap();
    }
    // A request that can't be made says nothing about the connection.
    let error = channel.send(post("/a b"), Empty).await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Url);
    say(&channel, "b").await;
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_channel_outlives_the_runtime_that_its_connection_ran_on() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(1).enable_all().build().unwrap()
    };
    let (first, second) = (runtime(), runtime());
    second.block_on(async {
        let (shared, _running, channel) = pair(HttpVersion::Http2).await;
        let connecting = channel.clone();
        let connected = first.spawn(async move { connecting.connect().await });
        soon(connected).await.unwrap().unwrap();
        let calling = channel.clone();
        let call =
            tokio::spawn(async move { calling.send(post("/hang"), Empty).await.map(|_| ()) });
        soon(shared.arrived.notified()).await;
        first.shutdown_background();
        let error = soon(call).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), TransportErrorKind::Closed, "{error}");
        say(&channel, "a").await;
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http1_connections_are_used_again_and_bounded() {
    let (shared, running, _) = pair(HttpVersion::Http1).await;
    let (url, count) = counting(running.local_addr().unwrap()).await;
    let mut options = options(HttpVersion::Http1);
    options.http1_connections_max = 2;
    options.idle_timeout = Duration::from_millis(300);
    let channel = channel(&url, options);
    // A lease that was not used leaves its connection to others.
    drop(soon(channel.lease(None)).await.unwrap());
    for _ in 0..5 {
        say(&channel, "a").await;
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let channel = channel.clone();
        calls.spawn(async move {
            let (_, body) = channel.send(post("/wait"), Empty).await.unwrap();
            text(body).await
        });
    }
    soon(shared.calls_reach(7)).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    // The third waits for one of the two connections.
    assert_eq!(shared.calls.load(Ordering::SeqCst), 7);
    for _ in 0..3 {
        shared.release.notify_one();
        soon(calls.join_next()).await.unwrap().unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
    tokio::time::sleep(Duration::from_millis(700)).await;
    say(&channel, "b").await;
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

/// Reads a request's head, and answers without a body.
async fn answer_without_body(socket: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    socket.write_all(answer).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http1_connection_that_is_stuck_in_its_last_exchange_gives_way() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        // Answered before the body came, which is never read.
        let (mut first, _) = listener.accept().await.unwrap();
        answer_without_body(&mut first).await;
        let (mut second, _) = listener.accept().await.unwrap();
        answer_without_body(&mut second).await;
        std::future::pending::<()>().await;
    });
    let channel = channel_of(&url, HttpVersion::Http1);
    let large = Full::new(vec![0; 16 * 1024 * 1024]);
    let (_, body) = soon(channel.send(post("/"), large)).await.unwrap();
    drop(body);
    soon(channel.send(post("/"), Empty)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http1_answer_that_is_not_read_costs_the_connection_alone() {
    let (_, running, _) = pair(HttpVersion::Http1).await;
    let (url, count) = counting(running.local_addr().unwrap()).await;
    let channel = channel(&url, options(HttpVersion::Http1));
    let (_, body) = soon(channel.send(post("/endless"), Empty)).await.unwrap();
    drop(body);
    say(&channel, "a").await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

/// A server that does to its first connection what `first` says, and hands
/// later ones on.
async fn flawed<F>(first: impl FnOnce(Raw) -> F + Send + 'static) -> (Shared, Channel)
where
    F: Future<Output = ()> + Send,
{
    let shared = Shared::default();
    let running = start(&shared, ServerOptions::default()).await;
    let server = running.local_addr().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let _running = running;
        let (socket, _) = listener.accept().await.unwrap();
        tokio::spawn(async move { first(Raw::server(socket).await).await });
        let (mut inside, _) = listener.accept().await.unwrap();
        let mut outside = TcpStream::connect(server).await.unwrap();
        let _ = copy_bidirectional(&mut inside, &mut outside).await;
    });
    (shared, channel(&url, ClientOptions::default()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_over_the_last_stream_of_a_goaway_is_sent_again() {
    let (shared, channel) = flawed(|mut raw| async move {
        raw.until(|frame| frame.kind == Frame::DATA && frame.flags & 1 != 0)
            .await;
        raw.write(&Frame::goaway(0, 0)).await;
        raw.rest().await;
    })
    .await;
    say(&channel, "once more").await;
    assert_eq!(shared.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_under_way_is_sent_again_from_its_beginning() {
    let (shared, channel) = flawed(|mut raw| async move {
        raw.until(|frame| frame.kind == Frame::DATA).await;
        raw.write(&Frame::goaway(0, 0)).await;
        raw.rest().await;
    })
    .await;
    let (feed, body) = fed();
    let call = tokio::spawn(async move { channel.send(post("/count"), body).await });
    feed.send(Ok(Chunk::Data("abc".into()))).await.unwrap();
    soon(shared.calls_reach(1)).await;
    feed.send(Ok(Chunk::Data("defg".into()))).await.unwrap();
    drop(feed);
    let (_, body) = soon(call).await.unwrap().unwrap();
    assert_eq!(text(body).await, "7");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_too_large_to_keep_is_not_sent_again() {
    let (shared, channel) = flawed(|mut raw| async move {
        let mut seen = 0;
        while seen <= 64 * 1024 {
            let frame = raw.until(|frame| frame.kind == Frame::DATA).await;
            seen += frame.payload.len();
            raw.write(&Frame::window_update(0, 1 << 20)).await;
            raw.write(&Frame::window_update(1, 1 << 20)).await;
        }
        raw.write(&Frame::goaway(0, 0)).await;
        raw.rest().await;
    })
    .await;
    let body = Full::new(Bytes::from(vec![1; 200_000]));
    let error = soon(channel.send(post("/count"), body)).await.unwrap_err();
    assert!(!error.maybe_processed(), "{error:?}");
    assert!(error.to_string().contains("was not processed"), "{error}");
    assert_eq!(shared.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_stream_is_sent_again_on_the_same_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let mut raw = Raw::server(socket).await;
        let first = raw.until(|frame| frame.kind == Frame::HEADERS).await;
        raw.write(&Frame::reset(first.stream, 7)).await;
        let second = raw.until(|frame| frame.kind == Frame::HEADERS).await;
        raw.write(&Frame::headers(second.stream, 5, &[0x88])).await;
        raw.rest().await;
        (first.stream, second.stream)
    });
    let channel = channel(&url, ClientOptions::default());
    let (head, _) = soon(channel.send(post("/"), Empty)).await.unwrap();
    assert_eq!(head.status, 200);
    drop(channel);
    assert_eq!(soon(served).await.unwrap(), (1, 3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_may_have_been_handled_is_not_sent_again() {
    let (shared, channel) = flawed(|mut raw| async move {
        raw.until(|frame| frame.kind == Frame::HEADERS).await;
    })
    .await;
    let error = soon(channel.send(post("/echo"), Empty)).await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Closed, "{error}");
    assert!(error.maybe_processed());
    assert_eq!(shared.calls.load(Ordering::SeqCst), 0);
    say(&channel, "another").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncated_answer_is_an_error() {
    // HTTP/2: a reset with NO_ERROR before the end.
    let (_, channel) = flawed(|mut raw| async move {
        let frame = raw.until(|frame| frame.kind == Frame::HEADERS).await;
        raw.write(&Frame::headers(frame.stream, 4, &[0x88])).await;
        raw.write(&Frame::data(frame.stream, 0, b"half")).await;
        raw.write(&Frame::reset(frame.stream, 0)).await;
        raw.rest().await;
    })
    .await;
    let (_, body) = soon(channel.send(post("/"), Empty)).await.unwrap();
    let error = soon(collect(body)).await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Reset(0), "{error}");

    // HTTP/1.1: chunks without their end.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut head = [0; 1024];
        let _ = socket.read(&mut head).await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n";
        socket.write_all(answer).await.unwrap();
    });
    let channel = channel_of(&url, HttpVersion::Http1);
    let (_, body) = soon(channel.send(post("/"), Empty)).await.unwrap();
    let error = soon(collect(body)).await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Closed, "{error}");
}

fn channel_of(url: &str, version: HttpVersion) -> Channel {
    channel(url, options(version))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_speak_http2_is_told() {
    let mut options = ServerOptions::default();
    options.versions = HttpVersions::Http1;
    let running = start(&Shared::default(), options).await;
    let channel = channel(&url(&running), ClientOptions::default());
    let error = soon(channel.connect()).await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::HttpVersion, "{error}");
    assert!(error.to_string().contains("http1 option"), "{error}");
    assert!(!error.maybe_processed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_keeps_a_connection_from_being_made_is_told() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let refused = channel(&format!("http://{address}"), ClientOptions::default());
    let error = soon(refused.connect()).await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Connect);
    let text = error.to_string();
    let said = format!("can't connect to http://{address} ({address}: ");
    assert!(text.starts_with(&said), "{text}");

    let unknown = channel("http://no-such-host.invalid", ClientOptions::default());
    let error = soon(unknown.connect()).await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Resolve);
    assert!(error.to_string().contains("no-such-host.invalid"));

    // A server that never answers the hello.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut options = ClientOptions::default();
    options.connect_timeout = Duration::from_millis(100);
    let url = format!("https://{}", silent.local_addr().unwrap());
    let slow = channel(&url, options);
    let error = soon(slow.connect()).await.unwrap_err();
    assert_eq!(error.kind(), TransportErrorKind::Timeout);
    assert!(
        error.to_string().contains("took longer than 100ms"),
        "{error}"
    );
    assert!(!error.maybe_processed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_connection_fails_all_who_wait_and_is_tried_again_later() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let channel = channel(&format!("http://{address}"), ClientOptions::default());
    let (one, two) = tokio::join!(channel.connect(), channel.connect());
    assert_eq!(one.unwrap_err().to_string(), two.unwrap_err().to_string());
    let listener = quill_transport::Listener::bind(&address.to_string())
        .await
        .unwrap();
    let _running = quill_transport::HttpServer::new(listener).start(Shared::default());
    say(&channel, "back").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_address_of_a_name_is_tried() {
    // "localhost" is often ::1 and 127.0.0.1; only the latter listens.
    let (_, running, _) = pair(HttpVersion::Http2).await;
    let port = running.local_addr().unwrap().port();
    let channel = channel(
        &format!("http://localhost:{port}"),
        ClientOptions::default(),
    );
    say(&channel, "a").await;
}

#[test]
fn options_out_of_bounds_are_refused() {
    let mut options = ClientOptions::default();
    options.http2_frame_bytes_max = 1;
    let endpoint = Endpoint::parse("http://localhost").unwrap();
    let error = Channel::new(endpoint, options, None).unwrap_err();
    assert_eq!(error.option(), "http2_frame_bytes_max");
    let endpoint = Endpoint::parse("https://localhost").unwrap();
    let error = Channel::new(endpoint, ClientOptions::default(), None).unwrap_err();
    assert_eq!(error.option(), "tls");
}
