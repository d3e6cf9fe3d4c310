//! A received body as events.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use quill_core::{Budget, Error, Held, Metadata, OverBudget};
use quill_transport::{Body, Chunk, RecvBody};
use quill_wire::{Decode, Decoder, Event, Side};
use tokio::time::{Instant, Sleep};

use crate::given_up::GivenUp;
use crate::transport_error::from_transport;

/// Reads one half of a call: a body through a decoder. Nothing is read from the
/// body that no one asked for.
#[derive(Debug)]
pub struct Receiver {
    /// `None` once the half broke or was refused: what the decoder held is gone.
    decoder: Option<Decoder>,
    body: Option<RecvBody>,
    side: Side,
    given_up: Option<GivenUp>,
    held: Option<Held>,
    /// The only message of a half, which waits for the rest of it.
    kept: Option<Bytes>,
    stall: Option<Stall>,
}

/// How long the peer may leave a half unfinished without a byte of it.
#[derive(Debug)]
struct Stall {
    timeout: Duration,
    /// All of the half is owed, not only the message that it is in.
    is_whole_owed: bool,
    has_ended: bool,
    /// Something has come since the timer was set.
    has_moved: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Stall {
    /// Ready when the peer has owed bytes for too long.
    fn poll(&mut self, cx: &mut Context<'_>, is_owed: bool) -> Poll<()> {
        if !is_owed && (!self.is_whole_owed || self.has_ended) {
            self.timer = None;
            return Poll::Pending;
        }
        let timeout = self.timeout;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        if std::mem::take(&mut self.has_moved) {
            timer.as_mut().reset(Instant::now() + timeout);
        }
        timer.as_mut().poll(cx)
    }
}

/// The one message of a half that has one, and what came after it.
#[derive(Debug)]
pub struct Received {
    /// The message, encoded.
    pub message: Bytes,
    /// The trailing metadata.
    pub trailers: Metadata,
}

impl Receiver {
    /// Reads `body` with `decoder`.
    #[must_use]
    pub fn new(decoder: Decoder, body: RecvBody, side: Side) -> Self {
        Self {
            decoder: Some(decoder),
            body: Some(body),
            side,
            given_up: None,
            held: None,
            kept: None,
            stall: None,
        }
    }

    /// Says why the sending half gave the call up, where the transport fails for it.
    #[must_use]
    pub fn with_given_up(mut self, given_up: GivenUp) -> Self {
        self.given_up = Some(given_up);
        self
    }

    /// Holds what has come and is no message yet within this budget.
    #[must_use]
    pub fn with_budget(mut self, budget: Option<&Budget>) -> Self {
        self.held = budget.map(Budget::hold);
        self
    }

    /// Fails when the peer owes bytes and none have come for `timeout`: those of a
    /// message that it has begun, and with `is_whole_owed` those of all the half.
    /// Between the messages of a stream it owes none.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Option<Duration>, is_whole_owed: bool) -> Self {
        self.stall = timeout.map(|timeout| Stall {
            timeout,
            is_whole_owed,
            has_ended: false,
            has_moved: false,
            timer: None,
        });
        self
    }

    /// Lets messages share the memory of what they came in: for who keeps nothing of them.
    pub(crate) fn share_memory(&mut self) {
        self.decoder
            .as_mut()
            .into_iter()
            .for_each(Decode::share_memory);
    }

    /// Another share of this half's budget, for messages that wait elsewhere.
    pub(crate) fn share(&self) -> Option<Held> {
        self.held.as_ref().map(Held::sibling)
    }

