//! What unfinished messages may hold together.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use quill::{Protocol, Server};
use quill_transport::{Body, Chunk, TransportError};
use tokio::task::JoinSet;

use crate::peer::{self, Answer, head};
use crate::probe::{PROTOCOLS, Probe, ProbeServer, eventually, say, serve, serve_with};

const MIB: usize = 1024 * 1024;
const STREAMS: usize = 12;

/// A request's body that stops before its end, and stays open.
pub(crate) struct Unfinished {
    prefix: Option<Bytes>,
    left: usize,
}

impl Unfinished {
    /// These bytes and `left` zeros.
    pub(crate) fn new(prefix: Vec<u8>, left: usize) -> Self {
        Self {
            prefix: Some(prefix.into()),
            left,
        }
    }
}

impl Body for Unfinished {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        if let Some(prefix) = self.prefix.take().filter(|prefix| !prefix.is_empty()) {
            return Poll::Ready(Some(Ok(Chunk::Data(prefix))));
        }
        if self.left == 0 {
            return Poll::Pending;
        }
        let bytes = self.left.min(64 * 1024);
        self.left -= bytes;
        Poll::Ready(Some(Ok(Chunk::Data(vec![0; bytes].into()))))
    }
}

/// How one protocol begins a message of 4 MiB - 1 bytes.
struct Beginning {
    path: &'static str,
    content_type: &'static str,
    prefix: Vec<u8>,
    /// Bytes of the message that are sent.
    sent: usize,
}

/// Messages that stop before their last byte, and messages whose half goes on.
fn beginnings() -> Vec<Beginning> {
    let whole = 4 * MIB - 1;
    let envelope = [&[0], &u32::try_from(whole).unwrap().to_be_bytes()[..]].concat();
    let mut frame = bytes::BytesMut::new();
    quill_core::frame::FrameHeader {
        flags: quill_core::frame::Flags::data(false, false),
        payload_bytes: u32::try_from(whole).unwrap(),
    }
    .encode(&mut frame);
    let one = "/probe.v1.ProbeService/One";
    let up = "/probe.v1.ProbeService/Up";
    [
        (one, "application/grpc", envelope.clone(), whole - 1),
        (one, "application/grpc", envelope.clone(), whole),
        (up, "application/grpc-web", envelope.clone(), whole - 1),
        (up, "application/connect+proto", envelope, whole - 1),
        (one, "application/proto", Vec::new(), whole),
        (one, "application/quill+proto", Vec::new(), whole),
        (
            up,
            "application/quill-stream+proto",
            frame.to_vec(),
            whole - 1,
        ),
    ]
    .map(|(path, content_type, prefix, sent)| Beginning {
        path,
        content_type,
        prefix,
        sent,
    })
    .into()
}

