//! What layers pass on: a request's messages, and those of its answer.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use quill_core::{
    Encodable, Error, Format, Inbound, Metadata, Outbound, Outgoing, RawCodec, Response,
};

/// The messages of a request, as a client's layers see them.
pub enum Messages {
    /// The one message.
    One(Box<dyn Outgoing + Send>),
    /// The stream of messages.
    Many(Pin<Box<dyn Outbound>>),
}

/// The messages of an answer, as a client's layers see them.
pub enum Answer {
    /// The one message, encoded; the whole answer has come with it.
    One(Bytes),
    /// The stream of messages, whose head has come. How the call ended comes
    /// out of it.
    Many(Pin<Box<dyn Inbound>>),
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Messages::One(_) => "One",
            Messages::Many(_) => "Many",
        })
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Answer::One(bytes) => f.debug_tuple("One").field(&bytes.len()).finish(),
            Answer::Many(_) => f.write_str("Many"),
        }
    }
}

/// The bytes of a message.
///
/// # Errors
/// `internal`: it can't be encoded.
pub(crate) fn encoded(message: &dyn Outgoing, format: Format) -> Result<Bytes, Error> {
    if let Some(bytes) = message.encoded(format) {
        return Ok(bytes);
    }
    let mut bytes = BytesMut::with_capacity(message.encoded_len(format).unwrap_or_default());
    message
        .encode(format, &mut bytes)
        .map_err(|error| Error::internal(error.to_string()).with_source(error))?;
    Ok(bytes.freeze())
}

/// A message of bytes that are encoded already.
pub(crate) fn raw(message: Bytes) -> Encodable<Bytes, RawCodec> {
    Encodable {
        message,
        codec: RawCodec,
    }
}

/// Learns how a call goes on.
pub(crate) trait Watch: Send + Unpin + 'static {
    /// A message has come.
    fn message(&mut self) {}

    /// The call has ended: well, or with an error.
    fn end(&mut self, result: Result<(), &Error>);
}

/// The same answer, with `watch` told how it goes on; of an answer of one message
/// at once. A call that is given up drops it untold.
pub(crate) fn watched(
    result: Result<Response<Answer>, Error>,
    mut watch: impl Watch,
) -> Result<Response<Answer>, Error> {
    match &result {
        Err(error) => watch.end(Err(error)),
        Ok(response) => {
            if let Answer::One(_) = response.message() {
                watch.message();
                watch.end(Ok(()));
            } else {
                return result.map(|response| {
                    response.map(|answer| match answer {
                        Answer::Many(inbound) => {
                            let watch = Some(watch);
                            Answer::Many(Box::pin(Watched { inbound, watch }))
                        }
                        one @ Answer::One(_) => one,
                    })
                });
            }
        }
    }
    result
}

struct Watched<W> {
    inbound: Pin<Box<dyn Inbound>>,
    /// `None` once it knows the end.
    watch: Option<W>,
}

impl<W: Watch> Inbound for Watched<W> {
    fn poll_message(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Error>>> {
        let polled = self.inbound.as_mut().poll_message(cx);
        let Poll::Ready(message) = &polled else {
            return polled;
        };
        match message {
            Some(Ok(_)) => {
                if let Some(watch) = &mut self.watch {
                    watch.message();
                }
            }
            ended => {
                if let Some(mut watch) = self.watch.take() {
                    let failure = ended.as_ref().and_then(|ended| ended.as_ref().err());
                    watch.end(failure.map_or(Ok(()), Err));
                }
            }
        }
        polled
    }

    fn share_memory(mut self: Pin<&mut Self>) {
        self.inbound.as_mut().share_memory();
    }

    fn take_trailers(mut self: Pin<&mut Self>) -> Metadata {
        self.inbound.as_mut().take_trailers()
    }
}
