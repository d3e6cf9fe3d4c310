//! Received messages for the application.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use quill_core::{Error, Inbound, Metadata};
use quill_wire::Event;
use tokio::time::{Instant, Sleep};

use crate::credits::Credits;
use crate::receive::{Receiver, gave_up, more_than_one, no_end, no_message};
use crate::send::{at_deadline, deadline_exceeded};

/// Messages of a call without credits: the application's polls reach the
/// transport, whose windows hold the sender back.
#[derive(Debug)]
pub struct DirectInbound {
    receiver: Receiver,
    trailers: Metadata,
    ended: bool,
}

impl DirectInbound {
    /// The messages of this half.
    #[must_use]
    pub fn new(receiver: Receiver) -> Self {
        Self {
            receiver,
            trailers: Metadata::new(),
            ended: false,
        }
    }

    fn end(&mut self, error: Error) -> Poll<Option<Result<Bytes, Error>>> {
        self.ended = true;
        Poll::Ready(Some(Err(error)))
    }
}

impl Inbound for DirectInbound {
    fn poll_message(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Error>>> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            match ready!(self.receiver.poll_event(cx)) {
                Ok(Some(Event::Message(message))) => return Poll::Ready(Some(Ok(message))),
                Ok(Some(Event::Credit(_))) => {}
                Ok(Some(Event::End(Ok(trailers)))) => {
                    self.ended = true;
                    self.trailers = trailers;
                }
                Ok(Some(Event::Cancel)) => return self.end(gave_up()),
                Ok(None) => return self.end(no_end()),
                Ok(Some(Event::End(Err(error)))) | Err(error) => return self.end(error),
            }
        }
    }

    fn share_memory(mut self: Pin<&mut Self>) {
        self.receiver.share_memory();
    }

    fn take_trailers(mut self: Pin<&mut Self>) -> Metadata {
        std::mem::take(&mut self.trailers)
    }
}

/// Messages of a call until its deadline; then the rest is given up.
pub struct DeadlineInbound {
    messages: Option<Pin<Box<dyn Inbound>>>,
    deadline: Pin<Box<Sleep>>,
}

impl DeadlineInbound {
    /// `messages`, until `deadline` fires.
    #[must_use]
    pub fn new(messages: Pin<Box<dyn Inbound>>, deadline: Pin<Box<Sleep>>) -> Self {
        Self {
            messages: Some(messages),
            deadline,
        }
    }
}

impl Inbound for DeadlineInbound {
    fn poll_message(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Error>>> {
        let this = &mut *self;
        let Some(messages) = &mut this.messages else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(message) = messages.as_mut().poll_message(cx) {
            let deadline = this.deadline.deadline();
            // Else messages that are always there would never meet the deadline.
            let goes_on = matches!(&message, Some(Ok(_)));
            if !(goes_on && Instant::now() >= deadline) {
                let message =
                    message.map(|message| message.map_err(|error| at_deadline(error, deadline)));
                return Poll::Ready(message);
            }
        } else {
            ready!(this.deadline.as_mut().poll(cx));
        }
        // Dropping them resets the stream.
        this.messages = None;
        Poll::Ready(Some(Err(deadline_exceeded())))
    }

    fn share_memory(mut self: Pin<&mut Self>) {
        if let Some(messages) = &mut self.messages {
            messages.as_mut().share_memory();
        }
    }

    fn take_trailers(mut self: Pin<&mut Self>) -> Metadata {
        match &mut self.messages {
            Some(messages) => messages.as_mut().take_trailers(),
            None => Metadata::new(),
        }
    }
}

/// Messages of a call with credits.
#[derive(Debug)]
pub struct CreditedInbound(Credits);

impl CreditedInbound {
    /// The messages that `credits` brings in.
    #[must_use]
    pub fn new(credits: Credits) -> Self {
        Self(credits)
    }

    /// The only message of a half that must have exactly one.
    ///
    /// # Errors
    /// As [`Receiver::one`].
    pub async fn one(&mut self) -> Result<Bytes, Error> {
        let first = std::future::poll_fn(|cx| self.0.poll_message(cx)).await;
        let message = first.ok_or_else(no_message)??;
        self.0.keep(message.len());
        let second = std::future::poll_fn(|cx| self.0.poll_message(cx)).await;
        self.0.keep(0);
        match second {
            None => Ok(message),
            Some(Ok(_)) => Err(more_than_one()),
            Some(Err(error)) => Err(error),
        }
    }
}

impl Inbound for CreditedInbound {
    fn poll_message(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Error>>> {
        self.0.poll_message(cx)
    }

    fn take_trailers(self: Pin<&mut Self>) -> Metadata {
        self.0.take_trailers()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use quill_core::Code;

    use super::*;

    /// Messages without an end, always there.
    struct Endless;

    impl Inbound for Endless {
        fn poll_message(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Bytes, Error>>> {
            Poll::Ready(Some(Ok(Bytes::new())))
        }

        fn take_trailers(self: Pin<&mut Self>) -> Metadata {
            Metadata::new()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_ends_messages_that_are_always_there() {
        let second = Duration::from_secs(1);
        let deadline = Box::pin(tokio::time::sleep(second));
        let mut inbound = DeadlineInbound::new(Box::pin(Endless), deadline);
        let mut next =
            async || std::future::poll_fn(|cx| Pin::new(&mut inbound).poll_message(cx)).await;
        assert!(next().await.unwrap().is_ok());
        tokio::time::advance(second).await;
        let error = next().await.unwrap().unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded);
        assert!(next().await.is_none());
    }
}
