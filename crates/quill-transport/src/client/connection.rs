//! What the connections of both versions of HTTP share, and those of HTTP/1.1.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use quill_core::{HttpVersion, ResponseHead};

use super::options::ClientOptions;
use super::request_body::{Handle, RequestBody, Source};
use crate::body::RecvBody;
use crate::error::TransportError;
use crate::io::Io;
use crate::{fields, hyper_error};

/// How often a ping interval may be doubled.
const PING_DOUBLINGS_MAX: u32 = 16;

/// A request that failed, and its body where it can be sent again.
pub(super) struct Failed {
    pub(super) error: TransportError,
    pub(super) source: Option<Source>,
}

impl Failed {
    /// Another attempt would fail in the same way.
    pub(super) fn for_good(error: TransportError) -> Self {
        Self {
            error,
            source: None,
        }
    }
}

/// How often servers asked for fewer pings.
#[derive(Clone, Default)]
pub(super) struct Calm(Arc<AtomicU32>);

impl Calm {
    /// The interval between pings that is left of this one.
    pub(super) fn interval(&self, interval: Duration) -> Duration {
        let doublings = self.0.load(Ordering::Relaxed).min(PING_DOUBLINGS_MAX);
        interval.saturating_mul(1 << doublings)
    }

    pub(super) fn double(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Begins HTTP/1.1 on a byte stream; the connection's task is spawned.
pub(super) async fn begin_http1(
    io: Io,
    options: &ClientOptions,
) -> Result<http1::SendRequest<RequestBody>, TransportError> {
    let (sender, connection) = http1::Builder::new()
        .max_header_size(options.headers_bytes_max as usize)
        .handshake(TokioIo::new(io))
        .await
        .map_err(|error| {
            let error = hyper_error::exchange(error).unprocessed();
            error.within("the connection could not be begun")
        })?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %hyper_error::chain(&error), "a connection failed");
        }
    });
    Ok(sender)
}

/// Sends a request on an HTTP/1.1 connection that is ready.
pub(super) async fn send_http1(
    sender: &mut http1::SendRequest<RequestBody>,
    source: Source,
) -> Result<(ResponseHead, RecvBody, Handle), Failed> {
    let parts = match fields::request_to_http(source.head(), None) {
        Ok(parts) => parts,
        Err(error) => return Err(Failed::for_good(error)),
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
pub(super) struct CallOff<'a>(pub(super) &'a Handle);

impl Drop for CallOff<'_> {
    fn drop(&mut self) {
        self.0.call_off();
    }
}

pub(super) fn received(
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

/// What became of a request that the connection did not answer.
pub(super) async fn refused_by(
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
pub(super) async fn failed(error: TransportError, handle: &Handle) -> Failed {
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
