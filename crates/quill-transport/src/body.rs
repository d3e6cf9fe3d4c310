//! Bodies of requests and answers, in both directions.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use quill_core::Headers;

use crate::error::{TransportError, TransportErrorKind};

/// A piece of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Chunk {
    /// Some bytes.
    Data(Bytes),
    /// Trailer fields; the last piece of a body.
    Trailers(Headers),
}

/// A body: bytes, then perhaps trailers.
///
/// A body that is dropped before its end gives the exchange up: on a sender's
/// side the stream is reset, on a receiver's the peer is told to stop.
pub trait Body: Send {
    /// The next piece; `None` at the good end. For a sender an error resets the stream.
    fn poll_chunk(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>>;

    /// Whether the end is known to have come, without polling: a body that is
    /// at its end from the start needs no frame of its own.
    fn is_ended(&self) -> bool {
        false
    }

    /// The number of bytes still to come, where it is known.
    fn bytes_left(&self) -> Option<u64> {
        None
    }
}

/// A body of any type.
pub type BoxBody = Pin<Box<dyn Body>>;

impl Body for BoxBody {
    fn poll_chunk(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        self.get_mut().as_mut().poll_chunk(cx)
    }

    fn is_ended(&self) -> bool {
        self.as_ref().is_ended()
    }

    fn bytes_left(&self) -> Option<u64> {
        self.as_ref().bytes_left()
    }
}

/// No body at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Empty;

impl Body for Empty {
    fn poll_chunk(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        Poll::Ready(None)
    }

    fn is_ended(&self) -> bool {
        true
    }

    fn bytes_left(&self) -> Option<u64> {
        Some(0)
    }
}

/// A body that is there in one piece.
#[derive(Clone, Debug, Default)]
pub struct Full(Bytes);

impl Full {
    /// The body of these bytes.
    #[must_use]
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        Self(bytes.into())
    }
}

impl Body for Full {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        let bytes = std::mem::take(&mut self.0);
        Poll::Ready((!bytes.is_empty()).then_some(Ok(Chunk::Data(bytes))))
    }

    fn is_ended(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes_left(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}

/// A body that the peer sends.
pub struct RecvBody(Kind);

enum Kind {
    Hyper(hyper::body::Incoming),
    Other(BoxBody),
}

impl RecvBody {
    /// A body from elsewhere than our own connections: an adapter, a test.
    #[must_use]
    pub fn new(body: impl Body + 'static) -> Self {
        Self(Kind::Other(Box::pin(body)))
    }

    pub(crate) fn hyper(body: hyper::body::Incoming) -> Self {
        Self(Kind::Hyper(body))
    }
}

impl Body for RecvBody {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        match &mut self.0 {
            Kind::Hyper(body) => poll_hyper(body, cx),
            Kind::Other(body) => body.as_mut().poll_chunk(cx),
        }
    }

    fn is_ended(&self) -> bool {
        match &self.0 {
            Kind::Hyper(body) => http_body::Body::is_end_stream(body),
            Kind::Other(body) => body.is_ended(),
        }
    }

    fn bytes_left(&self) -> Option<u64> {
        match &self.0 {
            Kind::Hyper(body) => http_body::Body::size_hint(body).exact(),
            Kind::Other(body) => body.bytes_left(),
        }
    }
}

impl fmt::Debug for RecvBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvBody")
            .field("is_ended", &self.is_ended())
            .finish()
    }
}

fn poll_hyper(
    body: &mut hyper::body::Incoming,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Chunk, TransportError>>> {
    loop {
        let polled = http_body::Body::poll_frame(Pin::new(&mut *body), cx);
        let frame = match std::task::ready!(polled) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(from_hyper(error)))),
            Some(Ok(frame)) => frame,
        };
        let chunk = match frame.into_data() {
            Ok(data) => Chunk::Data(data),
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => Chunk::Trailers(crate::exchange::headers_from_http(&trailers)),
                // A kind of frame that RPC has no use for.
                Err(_) => continue,
            },
        };
        return Poll::Ready(Some(Ok(chunk)));
    }
}

/// An error of hyper's, in our words; the HTTP/2 error code is dug out of its sources.
pub(crate) fn from_hyper(error: hyper::Error) -> TransportError {
    let kind = if let Some(code) = reset_code(&error) {
        TransportErrorKind::Reset(code)
    } else if error.is_timeout() {
        TransportErrorKind::Timeout
    } else if error.is_canceled() {
        TransportErrorKind::Canceled
    } else if error.is_incomplete_message() || error.is_closed() || error.is_body_write_aborted() {
        TransportErrorKind::Closed
    } else if error.is_parse() || error.is_user() {
        TransportErrorKind::Protocol
    } else {
        TransportErrorKind::Closed
    };
    let message = match kind {
        TransportErrorKind::Reset(code) => format!("the peer reset the stream (code {code:#x})"),
        _ => format!("the connection failed: {error}"),
    };
    TransportError::new(kind, message).with_source(error)
}

fn reset_code(_error: &hyper::Error) -> Option<u32> {
    None
}
