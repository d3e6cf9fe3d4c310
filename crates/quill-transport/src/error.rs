//! What can go wrong below the protocols.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

/// What failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportErrorKind {
    /// The URL can't be used.
    Url,
    /// The host's name could not be resolved.
    Resolve,
    /// No connection could be made.
    Connect,
    /// The TLS handshake failed.
    Tls,
    /// The peer does not speak the version of HTTP that it was called in, or
    /// closed as soon as it was.
    HttpVersion,
    /// A handshake, a head or a body took too long.
    Timeout,
    /// The peer closed the connection, or it broke.
    Closed,
    /// The peer reset the stream, with this HTTP/2 or HTTP/3 error code.
    Reset(u32),
    /// The peer broke the rules of HTTP, or one of our limits.
    Protocol,
    /// This side gave the exchange up.
    Canceled,
}

/// An exchange that failed below the protocols. Cheap to clone: one failed
/// connection fails every exchange that waited for it.
#[derive(Clone)]
pub struct TransportError(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: TransportErrorKind,
    message: String,
    maybe_processed: bool,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl TransportError {
    /// An error of this kind, in a sentence; the peer may have seen the request.
    #[must_use]
    pub fn new(kind: TransportErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            maybe_processed: true,
            source: None,
        }))
    }

    /// Notes that the peer has surely not begun to handle the request, so that
    /// it may be sent again.
    #[must_use]
    pub fn unprocessed(mut self) -> Self {
        self.0.maybe_processed = false;
        self
    }

    /// Keeps what caused this.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// What failed.
    #[must_use]
    pub fn kind(&self) -> TransportErrorKind {
        self.0.kind
    }

    /// Puts these words before the message.
    #[must_use]
    pub(crate) fn within(mut self, context: &str) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// The failure of a transport that `error` stems from, however deep in its
    /// sources; `None` when it stems from something else, such as the server's
    /// own answer.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }

    /// Whether the peer may have begun to handle the request.
    #[must_use]
    pub fn maybe_processed(&self) -> bool {
        self.0.maybe_processed
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransportError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("maybe_processed", &self.0.maybe_processed)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for TransportError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.source {
            Some(source) => Some(source.as_ref()),
            None => None,
        }
    }
}
