//! A received body as events.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use quill_core::{Budget, Error, Held, Metadata, OverBudget};
use quill_transport::{Body, Chunk, RecvBody};
use quill_wire::{Decode, Decoder, Event, Side};

use crate::given_up::GivenUp;
use crate::transport_error::from_transport;

/// Reads one half of a call: a body through a decoder. Nothing is read from the
/// body that no one asked for.
#[derive(Debug)]
pub struct Receiver {
    /// `None` once the call was refused: what the decoder held is gone.
    decoder: Option<Decoder>,
    body: Option<RecvBody>,
    side: Side,
    given_up: GivenUp,
    held: Option<Held>,
    /// Bytes of messages that were decoded and wait for the rest of the half.
    kept_bytes: usize,
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
            given_up: GivenUp::default(),
            held: None,
            kept_bytes: 0,
        }
    }

    /// Says why the sending half gave the call up, where the transport fails for it.
    #[must_use]
    pub fn with_given_up(mut self, given_up: GivenUp) -> Self {
        self.given_up = given_up;
        self
    }

    /// Holds what has come and is no message yet within this budget.
    #[must_use]
    pub fn with_budget(mut self, budget: Option<&Budget>) -> Self {
        self.held = budget.map(Budget::hold);
        self
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
        loop {
            let Some(decoder) = &mut self.decoder else {
                return Poll::Ready(Ok(None));
            };
            if let Some(event) = decoder.next()? {
                return Poll::Ready(Ok(Some(event)));
            }
            let Some(body) = &mut self.body else {
                return Poll::Ready(Ok(None));
            };
            let Poll::Ready(chunk) = Pin::new(body).poll_chunk(cx) else {
                return self.wait();
            };
            match chunk {
                Some(Ok(Chunk::Data(bytes))) => decoder.feed(bytes),
                Some(Ok(Chunk::Trailers(trailers))) => {
                    self.body = None;
                    decoder.finish(Some(&trailers));
                }
                None => {
                    self.body = None;
                    decoder.finish(None);
                }
                Some(Err(error)) => {
                    self.body = None;
                    let error = from_transport(error, self.side);
                    return Poll::Ready(Err(self.given_up.or(error)));
                }
            }
        }
    }

    /// Waits for more of the body, with what there is held within the budget.
    /// Only what has to wait counts: a message that came whole costs nothing here
    /// and is taken however full the budget is. A call that can't be held is
    /// refused rather than left waiting, since its unread bytes would close the
    /// connection's window to those that could go on.
    fn wait(&mut self) -> Poll<Result<Option<Event>, Error>> {
        let (Some(held), Some(decoder)) = (&mut self.held, &self.decoder) else {
            return Poll::Pending;
        };
        match held.set(decoder.held_bytes().saturating_add(self.kept_bytes)) {
            Ok(()) => Poll::Pending,
            Err(over) => {
                self.decoder = None;
                self.body = None;
                self.held = None;
                Poll::Ready(Err(exhausted(over)))
            }
        }
    }

    /// The only message of a half that must have exactly one.
    ///
    /// # Errors
    /// None or more than one (`unimplemented`, as gRPC's statuscodes.md says),
    /// the peer's own error, and those of [`poll_event`](Self::poll_event).
    pub async fn one(&mut self) -> Result<Received, Error> {
        let mut message = None;
        let trailers = loop {
            match std::future::poll_fn(|cx| self.poll_event(cx)).await? {
                Some(Event::Message(bytes)) if message.is_none() => {
                    self.kept_bytes = bytes.len();
                    message = Some(bytes);
                }
                Some(Event::Message(_)) => return Err(more_than_one()),
                Some(Event::Credit(_)) => {}
                Some(Event::Cancel) => return Err(gave_up()),
                Some(Event::End(result)) => break result?,
                None => return Err(no_end()),
            }
        };
        match message {
            Some(message) => Ok(Received { message, trailers }),
            None => Err(no_message()),
        }
    }
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
