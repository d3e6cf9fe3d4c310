//! The module that generated code names, with a server and a client that meet
//! in memory: messages are encoded and decoded, and no wire is between.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
pub use futures_core::Stream;
use futures_util::stream::{self, StreamExt as _};
pub use quill_core::{
    BuffaCodec, BuffaViewCodec, Codec, Error, HeldStream, HoldsAny, Idempotency,
    IntoStreamingRequest, Method, MethodKind, Request, Response, Streaming, json, register_types,
};
use quill_core::{CodecError, DecodeLimits, Format, Inbound, MessageEncoding};
pub use {buffa, buffa_descriptor, buffa_types, serde};

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Messages = Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>>;
type Handler = Box<dyn Fn(Messages) -> BoxFuture<Result<Messages, Error>> + Send + Sync>;

/// What a generated server registers.
pub trait Service {
    /// Its full name.
    fn name(&self) -> &'static str;
    /// Registers its methods.
    fn routes(self, routes: &mut Routes);
}

/// The methods of all services.
#[derive(Default)]
pub struct Routes {
    handlers: BTreeMap<String, (Method, Handler)>,
}

impl Routes {
    /// The routes of one service.
    pub fn of(service: impl Service) -> Self {
        let mut routes = Self::default();
        service.routes(&mut routes);
        routes
    }

    /// The methods that were registered.
    pub fn methods(&self) -> impl Iterator<Item = &Method> {
        self.handlers.values().map(|(method, _)| method)
    }

    fn add<F>(&mut self, method: &'static Method, handler: F)
    where
        F: Fn(Messages) -> BoxFuture<Result<Messages, Error>> + Send + Sync + 'static,
    {
        let entry = (method.clone(), Box::new(handler) as Handler);
        let earlier = self.handlers.insert(method.path().to_owned(), entry);
        assert!(earlier.is_none(), "{} is registered twice", method.path());
    }

    /// Registers a method with one message each way.
    pub fn unary<I, O, F, A>(
        &mut self,
        method: &'static Method,
        input: impl Codec<I>,
        output: impl Codec<O>,
        handler: F,
    ) where
        I: Send + 'static,
        O: Send + 'static,
        F: Fn(Request<I>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<Response<O>, Error>> + Send + 'static,
    {
        self.add(method, move |messages| {
            let (input, output, handler) = (input.clone(), output.clone(), handler.clone());
            Box::pin(async move {
                let request = Request::new(one(messages, input).await?);
                let answer = handler(request).await?.into_inner();
                Ok(single(encode(&output, &answer)))
            })
        });
    }

    /// Registers a method whose client streams.
    pub fn client_streaming<I, O, F, A>(
        &mut self,
        method: &'static Method,
        input: impl Codec<I>,
        output: impl Codec<O>,
        handler: F,
    ) where
        I: Send + 'static,
        O: Send + 'static,
        F: Fn(Request<Streaming<I>>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<Response<O>, Error>> + Send + 'static,
    {
        self.add(method, move |messages| {
            let (input, output, handler) = (input.clone(), output.clone(), handler.clone());
            Box::pin(async move {
                let request = Request::new(streaming(messages, input));
                let answer = handler(request).await?.into_inner();
                Ok(single(encode(&output, &answer)))
            })
        });
    }

    /// Registers a method whose server streams.
    pub fn server_streaming<I, O, F, A, S>(
        &mut self,
        method: &'static Method,
        input: impl Codec<I>,
        output: impl Codec<O>,
        handler: F,
    ) where
        I: Send + 'static,
        O: Send + 'static,
        F: Fn(Request<I>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<Response<S>, Error>> + Send + 'static,
        S: Stream<Item = Result<O, Error>> + Send + 'static,
    {
        self.add(method, move |messages| {
            let (input, output, handler) = (input.clone(), output.clone(), handler.clone());
            Box::pin(async move {
                let request = Request::new(one(messages, input).await?);
                let answer = handler(request).await?.into_inner();
                Ok(many(answer, output))
            })
        });
    }

    /// Registers a method of which both sides stream.
    pub fn bidi_streaming<I, O, F, A, S>(
        &mut self,
        method: &'static Method,
        input: impl Codec<I>,
        output: impl Codec<O>,
        handler: F,
    ) where
        I: Send + 'static,
        O: Send + 'static,
        F: Fn(Request<Streaming<I>>) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<Response<S>, Error>> + Send + 'static,
        S: Stream<Item = Result<O, Error>> + Send + 'static,
    {
        self.add(method, move |messages| {
            let (input, output, handler) = (input.clone(), output.clone(), handler.clone());
            Box::pin(async move {
                let request = Request::new(streaming(messages, input));
                let answer = handler(request).await?.into_inner();
                Ok(many(answer, output))
            })
        });
    }
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.handlers.keys()).finish()
    }
}

/// No connection is made, so none fails.
#[derive(Debug)]
pub struct ConnectError;

/// Calls the handlers of some routes.
#[derive(Clone, Debug, Default)]
pub struct QuillClient(Arc<Routes>);

impl QuillClient {
    /// A client that finds nothing.
    ///
    /// # Errors
    /// None.
    pub async fn connect(_: impl AsRef<str>) -> Result<Self, ConnectError> {
        Ok(Self::default())
    }

    /// A client of these routes.
    #[must_use]
    pub fn of(routes: Routes) -> Self {
        Self(Arc::new(routes))
    }

    async fn call(&self, method: &'static Method, messages: Messages) -> Result<Messages, Error> {
        match self.0.handlers.get(method.path()) {
            Some((_, handler)) => handler(messages).await,
            None => Err(Error::unimplemented(method.path())),
        }
    }

    /// Calls a method with one message each way.
    ///
    /// # Errors
    /// The handler's.
    pub async fn unary<I: Send, O>(
        &self,
        method: &'static Method,
        input: impl Codec<I>,
        output: impl Codec<O>,
        request: Request<I>,
    ) -> Result<Response<O>, Error> {
        let messages = single(encode(&input, request.message()));
        let answer = one(self.call(method, messages).await?, output).await?;
        Ok(Response::new(answer))
    }

    /// Calls a method whose client streams.
    ///
    /// # Errors
    /// The handler's.
    pub async fn client_streaming<I: Send + 'static, O>(
        &self,
        method: &'static Method,
        input: impl Codec<I>,
        output: impl Codec<O>,
        request: Request<impl Stream<Item = I> + Send + 'static>,
    ) -> Result<Response<O>, Error> {
        let messages = many(request.into_inner().map(Ok), input);
        let answer = one(self.call(method, messages).await?, output).await?;
        Ok(Response::new(answer))
    }

    /// Calls a method whose server streams.
    ///
    /// # Errors
    /// The handler's.
    pub async fn server_streaming<I: Send, O>(
        &self,
        method: &'static Method,
        input: impl Codec<I>,
        output: impl Codec<O>,
        request: Request<I>,
    ) -> Result<Response<Streaming<O>>, Error> {
        let messages = single(encode(&input, request.message()));
        let answer = self.call(method, messages).await?;
        Ok(Response::new(streaming(answer, output)))
    }

    /// Calls a method of which both sides stream.
    ///
    /// # Errors
    /// The handler's.
    pub async fn bidi_streaming<I: Send + 'static, O>(
        &self,
        method: &'static Method,
        input: impl Codec<I>,
        output: impl Codec<O>,
        request: Request<impl Stream<Item = I> + Send + 'static>,
    ) -> Result<Response<Streaming<O>>, Error> {
        let messages = many(request.into_inner().map(Ok), input);
        let answer = self.call(method, messages).await?;
        Ok(Response::new(streaming(answer, output)))
    }
}

