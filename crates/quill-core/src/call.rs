//! A call's request and answer, as handlers and callers see them.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::cancellation::Cancellation;
use crate::codec::{DecodeLimits, Format, Outgoing};
use crate::deadline::Deadline;
use crate::draining::Draining;
use crate::error::Error;
use crate::extensions::Extensions;
use crate::head::HttpVersion;
use crate::metadata::{Metadata, MetadataError};
use crate::method::Method;

/// One call's request: the message, or the stream of them, and what came with it.
#[derive(Debug)]
pub struct Request<T> {
    message: T,
    parts: RequestParts,
}

/// All of a request but its message.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RequestParts {
    /// Names and values beside the message.
    pub metadata: Metadata,
    /// When the call must have ended.
    pub deadline: Option<Deadline>,
    /// Which method was called; set by the server.
    pub method: Option<Arc<Method>>,
    /// Which of the server's routes the method is; set by the server, so that
    /// the path is looked up once.
    pub route: usize,
    /// Which attempt of the call this is: how many were made before it. Set by
    /// what retries on the caller's side, and by the server where the protocol
    /// carries it.
    pub previous_attempts: u32,
    /// The name of the protocol; set by the server and by the client, empty before.
    pub protocol: &'static str,
    /// Who called; set by the server.
    pub peer: Option<Peer>,
    /// How the messages are written.
    pub encoding: MessageEncoding,
    /// Fires when the call is over; set by the server.
    pub cancellation: Option<Cancellation>,
    /// How far the end of the server has come; set by the server.
    pub draining: Option<Draining>,
    /// Values that middleware set.
    pub extensions: Extensions,
}

/// How the messages of a call are written, and what decoding one may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageEncoding {
    /// Binary or JSON.
    pub format: Format,
    /// Bounds on decoding a message.
    pub limits: DecodeLimits,
}

impl Default for MessageEncoding {
    fn default() -> Self {
        Self {
            format: Format::Proto,
            limits: DecodeLimits::default(),
        }
    }
}

impl<T> Request<T> {
    /// A request with this message, without metadata or deadline.
    pub fn new(message: T) -> Self {
        Self {
            message,
            parts: RequestParts::default(),
        }
    }

    /// A request of these parts.
    pub fn from_parts(message: T, parts: RequestParts) -> Self {
        Self { message, parts }
    }

    /// The message and the other parts.
    pub fn into_parts(self) -> (T, RequestParts) {
        (self.message, self.parts)
    }

    /// The message alone.
    pub fn into_inner(self) -> T {
        self.message
    }

    /// The message.
    pub fn message(&self) -> &T {
        &self.message
    }

    /// The message, to be changed.
    pub fn message_mut(&mut self) -> &mut T {
        &mut self.message
    }

    /// The same parts with another message.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Request<U> {
        Request {
            message: f(self.message),
            parts: self.parts,
        }
    }

    /// Names and values beside the message.
    pub fn metadata(&self) -> &Metadata {
        &self.parts.metadata
    }

    /// The metadata, to be changed.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.parts.metadata
    }

    /// When the call must have ended.
    pub fn deadline(&self) -> Option<Deadline> {
        self.parts.deadline
    }

    /// The time left until the deadline; `None` without one.
    pub fn remaining(&self) -> Option<Duration> {
        let deadline = self.parts.deadline?;
        Some(deadline.remaining(Instant::now()))
    }

    /// Which method was called; `None` on the caller's side.
    pub fn method(&self) -> Option<&Method> {
        self.parts.method.as_deref()
    }

    /// Who called; `None` on the caller's side.
    pub fn peer(&self) -> Option<&Peer> {
        self.parts.peer.as_ref()
    }

    /// Fires when the call is over, for work that the handler spawns.
    pub fn cancellation(&mut self) -> Cancellation {
        self.parts
            .cancellation
            .get_or_insert_with(Cancellation::new)
            .clone()
    }

    /// How far the end of the server has come. A stream that would go on for ever ends
    /// once the drain has [begun](Draining::begun), and lets it: sooner, its caller would
    /// come back to the same server.
    pub fn draining(&mut self) -> Draining {
        self.parts
            .draining
            .get_or_insert_with(Draining::new)
            .clone()
    }

    /// Values that middleware set.
    pub fn extensions(&self) -> &Extensions {
        &self.parts.extensions
    }

    /// Values that middleware set, to be changed.
    pub fn extensions_mut(&mut self) -> &mut Extensions {
        &mut self.parts.extensions
    }

    /// All parts but the message.
    pub fn parts(&self) -> &RequestParts {
        &self.parts
    }

    /// All parts but the message, to be changed.
    pub fn parts_mut(&mut self) -> &mut RequestParts {
        &mut self.parts
    }

    /// Gives the call this long from now; a shorter deadline that it has already stays.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        self.with_deadline(Deadline::within(timeout))
    }

    /// Gives the call this deadline, unless it has an earlier one.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Deadline) -> Self {
        self.parts.deadline = Deadline::earliest(self.parts.deadline, Some(deadline));
        self
    }

    /// Adds a text value to the metadata.
    ///
    /// # Errors
    /// As [`Metadata::append`].
    pub fn with_metadata(mut self, name: &str, value: &str) -> Result<Self, MetadataError> {
        self.parts.metadata.append(name, value)?;
        Ok(self)
    }
}

