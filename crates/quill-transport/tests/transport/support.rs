//! A service whose behaviour the request's path picks, and ways to reach it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quill_core::{Headers, HttpVersion, RequestHead, ResponseHead};
use quill_transport::tls::ClientTls;
use quill_transport::{
    Body, BoxBody, Channel, Chunk, ClientOptions, Empty, Endpoint, Full, HttpRequest, HttpResponse,
    HttpServer, Listener, RecvBody, Running, ServerOptions, Service, TransportError,
};
use tokio::sync::{Notify, mpsc};

/// What no test should take longer than.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Fails a test that hangs.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LONG, future)
        .await
        .expect("it took too long")
}

/// Stops the clock: it moves only when a test says so. By itself it would run ahead
/// whenever everybody waits, be it for bytes that are on their way.
pub(crate) fn stop_clock() -> std::sync::mpsc::SyncSender<()> {
    tokio::time::pause();
    let (hold, held) = std::sync::mpsc::sync_channel(0);
    tokio::task::spawn_blocking(move || held.recv());
    hold
}

/// A body that a channel feeds.
pub(crate) struct Fed(pub(crate) mpsc::Receiver<Result<Chunk, TransportError>>);

pub(crate) type Feed = mpsc::Sender<Result<Chunk, TransportError>>;

pub(crate) fn fed() -> (Feed, Fed) {
    let (feed, fed) = mpsc::channel(1);
    (feed, Fed(fed))
}

impl Body for Fed {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        self.0.poll_recv(cx)
    }
}

/// An endless body that counts what was polled from it, and tells of its drop.
pub(crate) struct Endless {
    pub(crate) polled_bytes: Arc<AtomicUsize>,
    pub(crate) dropped: Arc<Notify>,
}

impl Body for Endless {
    fn poll_chunk(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        const CHUNK: Bytes = Bytes::from_static(&[7; 1024]);
        self.polled_bytes.fetch_add(CHUNK.len(), Ordering::SeqCst);
        Poll::Ready(Some(Ok(Chunk::Data(CHUNK))))
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.dropped.notify_one();
    }
}

/// What the service and a test see of each other.
#[derive(Clone, Default)]
pub(crate) struct Shared {
    pub(crate) calls: Arc<AtomicUsize>,
    pub(crate) polled_bytes: Arc<AtomicUsize>,
    pub(crate) dropped: Arc<Notify>,
    pub(crate) release: Arc<Notify>,
    pub(crate) arrived: Arc<Notify>,
}

/// Tells of its drop.
struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Service for Shared {
    type Body = BoxBody;
    type Future = Pin<Box<dyn Future<Output = HttpResponse<BoxBody>> + Send>>;

    fn call(&self, request: HttpRequest) -> Self::Future {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let shared = self.clone();
        Box::pin(async move {
            let path = request.head.path().to_owned();
            match path.as_str() {
                "/echo" => echo(request),
                "/head" => answer(200, Full::new(describe(&request))),
                "/trailers" => trailers(request).await,
                "/refuse" => answer(404, Full::new("no such path")),
                "/hang" => {
                    let _guard = OnDrop(shared.dropped.clone());
                    shared.arrived.notify_one();
                    std::future::pending().await
                }
                "/wait" => {
                    shared.arrived.notify_one();
                    shared.release.notified().await;
                    answer(200, Full::new("released"))
                }
                "/endless" => answer(
                    200,
                    Endless {
                        polled_bytes: shared.polled_bytes,
                        dropped: shared.dropped,
                    },
                ),
                "/stall" => {
                    shared.arrived.notify_one();
                    shared.release.notified().await;
                    let (bytes, _) = collect(request.body).await.unwrap_or_default();
                    answer(200, Full::new(bytes.len().to_string()))
                }
                "/count" => match collect(request.body).await {
                    Ok((bytes, _)) => answer(200, Full::new(bytes.len().to_string())),
                    Err(error) => {
                        shared.dropped.notify_one();
                        answer(400, Full::new(error.to_string()))
                    }
                },
                "/fail" => {
                    let (feed, body) = fed();
                    tokio::spawn(async move {
                        let _ = feed.send(Ok(Chunk::Data("a".into()))).await;
                        let kind = quill_transport::TransportErrorKind::Canceled;
                        let _ = feed.send(Err(TransportError::new(kind, "stop"))).await;
                    });
                    answer(200, body)
                }
                _ => answer(404, Empty),
            }
        })
    }
}

