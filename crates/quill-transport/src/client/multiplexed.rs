//! An HTTP/2 connection, shared by many exchanges.

use std::sync::Arc;

use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use quill_core::{HttpVersion, RequestHead, ResponseHead};
use tokio::sync::{Notify, oneshot, watch};

use super::connection::{CallOff, Calm, Failed, received, refused_by};
use super::endpoint::Endpoint;
use super::options::ClientOptions;
use super::request_body::{Handle, RequestBody, Source};
use super::tap::{Opening, Peer, Tap};
use crate::body::RecvBody;
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
    sender: http2::SendRequest<RequestBody>,
    peer: Arc<Peer>,
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
        let (sender, connection) = handshake.map_err(|error| unbegun(endpoint, Some(error)))?;
        let calm = calm.clone();
        let (tell, ended) = oneshot::channel();
        tokio::spawn(async move {
            let ended = connection.await.err();
            if let Some(error) = &ended {
                if hyper_error::asks_for_calm(error) {
                    calm.double();
                }
                tracing::debug!(error = %hyper_error::chain(error), "a connection failed");
            }
            // Only who begins the connection listens.
            let _ = tell.send(ended);
            room.notify_waiters();
        });
        opened(endpoint, opening, ended).await?;
        Ok(Self { sender, peer })
    }

    /// Whether a stream can begin here, if there is room.
    pub(super) fn is_usable(&self) -> bool {
        !self.sender.is_closed() && !self.peer.is_going_away()
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
        head: &RequestHead,
        source: Source,
    ) -> Result<(ResponseHead, RecvBody, Handle), Failed> {
        let parts = match fields::request_to_http(head, Some(endpoint.scheme())) {
            Ok(parts) => parts,
            Err(error) => return Err(Failed::for_good(error)),
        };
        let (body, handle) = source.send();
        let guard = CallOff(&handle);
        let request = http::Request::from_parts(parts, body);
        match self.sender.try_send_request(request).await {
            Ok(response) => {
                let (head, body) = received(response, &handle, HttpVersion::Http2);
                std::mem::forget(guard);
                Ok((head, body, handle))
            }
            Err(refused) => Err(refused_by(refused, &handle).await),
        }
    }
}

/// Waits for the server's settings.
async fn opened(
    endpoint: &Endpoint,
    mut opening: watch::Receiver<Opening>,
    ended: oneshot::Receiver<Option<hyper::Error>>,
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

fn unbegun(endpoint: &Endpoint, error: Option<hyper::Error>) -> TransportError {
    let why = match &error {
        Some(error) => hyper_error::chain(error),
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
