//! How a server ends: health first, then the drain, then what is flushed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream;
use quill::{Code, Protocol, QuillClient, Server};
use quill_health::Status;
use tokio::sync::{mpsc, oneshot};

use crate::peer::soon;
use crate::probe::{PROTOCOLS, Probe, ProbeClient, ProbeRequest, ProbeServer, say};

/// `HealthCheckRequest` of the probe: field 1, its name.
const CHECK: &str = "\x0a\x15probe.v1.ProbeService";
/// `HealthCheckResponse`: field 1 is 1 for SERVING, 2 for NOT_SERVING.
const SERVING: &[u8] = b"\x08\x01";
const NOT_SERVING: &[u8] = b"\x08\x02";
const HEALTH: &str = "grpc.health.v1.Health";

/// How long a server goes on that was asked to end: longer than what is done meanwhile.
const DELAY: Duration = Duration::from_secs(4);

#[tokio::test]
async fn health_goes_first_then_the_drain_and_the_flush_last() {
    let flushed = Arc::new(AtomicBool::new(false));
    let flush = Arc::clone(&flushed);
    let (health, reporter) = quill_health::reporter();
    reporter.set("probe.v1.ProbeService", Status::Serving);
    let bound = Server::builder()
        .service(ProbeServer::new(Probe::default()))
        .service(health)
        .drain_delay(DELAY)
        .drain_limit(Duration::from_secs(20))
        .on_shutdown(async move { flush.store(true, Ordering::SeqCst) })
        .bind("127.0.0.1:0")
        .await
        .unwrap();
    let url = format!("http://{}", bound.local_addr().unwrap());
    let client = |protocol: Protocol| {
        let builder = QuillClient::builder().base_url(&url).protocol(protocol);
        builder.build().unwrap()
    };
    let (ask, asked) = oneshot::channel::<()>();
    let served = tokio::spawn(bound.serve_until(async move { drop(asked.await) }));
    let mut watches = Vec::new();
    for protocol in PROTOCOLS {
        let client = client(protocol);
        let mut watch = client
            .call_server_stream(HEALTH, "Watch", CHECK)
            .await
            .unwrap();
        let first = watch.message().await.unwrap().unwrap();
        assert_eq!(first, SERVING, "{protocol:?}");
        watches.push((protocol, watch));
    }
    // A call that is under way all the time.
    let (more, messages) = mpsc::channel::<ProbeRequest>(1);
    let messages = stream::unfold(messages, |mut messages| async move {
        messages.recv().await.map(|message| (message, messages))
    });
    let open = ProbeClient::new(client(Protocol::Grpc));
    let mut answers = open.both(messages).await.unwrap().into_inner();
    more.send(say("before")).await.unwrap();
    assert!(answers.message().await.unwrap().is_some());

    let since = Instant::now();
    ask.send(()).unwrap();
    for (protocol, watch) in &mut watches {
        let told = soon(watch.message()).await.unwrap().unwrap();
        assert_eq!(told, NOT_SERVING, "{protocol:?}");
        // It still takes connections and calls.
        let client = client(*protocol);
        let told = client.call(HEALTH, "Check", CHECK).await.unwrap();
        assert_eq!(told, NOT_SERVING, "{protocol:?}");
        ProbeClient::new(client).one(say("x")).await.unwrap();
    }
    assert!(!served.is_finished());
    // Who watches is sent away when it takes no more, so as not to come back here.
    for (protocol, mut watch) in watches {
        let end = soon(watch.message()).await.unwrap_err();
        assert_eq!(end.code(), Code::Unavailable, "{protocol:?}: {end}");
        assert!(since.elapsed() >= DELAY, "{protocol:?}");
    }
    let address = url.strip_prefix("http://").unwrap();
    soon(async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    more.send(say("after")).await.unwrap();
    let after = soon(answers.message()).await.unwrap().unwrap();
    assert_eq!(after.text, "after", "what was open goes on");
    assert!(!flushed.load(Ordering::SeqCst));
    drop(more);
    assert!(soon(answers.message()).await.unwrap().is_none());
    soon(served).await.unwrap().unwrap();
    assert!(flushed.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_flush_that_never_ends_is_left_and_the_next_one_run() {
    let flushed = Arc::new(AtomicBool::new(false));
    let flush = Arc::clone(&flushed);
    let running = Server::builder()
        .service(quill_health::server())
        .on_shutdown(std::future::pending())
        .on_shutdown(async move { flush.store(true, Ordering::SeqCst) })
        .bind("127.0.0.1:0")
        .await
        .unwrap()
        .start();
    // No bytes are on their way: the clock may run ahead.
    tokio::time::pause();
    running.shutdown().await;
    assert!(flushed.load(Ordering::SeqCst));
}

#[tokio::test]
async fn what_is_of_a_servers_end_is_not_for_one_that_is_mounted() {
    for builder in [
        Server::builder().drain_delay(DELAY),
        Server::builder().on_shutdown(async {}),
    ] {
        assert!(builder.into_http_service().is_err());
    }
}
