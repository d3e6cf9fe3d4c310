//! The service: the path of a call past the guard.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use quill_core::{BoxError, Incoming, Reply, Request, Response};
use tower_service::Service;

use super::identity::Identity;
use super::layer::{Admission, Config};
use crate::middleware::gate::GateFuture;
use crate::middleware::observe::Notes;

/// A service that lets in callers that are known.
#[derive(Clone)]
pub struct AuthService<S> {
    inner: S,
    config: Arc<Config>,
}

impl<S> AuthService<S> {
    pub(super) fn new(inner: S, config: Arc<Config>) -> Self {
        Self { inner, config }
    }
}

impl<S> Service<Request<Incoming>> for AuthService<S>
where
    S: Service<Request<Incoming>, Response = Response<Reply>, Error: Into<BoxError>>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    type Response = Response<Reply>;
    type Error = BoxError;
    type Future = GateFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Incoming>) -> Self::Future {
        match self.config.admit(request.parts()) {
            Admission::Admitted(identity) => {
                if let Some(identity) = identity {
                    admit(&mut request, identity);
                }
                GateFuture::through(self.inner.call(request))
            }
            Admission::Refused(error) => GateFuture::refused(error),
            Admission::Asking(asking) => {
                // The service that was made ready goes with the call; its clone
                // stays for the next.
                let clone = self.inner.clone();
                let mut ready = std::mem::replace(&mut self.inner, clone);
                let config = Arc::clone(&self.config);
                GateFuture::asking(async move {
                    let identity = config.settle(request.parts(), asking.await)?;
                    admit(&mut request, identity);
                    ready.call(request).await.map_err(Into::into)
                })
            }
        }
    }
}

/// Tells the handler, and the log if there is one, who calls.
fn admit(request: &mut Request<Incoming>, identity: Identity) {
    if let Some(notes) = request.extensions().get::<Notes>() {
        notes.set_identity(&identity);
    }
    request.extensions_mut().insert(identity);
}

impl<S: fmt::Debug> fmt::Debug for AuthService<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthService")
            .field("inner", &self.inner)
            .finish_non_exhaustive()
    }
}
