//! A call that is under way.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quill_core::{Error, MessageSink, Outbound, Reply, Response};
use tokio::time::Instant;

use super::adaptive::Sample;
use super::limiter::{Asked, Limiter};

/// A call's place among those that are under way, until it is dropped.
pub(super) struct Permit {
    limiter: Arc<Limiter>,
    asked: Asked,
    /// How many there were with it.
    in_flight: usize,
    since: Instant,
    /// How it ended, once that says something.
    sample: Option<Sample>,
}

impl Permit {
    pub(super) fn new(
        limiter: Arc<Limiter>,
        asked: Asked,
        in_flight: usize,
        since: Instant,
    ) -> Self {
        Self {
            limiter,
            asked,
            in_flight,
            since,
            sample: None,
        }
    }

    /// For the call that asked for it.
    pub(super) fn of(mut self, asked: Asked) -> Self {
        self.asked = asked;
        self
    }

    /// Goes with the call's answer: a stream keeps it to its end.
    pub(super) fn hold(mut self, response: Response<Reply>) -> Response<Reply> {
        let is_stream = matches!(response.message(), Reply::Many(_));
        if is_stream {
            // How long its caller wants to listen says nothing of the server.
            self.asked.is_measured = false;
        } else if self.asked.is_measured {
            self.sample = Some(Sample::Took(self.since.elapsed()));
        }
        response.map(|reply| match reply {
            Reply::One(message) => Reply::One(message),
            Reply::Many(messages) => Reply::Many(Box::pin(Held {
                messages,
                permit: Some(self),
            })),
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let is_late = || {
            let deadline = self.asked.deadline.filter(|_| self.asked.is_measured)?;
            (deadline.instant() <= Instant::now().into_std()).then_some(Sample::Late)
        };
        let sample = self.sample.or_else(is_late);
        self.limiter.release(sample, self.in_flight);
    }
}

/// An answer's messages, and the place that their call takes.
struct Held {
    messages: Pin<Box<dyn Outbound>>,
    /// `None` once they have ended.
    permit: Option<Permit>,
}

impl Outbound for Held {
    fn poll_messages(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        sink: &mut dyn MessageSink,
    ) -> Poll<Option<Result<(), Error>>> {
        let polled = self.messages.as_mut().poll_messages(cx, sink);
        if let Poll::Ready(None | Some(Err(_))) = &polled {
            self.permit = None;
        }
        polled
    }
}
