//! Messages to send, until a deadline that needs nobody to poll.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use quill_core::{Cancellation, Deadline, Error, MessageSink, Outbound, Outgoing};
use tokio::task::AbortHandle;

use crate::send::deadline_exceeded;

type Messages = Pin<Box<dyn Outbound>>;

/// A stream of messages that its deadline drops, whether or not the transport
/// asks for more: a peer that stops reading must not keep a handler alive.
pub struct ExpiringOutbound {
    watched: Arc<Watched>,
    watch: AbortHandle,
}

struct Watched {
    messages: Mutex<Option<Messages>>,
    /// Who makes messages stops at this, so that the lock is had.
    is_expired: AtomicBool,
}

impl ExpiringOutbound {
    /// `messages`, until `deadline`; then they are dropped and the token fires.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    #[must_use]
    pub fn new(messages: Messages, deadline: Deadline, token: Cancellation) -> Self {
        let watched = Arc::new(Watched {
            messages: Mutex::new(Some(messages)),
            is_expired: AtomicBool::new(false),
        });
        let expiring = Arc::clone(&watched);
        let watch = tokio::spawn(async move {
            tokio::time::sleep_until(deadline.instant().into()).await;
            expiring.is_expired.store(true, Ordering::Relaxed);
            // Dropped once the lock is open again: it is the user's code.
            let expired = expiring.lock().take();
            drop(expired);
            token.cancel();
        });
        Self {
            watched,
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
        let is_expired = &self.watched.is_expired;
        if is_expired.load(Ordering::Relaxed) {
            return Poll::Ready(Some(Err(deadline_exceeded())));
        }
        match &mut *self.watched.lock() {
            Some(messages) => {
                let mut sink = ExpiringSink { sink, is_expired };
                messages.as_mut().poll_messages(cx, &mut sink)
            }
            None => Poll::Ready(Some(Err(deadline_exceeded()))),
        }
    }
}

/// A sink that has no more room once the deadline has passed.
struct ExpiringSink<'a> {
    sink: &'a mut dyn MessageSink,
    is_expired: &'a AtomicBool,
}

impl MessageSink for ExpiringSink<'_> {
    fn message(&mut self, message: &dyn Outgoing) -> Result<bool, Error> {
        let has_room = self.sink.message(message)?;
        Ok(has_room && !self.is_expired.load(Ordering::Relaxed))
    }
}

impl Drop for ExpiringOutbound {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, Option<Messages>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

    /// Always has another message.
    struct Busy;

    impl Outbound for Busy {
        fn poll_messages(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            sink: &mut dyn MessageSink,
        ) -> Poll<Option<Result<(), Error>>> {
            let (message, codec) = (bytes::Bytes::new(), quill_core::RawCodec);
            let message = quill_core::Encodable { message, codec };
            while sink.message(&message)? {}
            Poll::Ready(Some(Ok(())))
        }
    }

    /// Has room until then.
    struct Roomy(std::time::Instant);

    impl MessageSink for Roomy {
        fn message(&mut self, _: &dyn Outgoing) -> Result<bool, Error> {
            Ok(std::time::Instant::now() < self.0)
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_stream_that_always_has_messages_ends_at_its_deadline() {
        let now = tokio::time::Instant::now().into_std();
        let deadline = Deadline::after(now, Duration::from_millis(10));
        let token = Cancellation::new();
        let mut expiring = ExpiringOutbound::new(Box::pin(Busy), deadline, token.clone());
        let mut sink = Roomy(now + Duration::from_secs(10));
        let mut poll = |cx: &mut Context<'_>| Pin::new(&mut expiring).poll_messages(cx, &mut sink);
        let made = std::future::poll_fn(&mut poll).await;
        assert!(matches!(made, Some(Ok(()))), "{made:?}");
        let ended = std::future::poll_fn(&mut poll).await;
        let error = ended.unwrap().unwrap_err();
        assert_eq!(error.code(), quill_core::Code::DeadlineExceeded);
        assert!(std::time::Instant::now() < sink.0, "there was room");
        token.cancelled().await;
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