impl<T> From<T> for Request<T> {
    fn from(message: T) -> Self {
        Request::new(message)
    }
}

/// One call's answer: the message, or the stream of them, with leading and
/// trailing metadata.
#[derive(Debug)]
pub struct Response<T> {
    message: T,
    metadata: Metadata,
    trailers: Metadata,
    is_uncompressed: bool,
}

impl<T> Response<T> {
    /// An answer with this message, without metadata.
    pub fn new(message: T) -> Self {
        Self::from_parts(message, Metadata::new(), Metadata::new())
    }

    /// An answer of a message, leading and trailing metadata.
    pub fn from_parts(message: T, metadata: Metadata, trailers: Metadata) -> Self {
        Self {
            message,
            metadata,
            trailers,
            is_uncompressed: false,
        }
    }

    /// Has none of its messages compressed, whatever the caller accepts: for an answer
    /// that holds a secret beside what the caller chose, whose length would tell of it
    /// once compressed (BREACH). A layer that makes another answer of its parts must say
    /// so again; one that maps it need not.
    #[must_use]
    pub fn without_compression(mut self) -> Self {
        self.is_uncompressed = true;
        self
    }

    /// Whether [`without_compression`](Self::without_compression) was said.
    pub fn is_uncompressed(&self) -> bool {
        self.is_uncompressed
    }

    /// The message, the leading and the trailing metadata.
    pub fn into_parts(self) -> (T, Metadata, Metadata) {
        (self.message, self.metadata, self.trailers)
    }

    /// The message alone.
    pub fn into_inner(self) -> T {
        self.message
    }

    /// The message.
    pub fn message(&self) -> &T {
        &self.message
    }

    /// The message, to be changed.
    pub fn message_mut(&mut self) -> &mut T {
        &mut self.message
    }

    /// The same metadata with another message.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Response<U> {
        let (message, rest) = self.split();
        Response {
            message: f(message),
            metadata: rest.metadata,
            trailers: rest.trailers,
            is_uncompressed: rest.is_uncompressed,
        }
    }

    /// The message, and all else.
    pub(crate) fn split(self) -> (T, Response<()>) {
        let rest = Response {
            message: (),
            metadata: self.metadata,
            trailers: self.trailers,
            is_uncompressed: self.is_uncompressed,
        };
        (self.message, rest)
    }

    /// Metadata that leaves before the first message.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The leading metadata, to be changed.
    pub fn metadata_mut(&mut self) -> &mut Metadata {
        &mut self.metadata
    }

    /// Metadata that leaves after the last message. A caller reads a stream's
    /// from the stream, once it has ended.
    pub fn trailers(&self) -> &Metadata {
        &self.trailers
    }

    /// The trailing metadata, to be changed.
    pub fn trailers_mut(&mut self) -> &mut Metadata {
        &mut self.trailers
    }

    /// Adds a text value to the leading metadata.
    ///
    /// # Errors
    /// As [`Metadata::append`].
    pub fn with_metadata(mut self, name: &str, value: &str) -> Result<Self, MetadataError> {
        self.metadata.append(name, value)?;
        Ok(self)
    }

    /// Adds a text value to the trailing metadata.
    ///
    /// # Errors
    /// As [`Metadata::append`].
    pub fn with_trailer(mut self, name: &str, value: &str) -> Result<Self, MetadataError> {
        self.trailers.append(name, value)?;
        Ok(self)
    }
}

