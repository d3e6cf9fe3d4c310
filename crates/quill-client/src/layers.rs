//! The layers of a client, in the order in which calls go through them.

use std::fmt;
use std::sync::Arc;

use tower_layer::Layer;

use crate::breaker::CircuitBreaker;
use crate::hedge::Hedge;
use crate::rate_limit::RateLimit;
use crate::retry::RetryLayer;
use crate::stack::{CallService, Calls};
use crate::token::Tokens;
use crate::trace::Traces;

/// What a builder was told to put before the connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
    /// Around all others.
    pub(crate) traces: Option<Traces>,
    /// The user's own; the outermost first.
    pub(crate) own: Vec<OwnLayer>,
    pub(crate) retry: Option<RetryLayer>,
    pub(crate) hedge: Option<Hedge>,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) breaker: Option<CircuitBreaker>,
    pub(crate) rate_limit: Option<RateLimit>,
}

/// A layer whose type is forgotten.
#[derive(Clone)]
pub(crate) struct OwnLayer(Arc<dyn Fn(CallService) -> CallService + Send + Sync>);

impl OwnLayer {
    pub(crate) fn new<T>(layer: T) -> Self
    where
        T: Layer<CallService> + Send + Sync + 'static,
        T::Service: Calls,
    {
        Self(Arc::new(move |inner| put(Some(&layer), inner)))
    }
}

impl fmt::Debug for OwnLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnLayer")
    }
}

impl Layers {
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            traces,
            own,
            retry,
            hedge,
            tokens,
            breaker,
            rate_limit,
        } = self;
        traces.is_none()
            && own.is_empty()
            && retry.is_none()
            && hedge.is_none()
            && tokens.is_none()
            && breaker.is_none()
            && rate_limit.is_none()
    }

    /// These layers around `innermost`.
    pub(crate) fn around(&self, innermost: CallService) -> CallService {
        let stack = put(self.rate_limit.as_ref(), innermost);
        let stack = put(self.breaker.as_ref(), stack);
        let stack = put(self.tokens.as_ref(), stack);
        let stack = put(self.hedge.as_ref(), stack);
        let stack = put(self.retry.as_ref(), stack);
        let own = self.own.iter().rev();
        let stack = own.fold(stack, |stack, layer| (layer.0)(stack));
        put(self.traces.as_ref(), stack)
    }
}

fn put<T>(layer: Option<&T>, inner: CallService) -> CallService
where
    T: Layer<CallService>,
    T::Service: Calls,
{
    match layer {
        None => inner,
        Some(layer) => {
            let service = layer.layer(inner);
            CallService::new(tower::util::MapErr::new(service, Into::into))
        }
    }
}
