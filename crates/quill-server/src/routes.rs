//! Which handler answers at which path.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_core::Stream;
use quill_core::{Codec, Error, Method, MethodKind, Request, Response, Streaming};

use crate::handler::{BidiStreaming, ClientStreaming, Handler, ServerStreaming, Typed, Unary};

/// What a generated service does to be served: it adds its methods.
///
/// Generated servers implement it; so can anything that knows its methods at
/// run time.
pub trait Service: Send + Sync + 'static {
    /// The service's full name, such as `echo.v1.EchoService`.
    fn name(&self) -> &str;

    /// Adds each method with its handler.
    fn routes(self, routes: &mut Routes);
}

/// The methods of a server, by path.
#[derive(Default)]
pub struct Routes {
    by_path: HashMap<String, usize>,
    routes: Vec<Route>,
    services: Vec<String>,
    mistake: Option<String>,
}

/// One method and what handles it.
#[derive(Clone)]
pub struct Route {
    /// The method.
    pub method: Arc<Method>,
    handler: Arc<dyn Handler>,
}

impl Routes {
    /// No methods.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds all methods of a service.
    pub fn add(&mut self, service: impl Service) {
        self.services.push(service.name().to_owned());
        service.routes(self);
    }

    /// The full names of the services, in the order they were added.
    #[must_use]
    pub fn services(&self) -> &[String] {
        &self.services
    }

    /// The methods, in the order they were added.
    pub fn methods(&self) -> impl Iterator<Item = &Method> {
        self.routes.iter().map(|route| &*route.method)
    }

    /// Adds a method with any handler. Another at the same path is a mistake that
    /// keeps the server from being built.
    pub fn route(&mut self, method: Method, handler: impl Handler) {
        let path = method.path().to_owned();
        if self.by_path.contains_key(&path) {
            self.note_mistake(format!("the method {path} is registered twice"));
            return;
        }
        self.by_path.insert(path, self.routes.len());
        self.routes.push(Route {
            method: Arc::new(method),
            handler: Arc::new(handler),
        });
    }

    /// Adds a method whose handler is of this kind.
    fn typed(&mut self, kind: MethodKind, method: &Method, handler: impl Handler) {
        if method.kind() != kind {
            self.note_mistake(format!(
                "the method {} is {:?}, and its handler {kind:?}",
                method.path(),
                method.kind()
            ));
        }
        self.route(method.clone(), handler);
    }

    fn note_mistake(&mut self, mistake: String) {
        self.mistake.get_or_insert(mistake);
    }

    /// The first thing that is wrong with these routes.
    pub(crate) fn mistake(&self) -> Option<&str> {
        self.mistake.as_deref()
    }

    /// Adds a method with one message each way. A method of another kind is a
    /// mistake that keeps the server from being built; so in those below.
    pub fn unary<Req, Res, Q, P, F, Fut>(
        &mut self,
        method: &Method,
        requests: Q,
        responses: P,
        f: F,
    ) where
        Req: Send + 'static,
        Res: Send + 'static,
        Q: Codec<Req>,
        P: Codec<Res>,
        F: Fn(Request<Req>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response<Res>, Error>> + Send + 'static,
    {
        let handler = Typed::<Unary, Req, Res, _, _, _>::new(f, requests, responses);
        self.typed(MethodKind::Unary, method, handler);
    }

    /// Adds a method that answers with a stream.
    pub fn server_streaming<Req, Res, S, Q, P, F, Fut>(
        &mut self,
        method: &Method,
        requests: Q,
        responses: P,
        f: F,
    ) where
        Req: Send + 'static,
        Res: Send + 'static,
        S: Stream<Item = Result<Res, Error>> + Send + 'static,
        Q: Codec<Req>,
        P: Codec<Res>,
        F: Fn(Request<Req>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response<S>, Error>> + Send + 'static,
    {
        let handler = Typed::<ServerStreaming, Req, (Res, S), _, _, _>::new(f, requests, responses);
        self.typed(MethodKind::ServerStreaming, method, handler);
    }

    /// Adds a method that takes a stream.
    pub fn client_streaming<Req, Res, Q, P, F, Fut>(
        &mut self,
        method: &Method,
        requests: Q,
        responses: P,
        f: F,
    ) where
        Req: Send + 'static,
        Res: Send + 'static,
        Q: Codec<Req>,
        P: Codec<Res>,
        F: Fn(Request<Streaming<Req>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response<Res>, Error>> + Send + 'static,
    {
        let handler = Typed::<ClientStreaming, Req, Res, _, _, _>::new(f, requests, responses);
        self.typed(MethodKind::ClientStreaming, method, handler);
    }

    /// Adds a method that takes a stream and answers with one.
    pub fn bidi_streaming<Req, Res, S, Q, P, F, Fut>(
        &mut self,
        method: &Method,
        requests: Q,
        responses: P,
        f: F,
    ) where
        Req: Send + 'static,
        Res: Send + 'static,
        S: Stream<Item = Result<Res, Error>> + Send + 'static,
        Q: Codec<Req>,
        P: Codec<Res>,
        F: Fn(Request<Streaming<Req>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response<S>, Error>> + Send + 'static,
    {
        let handler = Typed::<BidiStreaming, Req, (Res, S), _, _, _>::new(f, requests, responses);
        self.typed(MethodKind::BidiStreaming, method, handler);
    }

    /// The route at exactly this path, and its number.
    pub(crate) fn find(&self, path: &str) -> Option<(usize, &Route)> {
        let index = *self.by_path.get(path)?;
        Some((index, self.routes.get(index)?))
    }

    /// The handler of the route with this number.
    pub(crate) fn handler(&self, index: usize) -> Option<&Arc<dyn Handler>> {
        Some(&self.routes.get(index)?.handler)
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.routes.iter().map(|route| route.method.path()))
            .finish()
    }
}