fn says_exhausted(answer: &Answer) -> bool {
    let body = String::from_utf8_lossy(&answer.body);
    let says = |text| body.contains(text);
    answer.grpc_status() == Some("8") || says("resource_exhausted") || says("grpc-status: 8")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_unfinished_messages_of_one_connection_stay_within_its_budget() {
    let limit = 9 * MIB;
    for beginning in beginnings() {
        let served = serve_with(|builder| builder.connection_held_bytes_max(limit)).await;
        let channel = peer::http2(&served.url);
        let refused = Arc::new(AtomicUsize::new(0));
        let mut calls = JoinSet::new();
        for _ in 0..STREAMS {
            let head = head(beginning.path, &[("content-type", beginning.content_type)]);
            let body = Unfinished::new(beginning.prefix.clone(), beginning.sent);
            let (channel, refused) = (channel.clone(), Arc::clone(&refused));
            calls.spawn(async move {
                let answer = peer::exchange(&channel, head, body).await;
                assert!(says_exhausted(&answer), "{answer:?}");
                let text = [&answer.body[..], answer.grpc_message().as_bytes()].concat();
                let text = String::from_utf8_lossy(&text).into_owned();
                assert!(text.contains("connection_held_bytes_max"), "{text}");
                refused.fetch_add(1, Ordering::SeqCst);
            });
        }
        let most = Arc::new(AtomicUsize::new(0));
        let what = format!("{} {}", beginning.content_type, beginning.path);
        eventually(&what, || {
            most.fetch_max(served.server.held_bytes(), Ordering::SeqCst);
            // Two messages fit; all that do not are refused.
            refused.load(Ordering::SeqCst) >= STREAMS - 2
        })
        .await;
        assert!(most.load(Ordering::SeqCst) <= limit, "{what}");
        // Whole messages are taken all the same, here and on other connections.
        let good = head(
            "/probe.v1.ProbeService/One",
            &[("content-type", "application/json")],
        );
        let answer = peer::send(&channel, good, r#"{"text":"on"}"#).await;
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        for protocol in PROTOCOLS {
            let large = say(&"x".repeat(3 * MIB));
            let answer = served.client(protocol).one(large).await;
            assert!(answer.is_ok(), "{what}, {protocol:?}: {answer:?}");
        }
        drop(channel);
        calls.shutdown().await;
        eventually("all is given back", || served.server.held_bytes() == 0).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_servers_budget_bounds_all_connections_together() {
    let served = serve_with(|builder| builder.held_bytes_max(5 * MIB)).await;
    let mut calls = JoinSet::new();
    for _ in 0..4 {
        let channel = peer::http2(&served.url);
        calls.spawn(async move {
            let head = head(
                "/probe.v1.ProbeService/One",
                &[("content-type", "application/proto")],
            );
            let body = Unfinished::new(Vec::new(), 3 * MIB);
            peer::exchange(&channel, head, body).await
        });
    }
    for _ in 0..3 {
        let answer = peer::soon(calls.join_next()).await.unwrap().unwrap();
        assert_eq!(answer.status, 429, "{answer:?}");
        assert!(answer.text().contains("5242880"), "{}", answer.text());
        assert!(
            answer.text().contains("(held_bytes_max)"),
            "{}",
            answer.text()
        );
    }
    assert!(served.server.held_bytes() <= 5 * MIB);
    assert!(served.client(Protocol::Grpc).one(say("x")).await.is_ok());
}

#[tokio::test]
async fn what_decompression_makes_counts_while_its_half_goes_on() {
    let served = serve_with(|builder| builder.connection_held_bytes_max(5 * MIB)).await;
    let mut small = bytes::BytesMut::new();
    let gzip = quill_core::compression::Encoding::Gzip;
    quill_core::compression::compress(gzip, 9, &vec![0; 4 * MIB], &mut small).unwrap();
    assert!(small.len() < 64 * 1024);
    let message = peer::envelope(1, &small);
    let channel = peer::http2(&served.url);
    let mut calls = JoinSet::new();
    for _ in 0..2 {
        let fields = [
            ("content-type", "application/grpc"),
            ("grpc-encoding", "gzip"),
        ];
        let head = head("/probe.v1.ProbeService/One", &fields);
        let body = Unfinished::new(message.clone(), 0);
        let channel = channel.clone();
        calls.spawn(async move { peer::exchange(&channel, head, body).await });
    }
    let answer = peer::soon(calls.join_next()).await.unwrap().unwrap();
    assert!(says_exhausted(&answer), "{answer:?}");
}

#[tokio::test]
async fn a_budget_below_one_message_is_refused() {
    let build = |server: quill::ServerBuilder| server.bind("127.0.0.1:0");
    let service = || Server::builder().service(ProbeServer::new(Probe::default()));
    let error = build(service().held_bytes_max(1000)).await.unwrap_err();
    assert!(error.to_string().contains("held_bytes_max"), "{error}");
    let error = build(service().connection_held_bytes_max(1000))
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("connection_held_bytes_max"),
        "{error}"
    );
    let small = service().receive_bytes_max(1000).held_bytes_max(1000);
    assert!(build(small).await.is_ok());
}

#[tokio::test]
async fn a_call_that_is_over_holds_nothing() {
    let served = serve().await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        assert!(client.one(say(&"x".repeat(MIB))).await.is_ok());
        let error = client.one(crate::probe::ending("error")).await;
        assert!(error.is_err());
    }
    eventually("all is given back", || served.server.held_bytes() == 0).await;
}
