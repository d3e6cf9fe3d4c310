//! A client's connection, once it is made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use quill_core::{HttpVersion, RequestHead, ResponseHead};

use super::dial::Dialed;
use super::endpoint::Endpoint;
use super::h2;
use super::options::ClientOptions;
use super::request_body::{Handle, RequestBody, Source};
use crate::body::RecvBody;
use crate::bounds::Http2Engine;
use crate::error::{TransportError, TransportErrorKind};
use crate::{fields, hyper_error};

/// Streams that are remembered for a while after they were reset here: what
/// the server sends on one that is forgotten counts as its fault, and many
/// such faults end the connection.
const RESET_STREAMS_MAX: usize = 1000;

/// Windows of a connection whose options say that they follow what is measured.
const ADAPTIVE_WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// How often a ping interval may be doubled.
const PING_DOUBLINGS_MAX: u32 = 16;

/// A connection's sender.
pub(super) enum Connection {
    Http1(http1::SendRequest<RequestBody>),
    Http2(Multiplexed),
}

/// An HTTP/2 connection; clones share it.
#[derive(Clone)]
pub(super) struct Multiplexed {
    sender: Sender,
    /// Whether the server has ever answered here, and so speaks HTTP/2.
    answered: Arc<AtomicBool>,
}

/// What speaks HTTP/2.
#[derive(Clone)]
enum Sender {
    Quill(h2::Connection),
    Hyper(http2::SendRequest<RequestBody>),
}

/// A request that failed, and its body where it can be sent again.
pub(super) struct Failed {
    pub(super) error: TransportError,
    pub(super) source: Option<Source>,
}

/// How often servers asked for fewer pings.
#[derive(Clone, Default)]
pub(super) struct Calm(Arc<AtomicU32>);

impl Calm {
    fn interval(&self, interval: Duration) -> Duration {
        let doublings = self.0.load(Ordering::Relaxed).min(PING_DOUBLINGS_MAX);
        interval.saturating_mul(1 << doublings)
    }

    fn double(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Connection {
    /// Begins HTTP on a byte stream; the connection's task is spawned.
    pub(super) async fn begin(
        dialed: Dialed,
        options: &ClientOptions,
        calm: &Calm,
    ) -> Result<Self, TransportError> {
        if dialed.version == HttpVersion::Http2 && options.http2_engine == Http2Engine::Quill {
            let connection = h2::Connection::begin(dialed.io, settings(options, calm));
            return Ok(Self::Http2(Multiplexed {
                sender: Sender::Quill(connection),
                answered: Arc::default(),
            }));
        }
        let io = TokioIo::new(dialed.io);
        let failed = |error| {
            let error = hyper_error::exchange(error).unprocessed();
            error.within("the connection could not be begun")
        };
        if dialed.version == HttpVersion::Http1 {
            let (sender, connection) = http1::Builder::new()
                .max_header_size(options.headers_bytes_max as usize)
                .handshake(io)
                .await
                .map_err(failed)?;
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(error = %hyper_error::chain(&error), "a connection failed");
                }
            });
            return Ok(Self::Http1(sender));
        }
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(options.http2_stream_window_bytes)
            .initial_connection_window_size(options.http2_connection_window_bytes)
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
        let (sender, connection) = builder.handshake(io).await.map_err(failed)?;
        let calm = calm.clone();
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                if hyper_error::asks_for_calm(&error) {
                    calm.double();
                }
                tracing::debug!(error = %hyper_error::chain(&error), "a connection failed");
            }
        });
        Ok(Self::Http2(Multiplexed {
            sender: Sender::Hyper(sender),
            answered: Arc::default(),
        }))
    }
}

impl Multiplexed {
    pub(super) fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Quill(connection) => connection.is_closed(),
            Sender::Hyper(sender) => sender.is_closed(),
        }
    }

    /// Whether both are the same connection.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.answered, &other.answered)
    }

    pub(super) async fn send(
        &mut self,
        endpoint: &Endpoint,
        head: &RequestHead,
        source: Source,
    ) -> Result<(ResponseHead, RecvBody, Handle), Failed> {
        let sent = match &mut self.sender {
            Sender::Quill(connection) => {
                send_http2(connection, endpoint.scheme(), head, source).await
            }
            Sender::Hyper(sender) => send_hyper(sender, endpoint.scheme(), head, source).await,
        };
        match sent {
            Ok(answer) => {
                self.answered.store(true, Ordering::Relaxed);
                Ok(answer)
            }
            Err(mut failed) => {
                let is_broken = matches!(
                    failed.error.kind(),
                    TransportErrorKind::Protocol | TransportErrorKind::Closed
                );
                if is_broken && !self.answered.load(Ordering::Relaxed) {
                    failed.error = failed.error.within(
                        "the server has never answered on this connection; does it speak HTTP/2? (for HTTP/1.1 use the client's http1 option)",
                    );
                }
                Err(failed)
            }
        }
    }
}

