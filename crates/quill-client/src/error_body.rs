//! The body of an answer whose status says that it failed.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use quill_transport::{Body, Chunk, RecvBody, TransportError};
use tokio::time::{Sleep, sleep};

/// How long the body of a failed answer is waited for.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// A body that tells why a call failed. The status has said that it did, so a
/// body that does not end, whether by its length or by its slowness, must not
/// keep the call from failing: it is cut off, and what is there has to do.
pub(crate) struct ErrorBody {
    body: RecvBody,
    bytes_left: usize,
    /// Set when the body is first waited for.
    limit: Option<Pin<Box<Sleep>>>,
}

impl ErrorBody {
    pub(crate) fn new(body: RecvBody, bytes_max: usize) -> Self {
        Self {
            body,
            bytes_left: bytes_max,
            limit: None,
        }
    }
}

impl Body for ErrorBody {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_chunk(cx) {
            Poll::Ready(Some(Ok(Chunk::Data(data)))) => {
                match this.bytes_left.checked_sub(data.len()) {
                    Some(left) => this.bytes_left = left,
                    None => return Poll::Ready(None),
                }
                Poll::Ready(Some(Ok(Chunk::Data(data))))
            }
            Poll::Pending => {
                let limit = || Box::pin(sleep(ERROR_BODY_TIMEOUT));
                let limit = this.limit.get_or_insert_with(limit);
                limit.as_mut().poll(cx).map(|()| None)
            }
            polled => polled,
        }
    }

    fn is_ended(&self) -> bool {
        self.body.is_ended()
    }
}
