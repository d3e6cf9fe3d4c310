//! One request and its answer.

use std::future::Future;
use std::sync::Arc;

use quill_core::{Budget, Peer, RequestHead, ResponseHead};

use crate::body::{Body, RecvBody};

/// A request as a server's connection received it.
#[derive(Debug)]
pub struct HttpRequest {
    /// Its head; shared with what recalls it for the next of the same.
    pub head: Arc<RequestHead>,
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
}
