//! One half of a call as a body to send.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use quill_core::trace::TraceId;
use quill_core::{
    CallContext, Cancellation, Code, Error, MessageSink, Metadata, Outbound, Outgoing,
};
use quill_transport::{Body, Chunk, TransportError, TransportErrorKind};
use quill_wire::{Encode, Encoder, Out, Side};
use tokio::time::{Instant, Sleep};

use crate::credits::Credits;
use crate::given_up::GivenUp;
use crate::whole::take_chunk;

/// Messages that are ready are gathered up to this many bytes before they
/// leave, so that a fast stream of small ones costs few writes.
const GATHER_BYTES_MAX: usize = 16 * 1024;

/// What resolves to the messages of an answer that has begun already.
pub type StartFuture =
    Pin<Box<dyn Future<Output = Result<(Pin<Box<dyn Outbound>>, Metadata), Error>> + Send>>;

/// Where the messages come from.
pub enum Source {
    /// From a handler that has not answered yet, though the head has left.
    Starting(StartFuture),
    /// From here.
    Messages(Pin<Box<dyn Outbound>>),
}

/// Fires the call's token when the call is over, however it ends.
#[derive(Debug)]
pub struct CallGuard(pub Cancellation);

impl Drop for CallGuard {
    fn drop(&mut self) {
        // Whom nobody has, nobody waits for.
        if self.0.is_shared() {
            self.0.cancel();
        }
    }
}

/// The sending half of a call: pulls messages, writes them with the encoder,
/// ends as the protocol wants it.
///
/// Nothing is pulled while the transport has no room or the peer gave no credit.
pub struct SendBody {
    encoder: Encoder,
    out: Out,
    source: Option<Source>,
    /// The source has nothing more for now, and its waker is set.
    is_waiting: bool,
    trailers: Metadata,
    side: Side,
    credits: Option<Credits>,
    credits_closed: bool,
    deadline: Option<Pin<Box<Sleep>>>,
    context: CallContext,
    request_id: Option<TraceId>,
    guard: Option<CallGuard>,
    given_up: Option<GivenUp>,
}

impl SendBody {
    /// Sends what `source` makes. `out` holds what the encoder wrote already.
    #[must_use]
    pub fn new(encoder: Encoder, out: Out, source: Source, side: Side) -> Self {
        Self {
            encoder,
            out,
            source: Some(source),
            is_waiting: false,
            trailers: Metadata::new(),
            side,
            credits: None,
            credits_closed: false,
            deadline: None,
            context: CallContext::default(),
            request_id: None,
            guard: None,
            given_up: None,
        }
    }

    /// Adds trailing metadata.
    #[must_use]
    pub fn with_trailers(mut self, trailers: Metadata) -> Self {
        self.trailers = trailers;
        self
    }

    /// Holds back where the peer gave no credit.
    #[must_use]
    pub fn with_credits(mut self, credits: Credits) -> Self {
        self.credits = Some(credits);
        self
    }