/// What a connection on our own engine is to be like.
fn settings(options: &ClientOptions, calm: &Calm) -> h2::Settings {
    let mut config = quill_h2::Config::default();
    config.stream_window_bytes = options.http2_stream_window_bytes;
    config.connection_window_bytes = options.http2_connection_window_bytes;
    if options.http2_adaptive_window {
        config.stream_window_bytes = ADAPTIVE_WINDOW_BYTES;
        config.connection_window_bytes = ADAPTIVE_WINDOW_BYTES;
    }
    config.frame_bytes_max = options.http2_frame_bytes_max;
    config.headers_bytes_max = options.headers_bytes_max;
    let interval = options.http2_ping_interval;
    let told = calm.clone();
    h2::Settings {
        config,
        waiting_bytes_max: options.http2_send_buffer_bytes_max,
        keep_alive: h2::KeepAlive {
            interval: interval.map(|every| calm.interval(every)),
            timeout: options.http2_ping_timeout,
            while_idle: options.http2_ping_while_idle,
        },
        on_calm: Box::new(move || told.double()),
    }
}

/// Sends a request on a connection of our own engine.
async fn send_http2(
    connection: &h2::Connection,
    scheme: &'static str,
    head: &RequestHead,
    source: Source,
) -> Result<(ResponseHead, RecvBody, Handle), Failed> {
    if let Err(error) = fields::check_request(head) {
        return Err(Failed {
            error,
            source: None,
        });
    }
    let (body, handle) = source.send();
    let guard = CallOff(&handle);
    match connection.send(scheme, head.clone(), body).await {
        Ok((head, body)) => {
            handle.answered();
            std::mem::forget(guard);
            Ok((head, body, handle))
        }
        Err(error) => Err(failed(error, &handle).await),
    }
}

/// Sends a request on an HTTP/2 connection of hyper's.
async fn send_hyper(
    sender: &mut http2::SendRequest<RequestBody>,
    scheme: &str,
    head: &RequestHead,
    source: Source,
) -> Result<(ResponseHead, RecvBody, Handle), Failed> {
    let parts = match fields::request_to_http(head, Some(scheme)) {
        Ok(parts) => parts,
        Err(error) => {
            return Err(Failed {
                error,
                source: None,
            });
        }
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

/// Sends a request on an HTTP/1.1 connection that is ready.
pub(super) async fn send_http1(
    sender: &mut http1::SendRequest<RequestBody>,
    head: &RequestHead,
    source: Source,
) -> Result<(ResponseHead, RecvBody, Handle), Failed> {
    let parts = match fields::request_to_http(head, None) {
        Ok(parts) => parts,
        Err(error) => {
            return Err(Failed {
                error,
                source: None,
            });
        }
    };
    let (body, handle) = source.send();
    let guard = CallOff(&handle);
    let request = http::Request::from_parts(parts, body);
    match sender.try_send_request(request).await {
        Ok(response) => {
            let (head, body) = received(response, &handle, HttpVersion::Http1);
            std::mem::forget(guard);
            Ok((head, body, handle))
        }
        Err(refused) => Err(refused_by(refused, &handle).await),
    }
}

/// A request whose future is dropped takes its body along.
struct CallOff<'a>(&'a Handle);

impl Drop for CallOff<'_> {
    fn drop(&mut self) {
        self.0.call_off();
    }
}

fn received(
    response: http::Response<hyper::body::Incoming>,
    handle: &Handle,
    version: HttpVersion,
) -> (ResponseHead, RecvBody) {
    handle.answered();
    let (parts, body) = response.into_parts();
    (
        fields::response_from_http(&parts),
        RecvBody::hyper(body, version),
    )
}

async fn refused_by(
    mut refused: hyper::client::conn::TrySendError<http::Request<RequestBody>>,
    handle: &Handle,
) -> Failed {
    let unsent = refused.take_message().is_some();
    let mut error = hyper_error::exchange(refused.into_error());
    if unsent {
        error = error.unprocessed();
    }
    failed(error, handle).await
}

/// A request that failed, with its body if the server has surely not handled it.
async fn failed(error: TransportError, handle: &Handle) -> Failed {
    let source = if error.maybe_processed() {
        None
    } else {
        let returned = std::future::poll_fn(|cx| handle.poll_returned(cx));
        // The connection's tasks let go of the body as they learn of the end.
        tokio::time::timeout(Duration::from_secs(1), returned)
            .await
            .ok()
            .flatten()
    };
    Failed { error, source }
}
