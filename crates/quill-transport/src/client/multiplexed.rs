//! An HTTP/2 connection, shared by many exchanges.

use std::sync::Arc;

use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use quill_core::{BoxError, HttpVersion, ResponseHead};
use tokio::sync::{Notify, oneshot, watch};

use super::connection::{CallOff, Calm, Failed, failed, received, refused_by};
use super::endpoint::Endpoint;
use super::h2;
use super::options::ClientOptions;
use super::request_body::{Handle, RequestBody, Source};
use super::tap::{Opening, Peer, Tap};
use crate::body::RecvBody;
use crate::bounds::{ADAPTIVE_WINDOW_BYTES, Http2Engine};
use crate::error::{TransportError, TransportErrorKind};
use crate::io::Io;
use crate::{fields, hyper_error};

/// Streams that are remembered for a while after they were reset here: what
/// the server sends on one that is forgotten counts as its fault, and many
/// such faults end the connection.
const RESET_STREAMS_MAX: usize = 1000;

/// An HTTP/2 connection; clones share it.
#[derive(Clone)]
pub(super) struct Multiplexed {
    sender: Sender,
    peer: Arc<Peer>,
}

/// What speaks HTTP/2.
#[derive(Clone)]
enum Sender {
    Quill(h2::Connection),
    Hyper(http2::SendRequest<RequestBody>),
}

impl Multiplexed {
    /// Begins HTTP/2 on a byte stream, and waits for the server's settings, so
    /// that its limits hold from the first stream on. The connection's task is
    /// spawned; `room` is told whenever there may be room for a stream.
    pub(super) async fn begin(
        io: Io,
        endpoint: &Endpoint,
        options: &ClientOptions,
        calm: &Calm,
        room: Arc<Notify>,
    ) -> Result<Self, TransportError> {
        let (tap, peer, opening) = Tap::new(io, Arc::clone(&room));
        let (tell, ended) = oneshot::channel();
        let on_end = move |error: Option<BoxError>| {
            // Only who begins the connection listens.
            let _ = tell.send(error);
            room.notify_waiters();
        };
        let sender = match options.http2_engine {
            Http2Engine::Quill => {
                let settings = settings(options, calm, Box::new(on_end));
                Sender::Quill(h2::Connection::begin(tap, settings))
            }
            Http2Engine::Hyper => begin_hyper(tap, endpoint, options, calm, on_end).await?,
        };
        opened(endpoint, opening, ended).await?;
        Ok(Self { sender, peer })
    }

    /// Whether a stream can begin here, if there is room.
    pub(super) fn is_usable(&self) -> bool {
        let is_closed = match &self.sender {
            Sender::Quill(connection) => connection.is_closed(),
            Sender::Hyper(sender) => sender.is_closed(),
        };
        !is_closed && !self.peer.is_going_away()
    }

    /// What the server said of the connection.
    pub(super) fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Whether both are the same connection.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.peer, &other.peer)
    }

    /// Sends a request on the stream that was taken up for it.
    pub(super) async fn send(
        &mut self,
        endpoint: &Endpoint,
        source: Source,
    ) -> Result<(ResponseHead, RecvBody, Handle), Failed> {
        match &mut self.sender {
            Sender::Quill(connection) => send_http2(connection, endpoint.scheme(), source).await,
            Sender::Hyper(sender) => Box::pin(send_hyper(sender, endpoint.scheme(), source)).await,
        }
    }
}

/// Begins HTTP/2 on hyper; the connection's task is spawned.
async fn begin_hyper(
    tap: Tap<Io>,
    endpoint: &Endpoint,
    options: &ClientOptions,
    calm: &Calm,
    on_end: impl FnOnce(Option<BoxError>) + Send + 'static,
) -> Result<Sender, TransportError> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(options.http2_stream_window_bytes)
        .initial_connection_window_size(options.connection_window_bytes())
        .max_frame_size(options.http2_frame_bytes_max)
        .max_header_list_size(options.headers_bytes_max)
        .max_send_buf_size(options.http2_send_buffer_bytes_max)
        .max_concurrent_reset_streams(RESET_STREAMS_MAX)
        .keep_alive_interval(
            options
                .http2_ping_interval
                .map(|every| calm.interval(every)),
        )
        .keep_alive_timeout(options.http2_ping_timeout)
        .keep_alive_while_idle(options.http2_ping_while_idle);
    if options.http2_adaptive_window {
        builder.adaptive_window(true);
    }
    let handshake = builder.handshake(TokioIo::new(tap)).await;
    let (sender, connection) = handshake.map_err(|error| unbegun(endpoint, Some(error.into())))?;
    let calm = calm.clone();
    tokio::spawn(async move {
        let ended = connection.await.err();
        if let Some(error) = &ended {
            if hyper_error::asks_for_calm(error) {
                calm.double();
            }
            tracing::debug!(error = %hyper_error::chain(error), "a connection failed");
        }
        on_end(ended.map(Into::into));
    });
    Ok(Sender::Hyper(sender))
}