    /// Ends the call with `deadline_exceeded` when this fires.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Option<Pin<Box<Sleep>>>) -> Self {
        self.deadline = deadline;
        self
    }

    /// Pulls messages within this context, and fires the guard at the end.
    #[must_use]
    pub fn with_context(mut self, context: CallContext, guard: Option<CallGuard>) -> Self {
        self.context = context;
        self.guard = guard;
        self
    }

    /// What the call is called in its error, should it have one.
    #[must_use]
    pub fn with_request_id(mut self, request_id: Option<TraceId>) -> Self {
        self.request_id = request_id;
        self
    }

    /// Tells `given_up` why this half failed, should it.
    #[must_use]
    pub fn with_given_up(mut self, given_up: GivenUp) -> Self {
        self.given_up = Some(given_up);
        self
    }

    /// Pulls until there is enough to send, or nothing more for now.
    fn fill(&mut self, cx: &mut Context<'_>) -> Result<(), TransportError> {
        self.is_waiting = false;
        while self.source.is_some() && self.out.body_bytes() < GATHER_BYTES_MAX {
            if self.poll_deadline(cx) {
                self.finish(Err(deadline_exceeded()))?;
                break;
            }
            self.settle_dues(cx)?;
            if self.source.is_none() {
                break;
            }
            let blocked = !self.encoder.may_send();
            if blocked && self.credits_closed {
                self.finish(Err(Error::canceled(
                    "the peer closed its half without the credit that is needed to go on",
                )))?;
                break;
            }
            match self.poll_source(cx, blocked) {
                Poll::Pending => {
                    self.is_waiting = true;
                    break;
                }
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(Some(Err(error))) => self.finish(Err(error))?,
                Poll::Ready(None) => self.finish(Ok(()))?,
            }
        }
        Ok(())
    }

    /// Polls the maker of messages; a panic in it is `internal`, as everywhere.
    fn poll_source(
        &mut self,
        cx: &mut Context<'_>,
        blocked: bool,
    ) -> Poll<Option<Result<(), Error>>> {
        let Self {
            encoder,
            out,
            source,
            trailers,
            context,
            ..
        } = self;
        let Some(source) = source else {
            return Poll::Ready(None);
        };
        let mut sink = Sink { encoder, out };
        let polled = std::panic::catch_unwind(AssertUnwindSafe(|| {
            context.enter(|| source.poll(cx, blocked, trailers, &mut sink))
        }));
        polled.unwrap_or_else(|_| Poll::Ready(Some(Err(panicked()))))
    }

    /// Takes in credit and gives it out, until there is none of either.
    fn settle_dues(&mut self, cx: &mut Context<'_>) -> Result<(), TransportError> {
        let Some(credits) = &self.credits else {
            return Ok(());
        };
        while !self.credits_closed {
            let dues = match credits.poll_dues(cx) {
                Poll::Ready(Ok(dues)) => dues,
                Poll::Ready(Err(error)) => {
                    self.credits_closed = true;
                    return self.finish(Err(error));
                }
                Poll::Pending => break,
            };
            if dues.canceled {
                self.source = None;
                return Err(TransportError::new(
                    TransportErrorKind::Canceled,
                    "the peer gave the call up",
                ));
            }
            if dues.grant > 0 {
                self.encoder.grant(dues.grant, &mut self.out);
            }
            if dues.received > 0 {
                self.encoder.credited(dues.received);
            }
            self.credits_closed = dues.closed;
        }
        Ok(())
    }

    /// Whether bytes may follow our last message: a client goes on granting
    /// credit until the server has sent its last one.
    fn still_grants(&self) -> bool {
        let Some(credits) = &self.credits else {
            return false;
        };
        self.side == Side::Client && !self.credits_closed && !credits.messages_ended()
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.deadline {
            Some(deadline) => deadline.as_mut().poll(cx).is_ready(),
            None => false,
        }
    }

    /// Ends this half: a server says how, a client that fails resets.
    fn finish(&mut self, result: Result<(), Error>) -> Result<(), TransportError> {
        self.source = None;
        self.guard = None;
        match result {
            Err(error) if self.side == Side::Client => {
                let message = format!("the request was given up: {error}");
                if let Some(given_up) = &self.given_up {
                    given_up.tell(error);
                }
                return Err(TransportError::new(TransportErrorKind::Canceled, message));
            }
            Err(error) => {
                let error = named(error, self.request_id);
                self.encoder.end(Err(&error), &self.trailers, &mut self.out);
            }
            Ok(()) => self.encoder.end(Ok(()), &self.trailers, &mut self.out),
        }
        Ok(())
    }
}