impl<T> From<T> for Response<T> {
    fn from(message: T) -> Self {
        Response::new(message)
    }
}

/// Who is at the other end of a connection. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Peer(Arc<PeerInfo>);

#[derive(Debug)]
struct PeerInfo {
    address: Option<SocketAddr>,
    version: HttpVersion,
    secure: bool,
    certificates: Vec<Bytes>,
}

impl Peer {
    /// A peer on an unencrypted connection; no address for Unix sockets.
    #[must_use]
    pub fn new(address: Option<SocketAddr>, version: HttpVersion) -> Self {
        Self(Arc::new(PeerInfo {
            address,
            version,
            secure: false,
            certificates: Vec::new(),
        }))
    }

    /// A peer on a TLS connection, with the certificates it proved to hold
    /// (DER, its own first); none unless it was asked for them.
    #[must_use]
    pub fn secure(
        address: Option<SocketAddr>,
        version: HttpVersion,
        certificates: Vec<Bytes>,
    ) -> Self {
        Self(Arc::new(PeerInfo {
            address,
            version,
            secure: true,
            certificates,
        }))
    }

    /// Its address; `None` for a Unix socket.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.address
    }

    /// The HTTP version of the connection.
    #[must_use]
    pub fn version(&self) -> HttpVersion {
        self.0.version
    }

    /// Whether the connection is encrypted (TLS).
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.0.secure
    }

    /// The certificates it proved to hold, in DER, its own first.
    #[must_use]
    pub fn certificates(&self) -> &[Bytes] {
        &self.0.certificates
    }
}

/// The encoded messages of a call, as they come in.
///
/// Polling takes from the transport, so what is not polled holds the sender back.
pub trait Inbound: Send {
    /// The next encoded message; `None` once the peer has ended the stream well.
    fn poll_message(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Error>>>;

    /// Lets messages share the memory of what they came in, however small a part of
    /// it they are: for who keeps nothing of them. Each has its own otherwise.
    fn share_memory(self: Pin<&mut Self>) {}

    /// The trailing metadata, once the stream has ended; taken, not copied.
    fn take_trailers(self: Pin<&mut Self>) -> Metadata {
        Metadata::new()
    }
}

/// Where a stream's outgoing messages are written: the wire's encoder.
pub trait MessageSink {
    /// Encodes one message; whether there is room for another.
    ///
    /// # Errors
    /// A message that can't be encoded or is over the size limit; the call ends with it.
    fn message(&mut self, message: &dyn Outgoing) -> Result<bool, Error>;
}

/// The messages of a call, as they go out.
///
/// A message is encoded where it is made and never boxed; nothing is polled
/// that the receiver has no room for.
pub trait Outbound: Send {
    /// Writes the messages that are there into `sink`, which has room for one, until
    /// it has none. `Ready(Some(Ok(())))` when there may be more, `Pending` when there
    /// are none for now, also behind some that were written, `Ready(None)` at the
    /// stream's good end.
    fn poll_messages(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        sink: &mut dyn MessageSink,
    ) -> Poll<Option<Result<(), Error>>>;
}

/// The messages of a request, on the server.
pub enum Incoming {
    /// The one message, encoded.
    One(Bytes),
    /// The stream of messages.
    Many(Pin<Box<dyn Inbound>>),
}

/// The messages of an answer, on the server.
pub enum Reply {
    /// The one message.
    One(Box<dyn Outgoing + Send>),
    /// The stream of messages.
    Many(Pin<Box<dyn Outbound>>),
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Incoming::One(bytes) => f.debug_tuple("One").field(&bytes.len()).finish(),
            Incoming::Many(_) => f.write_str("Many"),
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reply::One(_) => "One",
            Reply::Many(_) => "Many",
        })
    }
}