/// What our own engine is to keep to.
pub(super) fn config(options: &ClientOptions) -> quill_h2::Config {
    let mut config = quill_h2::Config::default();
    config.stream_window_bytes = options.http2_stream_window_bytes;
    config.connection_window_bytes = options.connection_window_bytes();
    if options.http2_adaptive_window {
        config.stream_window_bytes = ADAPTIVE_WINDOW_BYTES;
        config.connection_window_bytes = ADAPTIVE_WINDOW_BYTES;
    }
    config.frame_bytes_max = options.http2_frame_bytes_max;
    config.headers_bytes_max = options.headers_bytes_max;
    config
}

/// What a connection on our own engine is to be like.
fn settings(
    options: &ClientOptions,
    calm: &Calm,
    on_end: Box<dyn FnOnce(Option<BoxError>) + Send>,
) -> h2::Settings {
    let interval = options.http2_ping_interval;
    let told = calm.clone();
    h2::Settings {
        config: config(options),
        waiting_bytes_max: options.http2_send_buffer_bytes_max,
        keep_alive: h2::KeepAlive {
            interval: interval.map(|every| calm.interval(every)),
            timeout: options.http2_ping_timeout,
            while_idle: options.http2_ping_while_idle,
        },
        on_calm: Box::new(move || told.double()),
        on_end,
    }
}

/// Sends a request on a connection of our own engine.
async fn send_http2(
    connection: &h2::Connection,
    scheme: &'static str,
    source: Source,
) -> Result<(ResponseHead, RecvBody, Handle), Failed> {
    if let Err(error) = fields::check_request(source.head()) {
        return Err(Failed::for_good(error));
    }
    let (body, handle) = source.send();
    let guard = CallOff(&handle);
    match connection.send(scheme, body).await {
        Ok((head, body)) => {
            handle.answered();
            std::mem::forget(guard);
            Ok((head, body, handle))
        }
        Err(error) => Err(Box::pin(failed(error, &handle)).await),
    }
}

/// Sends a request on a connection of hyper's.
async fn send_hyper(
    sender: &mut http2::SendRequest<RequestBody>,
    scheme: &str,
    source: Source,
) -> Result<(ResponseHead, RecvBody, Handle), Failed> {
    let parts = match fields::request_to_http(source.head(), Some(scheme)) {
        Ok(parts) => parts,
        Err(error) => return Err(Failed::for_good(error)),
    };
    let (body, handle) = source.send();
    let guard = CallOff(&handle);
    let request = http::Request::from_parts(parts, body);
    match sender.try_send_request(request).await {
        Ok(response) => {
            let (head, body) = received(response, &handle, HttpVersion::Http2);
            std::mem::forget(guard);
            Ok((head, body, handle))
        }
        Err(refused) => Err(refused_by(refused, &handle).await),
    }
}

/// Waits for the server's settings.
async fn opened(
    endpoint: &Endpoint,
    mut opening: watch::Receiver<Opening>,
    ended: oneshot::Receiver<Option<BoxError>>,
) -> Result<(), TransportError> {
    let first = opening.wait_for(|first| *first != Opening::Silent).await;
    let what = match first.map(|first| *first) {
        Ok(Opening::Settings) => return Ok(()),
        Ok(Opening::Http1) => "the server answered in HTTP/1.1",
        Ok(_) => "what the server answered is no HTTP",
        Err(_) => return Err(unbegun(endpoint, ended.await.ok().flatten())),
    };
    let message = format!("{endpoint} does not speak HTTP/2: {what}{}", hint(endpoint));
    Err(TransportError::new(TransportErrorKind::HttpVersion, message).unprocessed())
}

/// The error of a connection that ended before it was one.
pub(super) fn unbegun(endpoint: &Endpoint, error: Option<BoxError>) -> TransportError {
    let why = match &error {
        Some(error) => hyper_error::chain(&**error),
        None => "the server closed it before it said a word".to_owned(),
    };
    let message = format!(
        "the HTTP/2 connection to {endpoint} ended as it began: {why}{}",
        hint(endpoint)
    );
    // Without TLS nothing agreed on HTTP/2, and who does not know its preface
    // may close before what was said to it is read.
    let kind = if endpoint.is_secure() {
        TransportErrorKind::Connect
    } else {
        TransportErrorKind::HttpVersion
    };
    let failed = TransportError::new(kind, message).unprocessed();
    match error {
        Some(error) => failed.with_source(error),
        None => failed,
    }
}

/// Without TLS nothing agreed on the version.
fn hint(endpoint: &Endpoint) -> &'static str {
    if endpoint.is_secure() {
        ""
    } else {
        " (for a server of HTTP/1.1 use the client's http1 option; for one of TLS, https)"
    }
}