fn malformed(error: CodecError) -> Error {
    Error::invalid_argument(error.to_string()).with_source(error)
}

fn encode<T>(codec: &impl Codec<T>, message: &T) -> Result<Bytes, Error> {
    let mut out = BytesMut::new();
    codec
        .encode(Format::Proto, message, &mut out)
        .map_err(malformed)?;
    Ok(out.freeze())
}

fn single(message: Result<Bytes, Error>) -> Messages {
    Box::pin(stream::once(async { message }))
}

fn many<T: Send + 'static>(
    messages: impl Stream<Item = Result<T, Error>> + Send + 'static,
    codec: impl Codec<T>,
) -> Messages {
    Box::pin(messages.map(move |message| encode(&codec, &message?)))
}

async fn one<T>(mut messages: Messages, codec: impl Codec<T>) -> Result<T, Error> {
    let message = messages.next().await;
    let message = message.ok_or_else(|| Error::internal("no message"))??;
    codec
        .decode(Format::Proto, message, &DecodeLimits::default())
        .map_err(malformed)
}

fn streaming<T>(messages: Messages, codec: impl Codec<T>) -> Streaming<T> {
    struct Inner(Messages);
    impl Inbound for Inner {
        fn poll_message(
            mut self: Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<Bytes, Error>>> {
            self.0.as_mut().poll_next(cx)
        }
    }
    let inner = Box::pin(Inner(messages));
    Streaming::new(inner, codec, MessageEncoding::default(), malformed)
}