impl Body for SendBody {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        let this = &mut *self;
        if let Err(error) = this.fill(cx) {
            return Poll::Ready(Some(Err(error)));
        }
        if let Some(chunk) = take_chunk(&mut this.out) {
            return Poll::Ready(Some(Ok(chunk)));
        }
        if this.source.is_some() {
            return Poll::Pending;
        }
        if this.still_grants() {
            if let Err(error) = this.settle_dues(cx) {
                return Poll::Ready(Some(Err(error)));
            }
            if let Some(chunk) = take_chunk(&mut this.out) {
                return Poll::Ready(Some(Ok(chunk)));
            }
            if this.still_grants() {
                return Poll::Pending;
            }
        }
        Poll::Ready(None)
    }

    fn is_waiting(&self) -> bool {
        self.is_waiting && self.out.body_bytes() == 0
    }

    fn is_ended(&self) -> bool {
        self.source.is_none()
            && self.out.body_bytes() == 0
            && !self.out.has_trailers()
            && !self.still_grants()
    }

    fn bytes_left(&self) -> Option<u64> {
        let whole = self.source.is_none() && !self.out.has_trailers() && !self.still_grants();
        whole.then(|| self.out.body_bytes() as u64)
    }
}

impl fmt::Debug for SendBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendBody")
            .field("encoder", &self.encoder)
            .field("side", &self.side)
            .finish_non_exhaustive()
    }
}

impl Drop for SendBody {
    fn drop(&mut self) {
        if let Some(credits) = &self.credits {
            credits.sender_done();
        }
    }
}

impl Source {
    /// Writes messages into `sink`. A handler that has not answered yet runs on
    /// without credit; a maker of messages waits.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        blocked: bool,
        trailers: &mut Metadata,
        sink: &mut Sink<'_>,
    ) -> Poll<Option<Result<(), Error>>> {
        if let Source::Starting(start) = self {
            match std::task::ready!(start.as_mut().poll(cx)) {
                Ok((messages, more)) => {
                    trailers.extend(&more);
                    *self = Source::Messages(messages);
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        match self {
            Source::Messages(messages) if !blocked => messages.as_mut().poll_messages(cx, sink),
            _ => Poll::Pending,
        }
    }
}

/// The encoder as the place where messages are written.
struct Sink<'a> {
    encoder: &'a mut Encoder,
    out: &'a mut Out,
}

impl MessageSink for Sink<'_> {
    fn message(&mut self, message: &dyn Outgoing) -> Result<bool, Error> {
        self.encoder.message(message, self.out)?;
        Ok(self.out.body_bytes() < GATHER_BYTES_MAX && self.encoder.may_send())
    }
}

/// The error with what its call is called in traces, where it is in one.
pub fn named(error: Error, request_id: Option<TraceId>) -> Error {
    match request_id {
        Some(id) => error.with_request_id(id.to_string()),
        None => error,
    }
}

/// The error of a call whose deadline passed.
pub fn deadline_exceeded() -> Error {
    Error::deadline_exceeded("the call's deadline passed before it ended")
}

/// What a caller makes of a call's error: a server that gives a call up because
/// its deadline passed may do so before the caller's own timer fires, and a
/// reset says no more than `canceled`.
pub fn at_deadline(error: Error, deadline: Instant) -> Error {
    if error.code() == Code::Canceled && Instant::now() >= deadline {
        deadline_exceeded().with_source(error)
    } else {
        error
    }
}

/// The error of a call whose handler panicked. What it said stays in the log of
/// the panic hook.
pub fn panicked() -> Error {
    Error::internal("the handler panicked")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_canceled_at_its_deadline_exceeded_it() {
        let deadline = Instant::now() + Duration::from_secs(1);
        let early = at_deadline(Error::canceled("reset"), deadline);
        assert_eq!(early.code(), Code::Canceled);
        tokio::time::advance(Duration::from_secs(1)).await;
        let late = at_deadline(Error::canceled("reset"), deadline);
        assert_eq!(late.code(), Code::DeadlineExceeded);
        // What the server says itself is kept.
        let other = at_deadline(Error::not_found("no user 7"), deadline);
        assert_eq!(other.code(), Code::NotFound);
    }
}
