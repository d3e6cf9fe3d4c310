//! What a connection tells the application.

use std::fmt;

use bytes::Bytes;
use quill_core::{Headers, ResponseHead, SharedHead};

use crate::error_code::ErrorCode;
use crate::streams::Key;

/// Something that happened on a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A server: a stream was opened with this request.
    Request {
        /// The new stream.
        key: Key,
        /// Its head; shared with what recalls it for the next of the same.
        head: SharedHead,
        /// The length that the head gave its body.
        content_length: Option<u64>,
        /// Nothing follows.
        end: bool,
    },
    /// A client: the answer to a request began.
    Response {
        /// Its stream.
        key: Key,
        /// Its head; never that of an interim answer.
        head: ResponseHead,
        /// The length that the head gave its body.
        content_length: Option<u64>,
        /// Nothing follows.
        end: bool,
    },
    /// A part of a body.
    Data {
        /// Its stream.
        key: Key,
        /// Its bytes, to be [released](crate::Connection::release) once they were
        /// read; empty only with an end.
        data: Bytes,
        /// Nothing follows.
        end: bool,
    },
    /// The end of a body, with these trailers.
    Trailers {
        /// Their stream.
        key: Key,
        /// The fields.
        trailers: Headers,
    },
    /// A stream was reset: it is gone.
    Reset {
        /// The stream, of which nothing more will come.
        key: Key,
        /// Why.
        code: ErrorCode,
        /// What the peer did wrong, if this side reset the stream for it.
        fault: Option<&'static str>,
    },
    /// There is room again to send: on this stream, or on all of them.
    Writable(Option<Key>),
    /// The peer answered a ping of this side's.
    Pong([u8; 8]),
    /// The peer's settings came: the first time, the connection is made.
    Settings,
    /// The peer will handle no streams of this side's above this one (RFC 9113,
    /// section 6.8).
    GoAway {
        /// The last stream that it may have handled.
        last: u32,
        /// Why.
        code: ErrorCode,
    },
    /// The connection is over since the peer broke its rules or limits. What waits
    /// in the output should still be written.
    Failed(ConnectionError),
}

/// A rule or limit of the whole connection that the peer broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionError {
    /// The code that the peer is told.
    pub code: ErrorCode,
    /// What it did.
    pub message: &'static str,
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ConnectionError {}

/// What became of bytes that were to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// All are queued.
    All,
    /// The stream's window is used up; see [`Event::Writable`].
    StreamBlocked,
    /// The connection's window is used up; see [`Event::Writable`].
    ConnectionBlocked,
    /// So many were queued as were allowed.
    Full,
}
