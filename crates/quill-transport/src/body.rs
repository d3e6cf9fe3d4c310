//! Bodies of requests and answers, in both directions.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use quill_core::{Headers, HttpVersion};
use tokio::time::timeout;

use crate::error::{TransportError, TransportErrorKind};
use crate::h2::InboxBody;
use crate::{fields, hyper_error};

/// A piece of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Chunk {
    /// Some bytes.
    Data(Bytes),
    /// Trailer fields; the last piece of a body.
    Trailers(Headers),
}

impl Chunk {
    pub(crate) fn from_frame(frame: http_body::Frame<Bytes>) -> Self {
        match frame.into_data() {
            Ok(data) => Self::Data(data),
            Err(frame) => Self::Trailers(frame.into_trailers().map_or_else(
                // A kind of frame that does not exist yet.
                |_| Headers::new(),
                |map| fields::from_http(&map),
            )),
        }
    }

    pub(crate) fn into_frame(self) -> http_body::Frame<Bytes> {
        match self {
            Self::Data(data) => http_body::Frame::data(data),
            Self::Trailers(headers) => {
                http_body::Frame::trailers(fields::trailers_to_http(&headers))
            }
        }
    }
}

/// A body: bytes, then perhaps trailers.
///
/// A body that is dropped before its end gives the exchange up: on a sender's
/// side the stream is reset, on a receiver's the peer is told to stop.
pub trait Body: Send {
    /// The next piece, never empty bytes from a peer; `None` at the good end. For a sender an error resets the stream.
    fn poll_chunk(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>>;

    /// Whether the last poll, which gave a piece, also found that the next one is not
    /// there yet, and left its waker for that: then nobody has to ask again before.
    fn is_waiting(&self) -> bool {
        false
    }

    /// Whether the end is known to have come, without polling: a body that is
    /// at its end from the start needs no frame of its own.
    fn is_ended(&self) -> bool {
        false
    }

    /// Takes all that is left, where all of it is there in one piece of at most
    /// `bytes_max` bytes: it then leaves at once.
    fn take_whole(&mut self, bytes_max: usize) -> Option<Whole> {
        let _ = bytes_max;
        None
    }

    /// The number of bytes still to come, where it is known and no trailers
    /// follow them: it becomes the `content-length`, and HTTP/1.1 has no room
    /// for trailers behind that.
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

    fn is_waiting(&self) -> bool {
        self.as_ref().is_waiting()
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

/// What is still read of a request's body that its handler did not read.
pub(crate) const LINGER_BYTES_MAX: usize = 64 * 1024;
pub(crate) const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// A body that the peer sends.
pub struct RecvBody {
    kind: Kind,
    // Dropped after the body, so that what it does sees the body gone.
    tie: Option<Box<dyn Tie>>,
    lingers: bool,
}

enum Kind {
    Http1(hyper::body::Incoming),
    Http2(hyper::body::Incoming),
    /// Of the engine, all there before anybody asked for it.
    Whole(Came),
    /// Of the engine, still coming in.
    Inbox(InboxBody),
    Other(BoxBody),
}

/// A body in one piece, and the trailers behind it.
#[derive(Debug)]
pub struct Whole {
    /// Its bytes.
    pub data: Bytes,
    /// What follows them.
    pub trailers: Option<Headers>,
}

/// A received body, and the trailers behind it.
#[derive(Debug, Default)]
pub(crate) struct Came {
    pub(crate) data: Bytes,
    pub(crate) more: VecDeque<Bytes>,
    pub(crate) trailers: Option<Headers>,
}

impl Came {
    fn next(&mut self) -> Option<Chunk> {
        let data = std::mem::take(&mut self.data);
        if !data.is_empty() {
            return Some(Chunk::Data(data));
        }
        let more = self.more.pop_front().map(Chunk::Data);
        more.or_else(|| self.trailers.take().map(Chunk::Trailers))
    }

    fn is_read(&self) -> bool {
        self.data.is_empty() && self.more.is_empty() && self.trailers.is_none()
    }

    fn bytes_left(&self) -> Option<u64> {
        let more: usize = self.more.iter().map(Bytes::len).sum();
        let bytes = self.data.len() + more;
        self.trailers.is_none().then_some(bytes as u64)
    }
}

/// What a body holds on to until it is dropped: the client's connection and
/// the request's own body.
pub(crate) trait Tie: Send {
    /// The body came to its good end.
    fn ended(&mut self);

    /// A request's body was dropped before its end, on HTTP/1.1; this is it.
    fn left(&mut self, body: hyper::body::Incoming) {
        drop(body);
    }
}

impl RecvBody {
    /// A body from elsewhere than our own connections: an adapter, a test.
    #[must_use]
    pub fn new(body: impl Body + 'static) -> Self {
        Self::of(Kind::Other(Box::pin(body)))
    }

    pub(crate) fn hyper(body: hyper::body::Incoming, version: HttpVersion) -> Self {
        Self::of(match version {
            HttpVersion::Http1 => Kind::Http1(body),
            _ => Kind::Http2(body),
        })
    }

    pub(crate) fn whole(body: Came) -> Self {
        Self::of(Kind::Whole(body))
    }

    pub(crate) fn inbox(body: InboxBody) -> Self {
        Self::of(Kind::Inbox(body))
    }

    fn of(kind: Kind) -> Self {
        Self {
            kind,
            tie: None,
            lingers: false,
        }
    }

    /// All of the body, if that is there already in one piece, without trailers.
    #[must_use]
    pub fn as_whole(&self) -> Option<&[u8]> {
        match &self.kind {
            Kind::Whole(Came {
                data,
                more,
                trailers,
            }) => (more.is_empty() && trailers.is_none()).then_some(data),
            _ => None,
        }
    }

    /// Still reads a little when it is dropped before its end: some clients
    /// lose the answer when the body that they are sending is stopped by a reset.
    pub(crate) fn lingering(mut self) -> Self {
        self.lingers = true;
        self
    }

    /// Keeps `tie` until the body is dropped, and tells it of a good end.
    pub(crate) fn tied(mut self, mut tie: Box<dyn Tie>) -> Self {
        if self.is_ended() {
            tie.ended();
        }
        self.tie = Some(tie);
        self
    }
}

impl Drop for RecvBody {
    fn drop(&mut self) {
        if !self.lingers || self.is_ended() {
            return;
        }
        let nothing = Kind::Other(Box::pin(Empty));
        match std::mem::replace(&mut self.kind, nothing) {
            Kind::Http1(body) => {
                if let Some(tie) = &mut self.tie {
                    tie.left(body);
                }
            }
            Kind::Http2(body) => {
                if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                    runtime.spawn(timeout(LINGER_TIMEOUT, linger(body)));
                }
            }
            Kind::Whole(_) | Kind::Inbox(_) | Kind::Other(_) => {}
        }
    }
}

/// Reads a body that nobody wants, to its end or the bound.
async fn linger(mut body: hyper::body::Incoming) {
    let mut left = LINGER_BYTES_MAX;
    while let Some(Ok(Chunk::Data(data))) = poll_fn(|cx| poll_http2(&mut body, cx)).await {
        match left.checked_sub(data.len()) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}

impl Body for RecvBody {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        let polled = match &mut self.kind {
            Kind::Http1(body) => poll_hyper(body, cx),
            Kind::Http2(body) => poll_http2(body, cx),
            Kind::Whole(whole) => Poll::Ready(whole.next().map(Ok)),
            Kind::Inbox(body) => Pin::new(body).poll_chunk(cx),
            Kind::Other(body) => body.as_mut().poll_chunk(cx),
        };
        if self.tie.is_some() {
            let ended = match &polled {
                Poll::Ready(None | Some(Ok(Chunk::Trailers(_)))) => true,
                Poll::Ready(Some(Ok(Chunk::Data(_)))) => self.is_ended(),
                _ => false,
            };
            if ended && let Some(tie) = &mut self.tie {
                tie.ended();
            }
        }
        polled
    }

    fn take_whole(&mut self, bytes_max: usize) -> Option<Whole> {
        let fits = |bytes: &[u8]| bytes.len() <= bytes_max;
        match &mut self.kind {
            // A tie would have to be told.
            _ if self.tie.is_some() => None,
            Kind::Whole(came) if came.more.is_empty() && fits(&came.data) => Some(Whole {
                data: std::mem::take(&mut came.data),
                trailers: came.trailers.take(),
            }),
            _ => None,
        }
    }

    fn is_ended(&self) -> bool {
        match &self.kind {
            Kind::Http1(body) | Kind::Http2(body) => http_body::Body::is_end_stream(body),
            Kind::Whole(whole) => whole.is_read(),
            Kind::Inbox(body) => body.is_ended(),
            Kind::Other(body) => body.is_ended(),
        }
    }

    fn bytes_left(&self) -> Option<u64> {
        match &self.kind {
            Kind::Http1(body) | Kind::Http2(body) => http_body::Body::size_hint(body).exact(),
            Kind::Whole(whole) => whole.bytes_left(),
            Kind::Inbox(body) => body.bytes_left(),
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

/// Hyper takes a reset with NO_ERROR for the end of a body, wherever it comes;
/// before the end of the stream it is a truncation.
fn poll_http2(
    body: &mut hyper::body::Incoming,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Chunk, TransportError>>> {
    let polled = poll_hyper(body, cx);
    if matches!(polled, Poll::Ready(None)) && !http_body::Body::is_end_stream(body) {
        return Poll::Ready(Some(Err(TransportError::new(
            TransportErrorKind::Reset(0),
            "the peer reset the stream before the end of its body (code 0x0)",
        ))));
    }
    polled
}

fn poll_hyper(
    body: &mut hyper::body::Incoming,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Chunk, TransportError>>> {
    loop {
        let polled = http_body::Body::poll_frame(Pin::new(&mut *body), cx);
        let chunk = match std::task::ready!(polled) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(hyper_error::body(error)))),
            Some(Ok(frame)) => Chunk::from_frame(frame),
        };
        // An empty DATA frame carries the end of the stream and nothing else.
        if chunk != Chunk::Data(Bytes::new()) {
            return Poll::Ready(Some(Ok(chunk)));
        }
    }
}
