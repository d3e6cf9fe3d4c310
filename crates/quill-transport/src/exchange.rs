//! One request and its answer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use quill_core::{Budget, Peer, ResponseHead, SharedHead};

use crate::body::{Body, RecvBody};

/// A request as a server's connection received it.
#[derive(Debug)]
pub struct HttpRequest {
    /// Its head; shared with what recalls it for the next of the same.
    pub head: SharedHead,
    /// Its body.
    pub body: RecvBody,
    /// Who sent it.
    pub peer: Peer,
    /// What the unfinished messages of its connection may hold together; `None`
    /// where the connection is not ours, or has no such bound.
    pub budget: Option<Budget>,
}

/// An answer for a server's connection to send.
#[derive(Debug)]
pub struct HttpResponse<B> {
    /// Its head.
    pub head: ResponseHead,
    /// Its body.
    pub body: B,
}

/// What answers the requests of a server's connections.
///
/// Unlike `tower`'s it has no error, since HTTP can say everything, and no
/// readiness, since a request that was read must be answered. A future that is
/// dropped tells that the caller has gone.
pub trait Service: Clone + Send + Sync + 'static {
    /// The answer's body.
    type Body: Body + Unpin + 'static;
    /// The answer to come.
    type Future: Future<Output = HttpResponse<Self::Body>> + Send + Unpin + 'static;

    /// Answers one request.
    fn call(&self, request: HttpRequest) -> Self::Future;

    /// Answers one request as [`call`](Self::call) does, within the task of `cx` as far as
    /// that goes without waiting: with an answer that is there at once, or else with the
    /// future of one, which is still to be polled for its waker.
    fn begin(
        &self,
        request: HttpRequest,
        cx: &mut Context<'_>,
    ) -> Result<HttpResponse<Self::Body>, Self::Future> {
        let mut future = self.call(request);
        match Pin::new(&mut future).poll(cx) {
            Poll::Ready(response) => Ok(response),
            Poll::Pending => Err(future),
        }
    }
}
