//! A received body as events.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use quill_core::{Error, Metadata};
use quill_transport::{Body, Chunk, RecvBody};
use quill_wire::{Decode, Decoder, Event, Side};

use crate::given_up::GivenUp;
use crate::transport_error::from_transport;

/// Reads one half of a call: a body through a decoder. Nothing is read from the
/// body that no one asked for.
#[derive(Debug)]
pub struct Receiver {
    decoder: Decoder,
    body: Option<RecvBody>,
    side: Side,
    given_up: GivenUp,
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
            decoder,
            body: Some(body),
            side,
            given_up: GivenUp::default(),
        }
    }

    /// Says why the sending half gave the call up, where the transport fails for it.
    #[must_use]
    pub fn with_given_up(mut self, given_up: GivenUp) -> Self {
        self.given_up = given_up;
        self
    }

    /// The next event; `None` after the end.
    ///
    /// # Errors
    /// A body that broke, or whose bytes break the protocol or a limit.
    pub fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Event>, Error>> {
        loop {
            if let Some(event) = self.decoder.next()? {
                return Poll::Ready(Ok(Some(event)));
            }
            let Some(body) = &mut self.body else {
                return Poll::Ready(Ok(None));
            };
            match ready!(Pin::new(body).poll_chunk(cx)) {
                Some(Ok(Chunk::Data(bytes))) => self.decoder.feed(bytes),
                Some(Ok(Chunk::Trailers(trailers))) => {
                    self.body = None;
                    self.decoder.finish(Some(&trailers));
                }
                None => {
                    self.body = None;
                    self.decoder.finish(None);
                }
                Some(Err(error)) => {
                    self.body = None;
                    let error = from_transport(error, self.side);
                    return Poll::Ready(Err(self.given_up.or(error)));
                }
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
                Some(Event::Message(bytes)) if message.is_none() => message = Some(bytes),
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
