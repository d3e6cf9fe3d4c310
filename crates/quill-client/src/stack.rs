//! The tower of layers between a client's methods and its connections.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quill_core::{BoxError, CallContext, Deadline, Error, Method, Request, RequestParts, Response};
use quill_exchange::{deadline_exceeded, from_layer};
use tower::ServiceExt;
use tower::util::BoxCloneSyncService;
use tower_service::Service;

use crate::call::{Outgo, within};
use crate::client::QuillClient;
use crate::messages::{Answer, Messages};

/// Calls through layers, whatever they are: what [`ClientBuilder::layer`]
/// wraps.
///
/// [`ClientBuilder::layer`]: crate::ClientBuilder::layer
pub type CallService = BoxCloneSyncService<Request<Messages>, Response<Answer>, BoxError>;

/// The future of the client's own layers.
pub type CallFuture = Pin<Box<dyn Future<Output = Result<Response<Answer>, Error>> + Send>>;

/// What makes calls, as layers see it: every service of this shape is one.
pub trait Calls:
    Service<
        Request<Messages>,
        Response = Response<Answer>,
        Error: Into<BoxError>,
        Future: Send + 'static,
    > + Clone
    + Send
    + Sync
    + 'static
{
}

impl<T> Calls for T
where
    T: Service<Request<Messages>, Response = Response<Answer>> + Clone + Send + Sync + 'static,
    T::Error: Into<BoxError>,
    T::Future: Send + 'static,
{
}

/// Makes a call by `service`, once that is ready.
pub(crate) async fn run<S: Calls>(
    service: S,
    request: Request<Messages>,
) -> Result<Response<Answer>, Error> {
    service.oneshot(request).await.map_err(|error| {
        from_layer(
            error.into(),
            "the client is at its limit of concurrent calls",
        )
    })
}

/// The innermost service: one attempt of a call, on one channel.
#[derive(Clone, Debug)]
pub(crate) struct Attempt(pub(crate) QuillClient);

impl Service<Request<Messages>> for Attempt {
    type Response = Response<Answer>;
    type Error = Error;
    type Future = CallFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Messages>) -> CallFuture {
        let client = self.0.clone();
        Box::pin(async move {
            let (messages, parts) = request.into_parts();
            let mut outgo = Outgo::new(&client, method_of(&parts)?, parts)?;
            let lease = outgo.lease().await?;
            outgo.run(messages, lease).await
        })
    }
}

/// The method of a request on its way through the layers.
pub(crate) fn method_of(parts: &RequestParts) -> Result<Arc<Method>, Error> {
    let method = parts.method.clone();
    method.ok_or_else(|| Error::internal("a layer of the client has removed the method"))
}

/// Makes a call through the layers. Its deadline holds for all that they do.
pub(crate) async fn call(
    client: &QuillClient,
    stack: &CallService,
    method: &Method,
    messages: Messages,
    mut parts: RequestParts,
) -> Result<Response<Answer>, Error> {
    let settings = client.settings();
    let own = settings.timeout.map(Deadline::within);
    let asked = parts.deadline.or(own);
    parts.deadline = Deadline::earliest(asked, CallContext::current().deadline);
    parts.method = Some(Arc::new(method.clone()));
    parts.encoding = settings.encoding();
    parts.protocol = settings.protocol.name();
    let deadline = parts.deadline;
    if deadline.is_some_and(|deadline| deadline.instant() <= std::time::Instant::now()) {
        return Err(deadline_exceeded().unprocessed());
    }
    within(
        deadline,
        run(stack.clone(), Request::from_parts(messages, parts)),
    )
    .await
}
