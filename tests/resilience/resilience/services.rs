//! Layers around services of the test, by a clock that stands still: what needs
//! no socket.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use quill::client::{Answer, Calls, Messages};
use quill::{Error, Idempotency, Method, MethodKind, Request, Response};
use quill_core::{Encodable, RawCodec};
use tower::{Layer, ServiceExt, service_fn};

/// How often a service was called.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicU32>);

impl Count {
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A service whose calls end as `end` says, by how many there were before.
pub(crate) fn ending<F, T>(count: &Count, end: F) -> impl Calls + use<F, T>
where
    F: Fn(u32) -> T + Clone + Send + Sync + 'static,
    T: Future<Output = Result<(), Error>> + Send + 'static,
{
    let count = count.clone();
    service_fn(move |_: Request<Messages>| {
        let end = end(count.0.fetch_add(1, Ordering::SeqCst));
        async move {
            end.await?;
            Ok::<_, Error>(Response::new(Answer::One(Bytes::new())))
        }
    })
}

/// A unary request.
pub(crate) fn request(idempotency: Idempotency) -> Request<Messages> {
    let message = Encodable {
        message: Bytes::from_static(b"x"),
        codec: RawCodec,
    };
    let mut request = Request::new(Messages::One(Box::new(message)));
    let method = Method::new("/flaky.v1.FlakyService/Call", MethodKind::Unary);
    request.parts_mut().method = Some(Arc::new(method.with_idempotency(idempotency)));
    request
}

/// Makes one call through a layer.
pub(crate) async fn through<L, S>(
    layer: &L,
    service: S,
    request: Request<Messages>,
) -> Result<(), Error>
where
    L: Layer<S>,
    L::Service: Calls,
{
    let called = layer.layer(service).oneshot(request).await;
    called.map(drop).map_err(|error| Error::from(error.into()))
}