fn answer(status: u16, body: impl Body + 'static) -> HttpResponse<BoxBody> {
    let head = ResponseHead::new(status);
    let body: BoxBody = Box::pin(body);
    HttpResponse { head, body }
}

/// Sends the request's body and `x-` fields back.
fn echo(request: HttpRequest) -> HttpResponse<BoxBody> {
    let mut response = answer(200, request.body);
    for (name, value) in request.head.headers.iter() {
        if name.starts_with("x-") {
            response.head.headers.append(name, value);
        }
    }
    response
}

async fn trailers(request: HttpRequest) -> HttpResponse<BoxBody> {
    let (bytes, received) = collect(request.body).await.unwrap_or_default();
    let (feed, body) = fed();
    tokio::spawn(async move {
        let mut trailers = Headers::new();
        trailers.append("x-received", received.first("x-sum").unwrap_or(b"none"));
        let _ = feed.send(Ok(Chunk::Data(bytes))).await;
        let _ = feed.send(Ok(Chunk::Trailers(trailers))).await;
    });
    let mut response = answer(200, body);
    response.head.headers.append("trailer", "x-received");
    response
}

fn describe(request: &HttpRequest) -> String {
    let HttpRequest { head, peer, .. } = request;
    format!(
        "{:?} {} {} {:?} address={} secure={} certificates={}",
        head.method,
        head.target,
        head.authority,
        peer.version(),
        peer.address().is_some(),
        peer.is_secure(),
        peer.certificates().len(),
    )
}

/// All bytes and the trailers of a body.
pub(crate) async fn collect(mut body: RecvBody) -> Result<(Bytes, Headers), TransportError> {
    let mut bytes = BytesMut::new();
    let mut trailers = Headers::new();
    while let Some(chunk) = next(&mut body).await {
        match chunk? {
            Chunk::Data(data) => bytes.extend_from_slice(&data),
            Chunk::Trailers(fields) => trailers = fields,
        }
    }
    Ok((bytes.freeze(), trailers))
}

pub(crate) async fn next(body: &mut RecvBody) -> Option<Result<Chunk, TransportError>> {
    poll_fn(|cx| Pin::new(&mut *body).poll_chunk(cx)).await
}

pub(crate) async fn text(body: RecvBody) -> String {
    let (bytes, _) = soon(collect(body)).await.expect("a whole body");
    String::from_utf8(bytes.to_vec()).expect("text")
}

pub(crate) async fn start(shared: &Shared, options: ServerOptions) -> Running {
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let server = HttpServer::new(listener).with_options(options).unwrap();
    server.start(shared.clone())
}

pub(crate) fn url(running: &Running) -> String {
    format!("http://{}", running.local_addr().unwrap())
}

pub(crate) fn options(version: HttpVersion) -> ClientOptions {
    let mut options = ClientOptions::default();
    options.http1 = version == HttpVersion::Http1;
    options
}

pub(crate) fn channel(url: &str, options: ClientOptions) -> Channel {
    let endpoint = Endpoint::parse(url).unwrap();
    let tls = ClientTls::builder().build().unwrap();
    let tls = endpoint.is_secure().then_some(tls);
    Channel::new(endpoint, options, tls).unwrap()
}

pub(crate) const VERSIONS: [HttpVersion; 2] = [HttpVersion::Http1, HttpVersion::Http2];

/// A server and a client of it, for each version of HTTP.
pub(crate) async fn pair(version: HttpVersion) -> (Shared, Running, Channel) {
    let shared = Shared::default();
    let running = start(&shared, ServerOptions::default()).await;
    let channel = channel(&url(&running), options(version));
    (shared, running, channel)
}

pub(crate) fn post(path: &str) -> RequestHead {
    RequestHead::post(path)
}

impl Shared {
    /// Waits until the service was called so often.
    pub(crate) async fn calls_reach(&self, calls: usize) {
        while self.calls.load(Ordering::SeqCst) < calls {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
