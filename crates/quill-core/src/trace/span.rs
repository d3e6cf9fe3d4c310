//! One call, as a trace shows it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::context::TraceContext;
use crate::code::Code;
use crate::method::Method;

/// Which end of a call a span is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The server's.
    Server,
    /// The caller's.
    Client,
}

/// One call that has ended, as a trace shows it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Span {
    /// Its place in the trace.
    pub context: Arc<TraceContext>,
    /// Which end of the call it is of.
    pub side: Side,
    /// The method; `None` for one that the server does not have.
    pub method: Option<Arc<Method>>,
    /// The name of the protocol.
    pub protocol: &'static str,
    /// On a server, who called.
    pub peer: Option<SocketAddr>,
    /// On a client of one server, where it called: `host` or `host:port`.
    pub target: Option<Arc<str>>,
    /// When the call began.
    pub begun: SystemTime,
    /// How long it took.
    pub took: Duration,
    /// How it failed; `None` if it did not.
    pub failure: Option<Code>,
    /// What its error said, of a call that failed.
    pub message: String,
}

/// Longest text of an error that a span keeps, in bytes.
const MESSAGE_BYTES_MAX: usize = 1024;

impl Span {
    /// A call that begins now, of which the rest is to be filled in.
    #[must_use]
    pub fn begin(context: Arc<TraceContext>, side: Side) -> Self {
        Self {
            context,
            side,
            method: None,
            protocol: "",
            peer: None,
            target: None,
            begun: SystemTime::now(),
            took: Duration::ZERO,
            failure: None,
            message: String::new(),
        }
    }

    /// Notes how the call failed; a long text is cut.
    pub fn fail(&mut self, code: Code, message: &str) {
        let mut end = message.len().min(MESSAGE_BYTES_MAX);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        self.failure = Some(code);
        message
            .get(..end)
            .unwrap_or_default()
            .clone_into(&mut self.message);
    }
}
