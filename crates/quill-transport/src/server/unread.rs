//! What becomes of an HTTP/1.1 request's body that is answered before its end.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hyper::body::Incoming;

use crate::body::{LINGER_BYTES_MAX, Tie};

/// Where the body of the request that is being answered has got to.
///
/// A connection on which some of a body is left can't take another request, and
/// a caller has to be told so in the head of the answer: it would take the
/// connection for free, and lose a request on it.
#[derive(Clone, Debug)]
pub(super) struct Unread {
    rest: Arc<Mutex<Rest>>,
    bytes_left: usize,
    has_asked: bool,
}

#[derive(Debug)]
enum Rest {
    /// Someone may still read it, such as an answer that echoes it.
    Held,
    /// It was dropped before its end.
    Left(Incoming),
    Read,
}

impl Unread {
    pub(super) fn new() -> Self {
        Self {
            rest: Arc::new(Mutex::new(Rest::Held)),
            bytes_left: LINGER_BYTES_MAX,
            has_asked: false,
        }
    }

    /// What the body tells.
    pub(super) fn tie(&self) -> Box<dyn Tie> {
        Box::new(Told(Arc::clone(&self.rest)))
    }

    /// Reads on in a body that was left, as far as it has come in already.
    /// Whether the connection can take another request, as far as is known.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut rest = lock(&self.rest);
        let Rest::Left(body) = &mut *rest else {
            return Poll::Ready(true);
        };
        loop {
            let frame = match http_body::Body::poll_frame(Pin::new(&mut *body), cx) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(None) => return Poll::Ready(true),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(false),
                // Asked once, the connection hands over what it has. It may have
                // been asked before, and would then not come back by itself.
                Poll::Pending if !self.has_asked => {
                    self.has_asked = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Pending => return Poll::Ready(false),
            };
            self.has_asked = false;
            let bytes = frame.data_ref().map_or(0, bytes::Bytes::len);
            match self.bytes_left.checked_sub(bytes) {
                Some(left) => self.bytes_left = left,
                None => return Poll::Ready(false),
            }
        }
    }
}

struct Told(Arc<Mutex<Rest>>);

impl Tie for Told {
    fn ended(&mut self) {
        *lock(&self.0) = Rest::Read;
    }

    fn left(&mut self, body: Incoming) {
        let mut rest = lock(&self.0);
        if matches!(*rest, Rest::Held) {
            *rest = Rest::Left(body);
        }
    }
}

fn lock(rest: &Mutex<Rest>) -> MutexGuard<'_, Rest> {
    rest.lock().unwrap_or_else(PoisonError::into_inner)
}
