//! Messages to send, until a deadline that needs nobody to poll.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use quill_core::{Cancellation, Deadline, Error, MessageSink, Outbound};
use tokio::task::AbortHandle;

use crate::send::deadline_exceeded;

type Messages = Pin<Box<dyn Outbound>>;

/// A stream of messages that its deadline drops, whether or not the transport
/// asks for more: a peer that stops reading must not keep a handler alive.
pub struct ExpiringOutbound {
    messages: Arc<Mutex<Option<Messages>>>,
    watch: AbortHandle,
}

impl ExpiringOutbound {
    /// `messages`, until `deadline`; then they are dropped and the token fires.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn new(messages: Messages, deadline: Deadline, token: Cancellation) -> Self {
        let messages = Arc::new(Mutex::new(Some(messages)));
        let watched = Arc::clone(&messages);
        let watch = tokio::spawn(async move {
            tokio::time::sleep_until(deadline.instant().into()).await;
            // Dropped once the lock is open again: it is the user's code.
            let expired = lock(&watched).take();
            drop(expired);
            token.cancel();
        });
        Self {
            messages,
            watch: watch.abort_handle(),
        }
    }
}

impl Outbound for ExpiringOutbound {
    fn poll_messages(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        sink: &mut dyn MessageSink,
    ) -> Poll<Option<Result<(), Error>>> {
        match &mut *lock(&self.messages) {
            Some(messages) => messages.as_mut().poll_messages(cx, sink),
            None => Poll::Ready(Some(Err(deadline_exceeded()))),
        }
    }
}

impl Drop for ExpiringOutbound {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

fn lock(messages: &Mutex<Option<Messages>>) -> MutexGuard<'_, Option<Messages>> {
    messages.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Never has a message, and tells when it is dropped.
    struct Endless(Cancellation);

    impl Outbound for Endless {
        fn poll_messages(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &mut dyn MessageSink,
        ) -> Poll<Option<Result<(), Error>>> {
            Poll::Pending
        }
    }

    impl Drop for Endless {
        fn drop(&mut self) {
            self.0.cancel();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_nobody_polls_ends_at_its_deadline() {
        let (dropped, token) = (Cancellation::new(), Cancellation::new());
        let now = tokio::time::Instant::now().into_std();
        let deadline = Deadline::after(now, Duration::from_secs(1));
        let messages = Box::pin(Endless(dropped.clone()));
        let expiring = ExpiringOutbound::new(messages, deadline, token.clone());
        tokio::time::sleep(Duration::from_millis(900)).await;
        assert!(!dropped.is_cancelled() && !token.is_cancelled());
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(dropped.is_cancelled() && token.is_cancelled());
        drop(expiring);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_ended_is_watched_no_more() {
        let (dropped, token) = (Cancellation::new(), Cancellation::new());
        let now = tokio::time::Instant::now().into_std();
        let deadline = Deadline::after(now, Duration::from_secs(1));
        let messages = Box::pin(Endless(dropped.clone()));
        drop(ExpiringOutbound::new(messages, deadline, token.clone()));
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(dropped.is_cancelled() && !token.is_cancelled());
    }
}
