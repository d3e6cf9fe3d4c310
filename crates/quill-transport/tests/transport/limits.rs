//! What HTTP/1.1 callers are allowed, and that a server outlives those who
//! take more.

use std::time::{Duration, Instant};

use quill_core::HttpVersion;
use quill_transport::{
    Empty, HttpServer, HttpVersions, Listener, Running, ServerOptions, TransportErrorKind,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::*;

const SHORT: Duration = Duration::from_millis(100);

async fn socket(running: &Running) -> TcpStream {
    TcpStream::connect(running.local_addr().unwrap())
        .await
        .unwrap()
}

/// Reads one answer with a `content-length`.
async fn answer(socket: &mut TcpStream) -> String {
    let mut text = String::new();
    loop {
        let mut byte = [0];
        if socket.read_exact(&mut byte).await.is_err() {
            return text;
        }
        text.push(char::from(byte[0]));
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if length.is_none_or(|length| length.parse() == Ok(body.len())) {
                return text;
            }
        }
    }
}

async fn ended(socket: &mut TcpStream) -> String {
    let mut text = Vec::new();
    let _ = soon(socket.read_to_end(&mut text)).await;
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn slow_heads_are_cut_and_idle_connections_are_not() {
    let mut options = ServerOptions::default();
    options.header_read_timeout = SHORT;
    for versions in [HttpVersions::All, HttpVersions::Http1] {
        options.versions = versions;
        let running = start(&Shared::default(), options.clone()).await;
        for begun in ["", "PRI * HT", "GET /head HTTP/1.1\r\nhost:"] {
            let mut socket = socket(&running).await;
            socket.write_all(begun.as_bytes()).await.unwrap();
            assert_eq!(ended(&mut socket).await, "");
        }
        let mut socket = socket(&running).await;
        let request = b"GET /head HTTP/1.1\r\nhost: a\r\n\r\n";
        for _ in 0..2 {
            socket.write_all(request).await.unwrap();
            assert!(
                soon(answer(&mut socket))
                    .await
                    .starts_with("HTTP/1.1 200 OK")
            );
            // Longer than a head may take, and well within the idle timeout.
            tokio::time::sleep(3 * SHORT).await;
        }
        socket.write_all(b"GET /head HT").await.unwrap();
        assert_eq!(ended(&mut socket).await, "");
    }
}

#[tokio::test]
async fn a_slow_handler_is_not_a_slow_head() {
    let mut options = ServerOptions::default();
    options.header_read_timeout = SHORT;
    options.http1_idle_timeout = Some(SHORT);
    let shared = Shared::default();
    let running = start(&shared, options).await;
    let mut socket = socket(&running).await;
    let request = b"GET /wait HTTP/1.1\r\nhost: a\r\n\r\n";
    socket.write_all(request).await.unwrap();
    tokio::time::sleep(5 * SHORT).await;
    shared.release.notify_one();
    let begun = Instant::now();
    assert!(soon(answer(&mut socket)).await.ends_with("released"));
    // Then it is idle, and closed.
    assert_eq!(ended(&mut socket).await, "");
    assert!(begun.elapsed() >= SHORT / 2);
}

#[tokio::test]
async fn large_heads_are_answered_with_431() {
    let running = start(&Shared::default(), ServerOptions::default()).await;
    for version in VERSIONS {
        let channel = channel(&url(&running), options(version));
        let mut head = post("/refuse");
        head.headers.append("x-large", vec![b'a'; 12 * 1024]);
        let (fits, _) = soon(channel.send(head.clone(), Empty)).await.unwrap();
        assert_eq!(fits.status, 404);
        head.headers.append("x-larger", vec![b'a'; 12 * 1024]);
        let (refused, _) = soon(channel.send(head, Empty)).await.unwrap();
        assert_eq!(refused.status, 431, "{version:?}");
    }
    let mut socket = socket(&running).await;
    let mut request = b"GET /head HTTP/1.1\r\nx-endless: ".to_vec();
    request.extend(vec![b'a'; 60_000]);
    socket.write_all(&request).await.unwrap();
    assert!(ended(&mut socket).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn an_answer_survives_the_body_that_was_not_read() {
    let running = start(&Shared::default(), ServerOptions::default()).await;
    let mut socket = socket(&running).await;
    let head = b"POST /refuse HTTP/1.1\r\nhost: a\r\ncontent-length: 60000\r\n\r\n";
    socket.write_all(head).await.unwrap();
    for _ in 0..60 {
        socket.write_all(&[b'a'; 1000]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut bytes = Vec::new();
    soon(socket.read_to_end(&mut bytes))
        .await
        .expect("no reset");
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.starts_with("HTTP/1.1 404"), "{text}");
    // The caller must not send its next request here.
    assert!(text.contains("\r\nconnection: close\r\n"), "{text}");
    assert!(text.ends_with("no such path"), "{text}");
}

#[tokio::test]
async fn a_small_body_that_was_not_read_keeps_the_connection() {
    let running = start(&Shared::default(), ServerOptions::default()).await;
    let mut socket = socket(&running).await;
    let request = b"POST /refuse HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello";
    for _ in 0..3 {
        socket.write_all(request).await.unwrap();
        let answer = soon(answer(&mut socket)).await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        assert!(!answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn a_truncated_request_is_no_whole_request() {
    let shared = Shared::default();
    let running = start(&shared, ServerOptions::default()).await;
    let chunked = "POST /count HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut whole = socket(&running).await;
    let request = format!("{chunked}1\r\na\r\n1\r\nb\r\n0\r\n\r\n");
    for byte in request.as_bytes() {
        whole.write_all(&[*byte]).await.unwrap();
    }
    assert!(soon(answer(&mut whole)).await.ends_with("\r\n\r\n2"));
    for cut in ["1\r\na\r\n", "1\r\na\r\n0\r\n", "ffffffffffffffffff\r\na"] {
        let mut socket = socket(&running).await;
        socket
            .write_all(format!("{chunked}{cut}").as_bytes())
            .await
            .unwrap();
        socket.shutdown().await.unwrap();
        let text = ended(&mut socket).await;
        assert!(!text.starts_with("HTTP/1.1 200"), "{cut:?}: {text}");
    }
}

/// A server with so many places.
async fn narrow(places: usize) -> (Shared, Running) {
    let mut options = ServerOptions::default();
    options.connections_max = places;
    let shared = Shared::default();
    let running = start(&shared, options).await;
    (shared, running)
}

const REQUEST: &[u8] = b"GET /head HTTP/1.1\r\nhost: a\r\n\r\n";

#[tokio::test]
async fn connections_over_the_limit_wait_for_busy_ones() {
    for version in VERSIONS {
        let (shared, running) = narrow(1).await;
        let channel = channel(&url(&running), options(version));
        let call = tokio::spawn(async move {
            let (_, body) = channel.send(post("/wait"), Empty).await.unwrap();
            text(body).await
        });
        soon(shared.arrived.notified()).await;
        let mut second = socket(&running).await;
        second.write_all(REQUEST).await.unwrap();
        // For longer than one that is at rest is let be.
        let waits = tokio::time::timeout(Duration::from_millis(1500), second.read_u8()).await;
        assert!(waits.is_err(), "{version:?}");
        shared.release.notify_one();
        assert_eq!(soon(call).await.unwrap(), "released");
        let answer = soon(answer(&mut second)).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{version:?}");
    }
}

#[tokio::test]
async fn silent_connections_make_room_for_others() {
    let (_, running) = narrow(2).await;
    let mut asked = socket(&running).await;
    asked.write_all(REQUEST).await.unwrap();
    assert!(soon(answer(&mut asked)).await.starts_with("HTTP/1.1 200"));
    // Each of these takes the other's place, and not that of the one that asked.
    let mut silent = Vec::new();
    for _ in 0..2 {
        silent.push(socket(&running).await);
    }
    for socket in &mut silent[..1] {
        assert!(soon(socket.read_u8()).await.is_err());
    }
    let mut good = socket(&running).await;
    good.write_all(REQUEST).await.unwrap();
    assert!(soon(answer(&mut good)).await.starts_with("HTTP/1.1 200"));
    asked.write_all(REQUEST).await.unwrap();
    assert!(soon(answer(&mut asked)).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn options_out_of_bounds_are_refused() {
    for bytes in [50 * 1024 * 1024, 1 << 24, (1 << 14) - 1, 1, 0] {
        let mut options = ServerOptions::default();
        options.http2_frame_bytes_max = bytes;
        let listener = Listener::bind("127.0.0.1:0").await.unwrap();
        let error = HttpServer::new(listener).with_options(options).unwrap_err();
        assert_eq!(error.option(), "http2_frame_bytes_max", "{bytes}");
    }
}

#[tokio::test]
async fn a_server_of_http2_alone_refuses_http1() {
    let mut server = ServerOptions::default();
    server.versions = HttpVersions::Http2;
    let running = start(&Shared::default(), server).await;
    let mut socket = socket(&running).await;
    socket
        .write_all(b"GET /head HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    assert!(!ended(&mut socket).await.contains("HTTP/1.1 200"));
    let channel = channel(&url(&running), options(HttpVersion::Http1));
    let error = soon(channel.send(post("/head"), Empty)).await.unwrap_err();
    assert_ne!(error.kind(), TransportErrorKind::Timeout);
}

/// Runs `without_file_descriptors` in a process that may have few of them.
#[cfg(target_os = "linux")]
#[test]
fn a_server_outlives_a_lack_of_file_descriptors() {
    let status = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["limits::without_file_descriptors", "--exact", "--ignored"])
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&status.stdout);
    assert!(status.status.success(), "{output}");
    assert!(output.contains("1 passed"), "{output}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
#[ignore = "run by the test above, under a limit"]
async fn without_file_descriptors() {
    let running = start(&Shared::default(), ServerOptions::default()).await;
    let address = running.local_addr().unwrap();
    let mut sockets = Vec::new();
    // Both ends are in this process: once no more can be made here, the
    // server can't accept the last ones either.
    while let Ok(socket) = std::net::TcpStream::connect(address) {
        sockets.push(socket);
        assert!(sockets.len() < 200, "there is no limit");
        tokio::task::yield_now().await;
    }
    tokio::time::sleep(3 * SHORT).await;
    sockets.clear();
    let channel = channel(&url(&running), options(HttpVersion::Http2));
    let (head, _) = soon(channel.send(post("/refuse"), Empty)).await.unwrap();
    assert_eq!(head.status, 404);
}
