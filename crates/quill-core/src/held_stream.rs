//! A handler's stream together with what it borrows from.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_core::Stream;

use crate::call::Response;
use crate::error::Error;

/// The stream that a handler answers with, and the handler's service beside it.
///
/// A handler is called with `&self`, and its stream may borrow from that. The
/// runtime wants a stream that borrows from nothing; so the call is a future
/// that owns the service, and hands out one message at a time while it is
/// polled. Nothing is polled ahead.
pub struct HeldStream<T> {
    call: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    slot: Slot<T>,
}

/// Where a call in a [`HeldStream`] puts what it answers.
#[derive(Debug)]
pub struct Outlet<T>(Slot<T>);

/// Holds at most one answer: what is put here is taken after the same poll.
type Slot<T> = Arc<Mutex<Option<Answer<T>>>>;

#[derive(Debug)]
enum Answer<T> {
    Head(Result<Response<()>, Error>),
    Message(Result<T, Error>),
}

impl<T: Send + 'static> HeldStream<T> {
    /// Runs a call that forwards its answer to the outlet.
    ///
    /// # Errors
    /// The one that the handler answered with in place of a stream.
    pub fn run<F, C>(call: F) -> impl Future<Output = Result<Response<Self>, Error>> + Send
    where
        F: FnOnce(Outlet<T>) -> C,
        C: Future<Output = ()> + Send + 'static,
    {
        let slot = Slot::default();
        let call = call(Outlet(Arc::clone(&slot)));
        let mut held = Self {
            call: Some(Box::pin(call)),
            slot,
        };
        async move {
            let answer = poll_fn(|cx| held.poll_answer(cx)).await;
            match answer {
                Some(Answer::Head(head)) => Ok(head?.map(|()| held)),
                Some(Answer::Message(_)) | None => {
                    Err(Error::internal("the handler ended without an answer"))
                }
            }
        }
    }
}

impl<T> HeldStream<T> {
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Option<Answer<T>>> {
        let Some(call) = &mut self.call else {
            return Poll::Ready(None);
        };
        if call.as_mut().poll(cx).is_ready() {
            self.call = None;
        }
        let answer = lock(&self.slot).take();
        match answer {
            None if self.call.is_some() => Poll::Pending,
            answer => Poll::Ready(answer),
        }
    }
}

impl<T> Stream for HeldStream<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let answer = std::task::ready!(self.poll_answer(cx));
        Poll::Ready(answer.and_then(|answer| match answer {
            Answer::Message(message) => Some(message),
            Answer::Head(_) => None,
        }))
    }
}

impl<T> Outlet<T> {
    /// Passes a handler's answer on: its head, then its messages as they are asked for.
    pub async fn forward<S>(self, answer: Result<Response<S>, Error>)
    where
        S: Stream<Item = Result<T, Error>>,
    {
        let (stream, head) = match answer {
            Ok(response) => response.split(),
            Err(error) => return self.put(Answer::Head(Err(error))),
        };
        self.put(Answer::Head(Ok(head)));
        let mut stream = pin!(stream);
        let mut head_taken = false;
        // Pending without a waker: whoever polls takes what was put and then
        // polls again when it wants more.
        poll_fn(|cx| {
            if !std::mem::replace(&mut head_taken, true) {
                return Poll::Pending;
            }
            match std::task::ready!(stream.as_mut().poll_next(cx)) {
                Some(message) => {
                    self.put(Answer::Message(message));
                    Poll::Pending
                }
                None => Poll::Ready(()),
            }
        })
        .await;
    }

    fn put(&self, answer: Answer<T>) {
        *lock(&self.0) = Some(answer);
    }
}

/// A panic while the lock is held can't happen, as nothing is called under it.
fn lock<T>(slot: &Slot<T>) -> std::sync::MutexGuard<'_, Option<Answer<T>>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> fmt::Debug for HeldStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldStream")
            .field("ended", &self.call.is_none())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Waker;

    use super::*;
    use crate::code::Code;

    struct Service {
        words: Vec<&'static str>,
        polls: AtomicUsize,
    }

    /// Borrows from the service; pending before every second word.
    struct Words<'a> {
        service: &'a Service,
        at: usize,
        ready: Cell<bool>,
    }

    impl Stream for Words<'_> {
        type Item = Result<&'static str, Error>;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            self.service.polls.fetch_add(1, Ordering::Relaxed);
            if !self.ready.replace(!self.ready.get()) {
                return Poll::Pending;
            }
            let word = self.service.words.get(self.at).copied();
            self.at += 1;
            Poll::Ready(word.map(Ok))
        }
    }

    impl Service {
        async fn words(
            &self,
        ) -> Result<Response<impl Stream<Item = Result<&'static str, Error>>>, Error> {
            if self.words.is_empty() {
                return Err(Error::not_found("no words"));
            }
            let stream = Words {
                service: self,
                at: 0,
                ready: Cell::new(false),
            };
            Ok(Response::new(stream)
                .with_metadata("x-count", "2")
                .expect("valid"))
        }
    }

    fn held(service: &Arc<Service>) -> Poll<Result<Response<HeldStream<&'static str>>, Error>> {
        let service = Arc::clone(service);
        let run = HeldStream::run(move |outlet| async move {
            outlet.forward(service.words().await).await;
        });
        pin!(run).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_stream_that_borrows_is_handed_out_as_it_is_asked_for() {
        let service = Arc::new(Service {
            words: vec!["a", "b"],
            polls: AtomicUsize::new(0),
        });
        let Poll::Ready(Ok(response)) = held(&service) else {
            panic!("an answer at once")
        };
        assert_eq!(response.metadata().get("x-count"), Some("2"));
        assert_eq!(
            service.polls.load(Ordering::Relaxed),
            0,
            "nothing is polled ahead"
        );

        let mut stream = response.into_inner();
        let mut cx = Context::from_waker(Waker::noop());
        for expected in ["a", "b"] {
            assert!(Pin::new(&mut stream).poll_next(&mut cx).is_pending());
            let next = Pin::new(&mut stream).poll_next(&mut cx);
            assert!(matches!(next, Poll::Ready(Some(Ok(word))) if word == expected));
        }
        assert!(Pin::new(&mut stream).poll_next(&mut cx).is_pending());
        for _ in 0..2 {
            assert!(matches!(
                Pin::new(&mut stream).poll_next(&mut cx),
                Poll::Ready(None)
            ));
        }
        assert_eq!(service.polls.load(Ordering::Relaxed), 6);
    }

    #[test]
    fn the_service_lives_as_long_as_its_stream() {
        let service = Arc::new(Service {
            words: vec!["a"],
            polls: AtomicUsize::new(0),
        });
        let Poll::Ready(Ok(response)) = held(&service) else {
            panic!("an answer at once")
        };
        assert_eq!(Arc::strong_count(&service), 2);
        drop(response);
        assert_eq!(Arc::strong_count(&service), 1);
    }

    #[test]
    fn an_error_takes_the_place_of_the_stream() {
        let service = Arc::new(Service {
            words: Vec::new(),
            polls: AtomicUsize::new(0),
        });
        let Poll::Ready(Err(error)) = held(&service) else {
            panic!("an error at once")
        };
        assert_eq!(error.code(), Code::NotFound);
    }
}