    /// The next event; `None` after the end.
    ///
    /// # Errors
    /// A body that broke, or whose bytes break the protocol or a limit; or which
    /// stops inside a message while there is no budget to hold that.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Event>, Error>> {
        let event = ready!(self.poll_undelivered(cx));
        // What was part of a message is the caller's now.
        if self.held.as_ref().is_some_and(|held| held.bytes() > 0) {
            let bytes = self.decoder.as_ref().map_or(0, Decode::held_bytes);
            self.lower(bytes);
        }
        Poll::Ready(event)
    }

    /// As [`poll_event`](Self::poll_event), for an event that waits here on: its
    /// share is kept, so that no other call takes that in between.
    fn poll_undelivered(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Event>, Error>> {
        loop {
            let Some(decoder) = &mut self.decoder else {
                return Poll::Ready(Ok(None));
            };
            if let Some(event) = decoder.next()? {
                if let (Some(stall), Event::End(_) | Event::Cancel) = (&mut self.stall, &event) {
                    stall.has_ended = true;
                }
                return Poll::Ready(Ok(Some(event)));
            }
            let Some(body) = &mut self.body else {
                return Poll::Ready(Ok(None));
            };
            let Poll::Ready(chunk) = Pin::new(body).poll_chunk(cx) else {
                return self.wait(cx);
            };
            if let Some(stall) = &mut self.stall {
                stall.has_moved = true;
            }
            match chunk {
                Some(Ok(Chunk::Data(bytes))) => decoder.feed(bytes),
                Some(Ok(Chunk::Trailers(trailers))) => {
                    self.body = None;
                    decoder.finish(Some(trailers));
                }
                None => {
                    self.body = None;
                    decoder.finish(None);
                }
                Some(Err(error)) => {
                    let error = from_transport(error, self.side);
                    let error = match &self.given_up {
                        Some(given_up) => given_up.or(error),
                        None => error,
                    };
                    return self.refuse(error);
                }
            }
        }
    }

    /// Waits for more of the body: for as long as the peer may stall, and with
    /// what there is held within the budget.
    ///
    /// Only what has to wait counts: a message that came whole costs nothing here
    /// and is taken however full the budget is. A call that can't be held is
    /// refused rather than left waiting, since its unread bytes would close the
    /// connection's window to those that could go on.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Event>, Error>> {
        let bytes = self.decoder.as_mut().map_or(0, |decoder| {
            decoder.hold();
            decoder.held_bytes()
        });
        let kept_bytes = self.kept.as_ref().map_or(0, Bytes::len);
        if let Some(held) = &mut self.held
            && let Err(over) = held.set(bytes.saturating_add(kept_bytes))
        {
            return self.refuse(exhausted(over));
        }
        if let Some(stall) = &mut self.stall
            && stall.poll(cx, bytes > 0).is_ready()
        {
            let error = stalled(stall.timeout);
            return self.refuse(error);
        }
        Poll::Pending
    }

    fn lower(&mut self, bytes: usize) {
        if let Some(held) = &mut self.held {
            held.lower(bytes);
        }
    }

    /// Ends the half: nothing of it is held any more.
    fn refuse(&mut self, error: Error) -> Poll<Result<Option<Event>, Error>> {
        self.decoder = None;
        self.body = None;
        self.held = None;
        Poll::Ready(Err(error))
    }

    /// The only message of a half that must have exactly one.
    ///
    /// # Errors
    /// None or more than one (`unimplemented`, as gRPC's statuscodes.md says),
    /// the peer's own error, and those of [`poll_event`](Self::poll_event).
    pub async fn one(&mut self) -> Result<Received, Error> {
        std::future::poll_fn(|cx| self.poll_one(cx)).await
    }

    /// As [`one`](Self::one), for who has no place to await it.
    ///
    /// # Errors
    /// Those of [`one`](Self::one).
    pub fn poll_one(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received, Error>> {
        loop {
            let result = match ready!(self.poll_undelivered(cx)?) {
                Some(Event::Message(bytes)) if self.kept.is_none() => {
                    self.kept = Some(bytes);
                    continue;
                }
                Some(Event::Credit(_)) => continue,
                Some(Event::Message(_)) => Err(more_than_one()),
                Some(Event::Cancel) => Err(gave_up()),
                Some(Event::End(result)) => result,
                None => Err(no_end()),
            };
            self.lower(0);
            return Poll::Ready(result.and_then(|trailers| match self.kept.take() {
                Some(message) => Ok(Received { message, trailers }),
                None => Err(no_message()),
            }));
        }
    }
}

/// The peer began something and did not go on.
fn stalled(timeout: Duration) -> Error {
    Error::deadline_exceeded(format!(
        "the rest of the request did not come: not a byte of it for {timeout:?} (receive_timeout)"
    ))
}

/// There is no budget for what the peer has sent.
pub(crate) fn exhausted(over: OverBudget) -> Error {
    Error::resource_exhausted(over.to_string())
}

/// The peer cancelled.
pub(crate) fn gave_up() -> Error {
    Error::canceled("the peer gave the call up")
}

/// A decoder that ends without saying how: its protocol has no such end.
pub(crate) fn no_end() -> Error {
    Error::internal("the call's bytes ended before the call did")
}

/// Cardinality violations are `unimplemented`: gRPC's statuscodes.md.
pub(crate) fn no_message() -> Error {
    Error::unimplemented("no message was sent where the method takes exactly one")
}

pub(crate) fn more_than_one() -> Error {
    Error::unimplemented("more than one message was sent where the method takes exactly one")
}
