//! What unfinished messages may hold together.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use quill::{Protocol, Server};
use quill_transport::{Body, Chunk, TransportError};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

use crate::peer::{self, Answer, head};
use crate::probe::{PROTOCOLS, Probe, ProbeServer, Served, eventually, say, serve, serve_with};

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
    let frame = frame_header(whole, false);
    let one = "/probe.v1.ProbeService/One";
    let up = "/probe.v1.ProbeService/Up";
    [
        (one, "application/grpc", envelope.clone(), whole - 1),
        (one, "application/grpc", envelope.clone(), whole),
        (up, "application/grpc-web", envelope.clone(), whole - 1),
        (up, "application/connect+proto", envelope, whole - 1),
        (one, "application/proto", Vec::new(), whole),
        (one, "application/quill+proto", Vec::new(), whole),
        (up, "application/quill-stream+proto", frame, whole - 1),
    ]
    .map(|(path, content_type, prefix, sent)| Beginning {
        path,
        content_type,
        prefix,
        sent,
    })
    .into()
}

fn frame_header(payload_bytes: usize, end_stream: bool) -> Vec<u8> {
    let mut frame = bytes::BytesMut::new();
    quill_core::frame::FrameHeader {
        flags: quill_core::frame::Flags::data(false, end_stream),
        payload_bytes: u32::try_from(payload_bytes).unwrap(),
    }
    .encode(&mut frame);
    frame.to_vec()
}

/// A request's body that is fed piece by piece.
pub(crate) struct Fed(pub(crate) mpsc::Receiver<Bytes>);

impl Body for Fed {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        let piece = self.0.poll_recv(cx);
        piece.map(|piece| piece.map(|bytes| Ok(Chunk::Data(bytes))))
    }
}

/// The methods and media types of a call, some with credits.
const KINDS: [(&str, &str); 8] = [
    ("One", "application/grpc+json"),
    ("One", "application/json"),
    ("One", "application/quill+json"),
    ("Down", "application/grpc-web+json"),
    ("Down", "application/connect+json"),
    ("Down", "application/quill-stream+json"),
    ("Both", "application/grpc+json"),
    ("Both", "application/quill-stream+json"),
];

/// A call whose message came in two pieces: the last is sent once the server
/// waits for it, holding the first.
struct InPieces {
    answer: JoinHandle<Answer>,
    /// Open where the method takes more messages.
    _more: Option<mpsc::Sender<Bytes>>,
}

impl InPieces {
    async fn call(
        served: &Served,
        channel: &quill_transport::Channel,
        (method, content_type): (&str, &str),
        message_bytes: usize,
        ending: &str,
    ) -> Self {
        let others = r#"{"text":"","count":1,"ending":""}"#.len() + ending.len();
        let text = "x".repeat(message_bytes - others);
        let message = format!(r#"{{"text":"{text}","count":1,"ending":"{ending}"}}"#);
        let goes_on = method == "Both" && !ending.is_empty();
        let prefix = match content_type {
            "application/json" | "application/quill+json" => Vec::new(),
            "application/quill-stream+json" => frame_header(message.len(), !goes_on),
            _ => peer::envelope(0, message.as_bytes())[..5].to_vec(),
        };
        let prefix_bytes = prefix.len();
        let mut pieces = [prefix, message.into_bytes()].concat();
        let last = pieces.split_off(pieces.len() - 10);
        let path = format!("/probe.v1.ProbeService/{method}");
        let mut head = head(&path, &[("content-type", content_type)]);
        if content_type.starts_with("application/quill-stream") {
            head.headers.append("quill-credits", "16");
        }
        let (feed, body) = mpsc::channel(2);
        let channel = channel.clone();
        let answer = tokio::spawn(async move { peer::exchange(&channel, head, Fed(body)).await });
        let before = served.server.held_bytes();
        // What says how long the message is takes no memory.
        let first_bytes = pieces.len() - prefix_bytes;
        feed.try_send(pieces.into()).unwrap();
        eventually("it waits for the rest", || {
            assert!(!answer.is_finished(), "{method} {content_type}: refused");
            served.server.held_bytes() >= before + first_bytes
        })
        .await;
        feed.try_send(last.into()).unwrap();
        Self {
            answer,
            _more: goes_on.then_some(feed),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_a_handler_has_is_not_held() {
    for kind in KINDS {
        let served = serve().await;
        let channel = peer::http2(&served.url);
        let call = InPieces::call(&served, &channel, kind, MIB / 2, "hang").await;
        eventually("its handler runs", || {
            served.seen.hanging.load(Ordering::SeqCst)
        })
        .await;
        assert_eq!(served.server.held_bytes(), 0, "{kind:?}");
        call.answer.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_handlers_leave_the_budget_to_others() {
    let served = serve_with(|builder| {
        let builder = builder.receive_bytes_max(MIB);
        builder.connection_held_bytes_max(2 * MIB)
    })
    .await;
    let channel = peer::http2(&served.url);
    for slow in 1..=9 {
        let kind = ("One", "application/json");
        let call = InPieces::call(&served, &channel, kind, MIB / 2, "hang").await;
        eventually("its handler runs", || {
            assert!(!call.answer.is_finished(), "the call {slow} was refused");
            served.seen.made.load(Ordering::SeqCst) == slow
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_call_alone_fits_the_least_budget() {
    let served = serve_with(|builder| {
        let builder = builder.receive_bytes_max(MIB);
        builder.connection_held_bytes_max(MIB)
    })
    .await;
    for kind in KINDS {
        let channel = peer::http2(&served.url);
        let call = InPieces::call(&served, &channel, kind, MIB, "").await;
        let answer = peer::soon(call.answer).await.unwrap();
        assert_eq!(answer.status, 200, "{kind:?}: {answer:?}");
        assert!(!says_exhausted(&answer), "{kind:?}");
        let has_text = answer.body.windows(5).any(|bytes| bytes == b"xxxxx");
        assert!(has_text, "{kind:?}: {answer:?}");
    }
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
