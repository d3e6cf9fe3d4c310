//! What is compressed, and what is not: seen by the bytes that pass by.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream;
use quill::concurrency::ConcurrencyLimitLayer;
use quill::metrics::MetricsCollector;
use quill::{Format, Protocol, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::probe::{PROTOCOLS, ProbeClient, ProbeRequest, Served, say, serve_with};

/// A proxy that counts what comes back from a server.
struct Tap {
    url: String,
    bytes: Arc<AtomicUsize>,
}

impl Tap {
    async fn before(served: &Served) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let to = served.url.strip_prefix("http://").unwrap().to_owned();
        let bytes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&bytes);
        tokio::spawn(async move {
            while let Ok((caller, _)) = listener.accept().await {
                let server = TcpStream::connect(&to).await.unwrap();
                tokio::spawn(pass(caller, server, Arc::clone(&counted)));
            }
        });
        Self { url, bytes }
    }

    fn client(&self, way: Way) -> ProbeClient {
        let builder = quill::QuillClient::builder().base_url(&self.url);
        let builder = builder.protocol(way.protocol).format(way.format);
        let builder = match way.credits {
            Some(credits) => builder.credits(credits),
            None => builder,
        };
        ProbeClient::new(builder.build().unwrap())
    }

    fn take(&self) -> usize {
        self.bytes.swap(0, Ordering::SeqCst)
    }
}

/// How a call is made.
#[derive(Clone, Copy, Debug)]
struct Way {
    protocol: Protocol,
    format: Format,
    credits: Option<u32>,
}

impl Way {
    fn of(protocol: Protocol) -> Self {
        Self {
            protocol,
            format: Format::Proto,
            credits: None,
        }
    }

    /// Every protocol and format, and Quill's streams with credits, whose heads leave
    /// before their handlers have said anything.
    fn all() -> Vec<Self> {
        let mut ways = Vec::new();
        for protocol in PROTOCOLS {
            for format in [Format::Proto, Format::Json] {
                let way = Self::of(protocol);
                ways.push(Self { format, ..way });
            }
        }
        let credits = Some(16);
        ways.push(Self {
            credits,
            ..Self::of(Protocol::Quill)
        });
        ways
    }
}

async fn pass(caller: TcpStream, server: TcpStream, counted: Arc<AtomicUsize>) {
    let (mut from_caller, mut to_caller) = caller.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_caller, &mut to_server).await });
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
        counted.fetch_add(count, Ordering::SeqCst);
        if to_caller.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

const PAD: u32 = 60_000;

fn padded() -> ProbeRequest {
    ProbeRequest {
        count: 1,
        pad_bytes: PAD,
        ..say("x")
    }
}

/// Makes a call of each kind; what came back for each.
async fn bytes_of_each(tap: &Tap, way: Way, secret: bool) -> [usize; 4] {
    let client = tap.client(way);
    // The connection's own first words.
    client.one(say("x")).await.unwrap();
    let request = |message| {
        let request = Request::new(message);
        if secret {
            return request.with_metadata("x-secret", "yes").unwrap();
        }
        request
    };
    tap.take();
    let answer = client.one(request(padded())).await.unwrap();
    assert_eq!(answer.message().pad.len(), PAD as usize);
    let one = tap.take();
    let mut answers = client.down(request(padded())).await.unwrap().into_inner();
    while answers.message().await.unwrap().is_some() {}
    let down = tap.take();
    let messages = || stream::iter([padded()]);
    let sent = request(ProbeRequest::default()).map(|_| messages());
    client.up(sent).await.unwrap();
    let up = tap.take();
    let sent = request(ProbeRequest::default()).map(|_| messages());
    let mut answers = client.both(sent).await.unwrap().into_inner();
    while answers.message().await.unwrap().is_some() {}
    [one, down, up, tap.take()]
}

const SMALL: std::ops::Range<usize> = 1..8_000;
const LARGE: std::ops::Range<usize> = 60_000..200_000;

#[tokio::test]
async fn an_answer_that_says_so_is_not_compressed_in_any_protocol_or_kind() {
    let metrics = MetricsCollector::new();
    let served = serve_with(|builder| {
        builder
            .metrics(&metrics)
            .layer(ConcurrencyLimitLayer::new(100))
    })
    .await;
    let tap = Tap::before(&served).await;
    for way in Way::all() {
        let open = bytes_of_each(&tap, way, false).await;
        let secret = bytes_of_each(&tap, way, true).await;
        for (open, secret) in open.into_iter().zip(secret) {
            assert!(SMALL.contains(&open), "{way:?}: {open}");
            assert!(LARGE.contains(&secret), "{way:?}: {secret}");
        }
    }
}

#[tokio::test]
async fn methods_that_the_builder_names_are_not_compressed() {
    let all = serve_with(|builder| builder.without_compression("/probe.v1.ProbeService/*")).await;
    let one = serve_with(|builder| builder.without_compression("probe.v1.ProbeService/One")).await;
    let (all, one) = (Tap::before(&all).await, Tap::before(&one).await);
    for way in Way::all() {
        let bytes = bytes_of_each(&all, way, false).await;
        assert!(bytes.iter().all(|bytes| LARGE.contains(bytes)), "{bytes:?}");
        let [first, rest @ ..] = bytes_of_each(&one, way, false).await;
        assert!(LARGE.contains(&first), "{way:?}: {first}");
        assert!(rest.iter().all(|bytes| SMALL.contains(bytes)), "{rest:?}");
    }
    let builder = quill::Server::builder().without_compression("/probe.v1.ProbeService/*");
    let error = builder.bind("127.0.0.1:0").await.unwrap_err();
    assert!(error.to_string().contains("without_compression"), "{error}");
}

#[tokio::test]
async fn the_threshold_and_the_switch_hold_in_every_protocol_and_kind() {
    let off = serve_with(|builder| builder.enable_compression(false)).await;
    let beyond = serve_with(|builder| builder.compress_bytes_min(1_000_000)).await;
    let hard = serve_with(|builder| builder.compression_level(9)).await;
    for (served, expected) in [(&off, LARGE), (&beyond, LARGE), (&hard, SMALL)] {
        let tap = Tap::before(served).await;
        for protocol in PROTOCOLS {
            let bytes = bytes_of_each(&tap, Way::of(protocol), false).await;
            let are_so = bytes.iter().all(|bytes| expected.contains(bytes));
            assert!(are_so, "{protocol:?}: {bytes:?}, not {expected:?}");
        }
    }
}
