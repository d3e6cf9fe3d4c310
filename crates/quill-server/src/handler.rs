//! The four kinds of handlers as one.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;

use bytes::Bytes;
use futures_core::Stream;
use quill_core::{
    Codec, CodecError, Encodable, Error, Incoming, MessageEncoding, Reply, Request, RequestParts,
    Response, Streaming,
};
use quill_exchange::StreamOutbound;

/// A handler's answer to come.
pub type HandlerFuture = Pin<Box<dyn Future<Output = Result<Response<Reply>, Error>> + Send>>;

/// What answers the calls of one method, its messages still encoded. Every kind
/// of method is one of these underneath; implement it for gateways and tools
/// that know no types.
pub trait Handler: Send + Sync + 'static {
    /// Answers one call.
    fn call(&self, request: Request<Incoming>) -> HandlerFuture;
}

impl<F, Fut> Handler for F
where
    F: Fn(Request<Incoming>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Reply>, Error>> + Send + 'static,
{
    fn call(&self, request: Request<Incoming>) -> HandlerFuture {
        Box::pin(self(request))
    }
}

/// A function on typed messages, with the codecs that make it one on bytes.
pub(crate) struct Typed<Kind, Req, Res, F, Q, P> {
    f: F,
    requests: Q,
    responses: P,
    types: PhantomData<fn(Kind, Req) -> Res>,
}

impl<Kind, Req, Res, F, Q, P> Typed<Kind, Req, Res, F, Q, P> {
    pub(crate) fn new(f: F, requests: Q, responses: P) -> Self {
        Self {
            f,
            requests,
            responses,
            types: PhantomData,
        }
    }
}

/// The kinds, as types: which of its four impls a [`Typed`] has.
pub(crate) struct Unary;
pub(crate) struct ServerStreaming;
pub(crate) struct ClientStreaming;
pub(crate) struct BidiStreaming;

impl<Req, Res, F, Fut, Q, P> Handler for Typed<Unary, Req, Res, F, Q, P>
where
    Req: Send + 'static,
    Res: Send + 'static,
    Q: Codec<Req>,
    P: Codec<Res>,
    F: Fn(Request<Req>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Res>, Error>> + Send + 'static,
{
    fn call(&self, request: Request<Incoming>) -> HandlerFuture {
        let request = decode(request, &self.requests).map(&self.f);
        let codec = self.responses.clone();
        Box::pin(async move { Ok(one(request?.await?, codec)) })
    }
}

impl<Req, Res, S, F, Fut, Q, P> Handler for Typed<ServerStreaming, Req, (Res, S), F, Q, P>
where
    Req: Send + 'static,
    Res: Send + 'static,
    S: Stream<Item = Result<Res, Error>> + Send + 'static,
    Q: Codec<Req>,
    P: Codec<Res>,
    F: Fn(Request<Req>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<S>, Error>> + Send + 'static,
{
    fn call(&self, request: Request<Incoming>) -> HandlerFuture {
        let request = decode(request, &self.requests).map(&self.f);
        let codec = self.responses.clone();
        Box::pin(async move { Ok(many(request?.await?, codec)) })
    }
}

impl<Req, Res, F, Fut, Q, P> Handler for Typed<ClientStreaming, Req, Res, F, Q, P>
where
    Req: Send + 'static,
    Res: Send + 'static,
    Q: Codec<Req>,
    P: Codec<Res>,
    F: Fn(Request<Streaming<Req>>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<Res>, Error>> + Send + 'static,
{
    fn call(&self, request: Request<Incoming>) -> HandlerFuture {
        let request = decode_stream(request, &self.requests).map(&self.f);
        let codec = self.responses.clone();
        Box::pin(async move { Ok(one(request?.await?, codec)) })
    }
}

impl<Req, Res, S, F, Fut, Q, P> Handler for Typed<BidiStreaming, Req, (Res, S), F, Q, P>
where
    Req: Send + 'static,
    Res: Send + 'static,
    S: Stream<Item = Result<Res, Error>> + Send + 'static,
    Q: Codec<Req>,
    P: Codec<Res>,
    F: Fn(Request<Streaming<Req>>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Response<S>, Error>> + Send + 'static,
{
    fn call(&self, request: Request<Incoming>) -> HandlerFuture {
        let request = decode_stream(request, &self.requests).map(&self.f);
        let codec = self.responses.clone();
        Box::pin(async move { Ok(many(request?.await?, codec)) })
    }
}

fn decode<T>(request: Request<Incoming>, codec: &impl Codec<T>) -> Result<Request<T>, Error> {
    let (incoming, parts) = request.into_parts();
    let Incoming::One(bytes) = incoming else {
        return Err(Error::internal(
            "a method that takes one message was given a stream",
        ));
    };
    let message = decode_message(bytes, codec, parts.encoding)?;
    Ok(Request::from_parts(message, parts))
}

fn decode_message<T>(
    bytes: Bytes,
    codec: &impl Codec<T>,
    encoding: MessageEncoding,
) -> Result<T, Error> {
    codec
        .decode(encoding.format, bytes, &encoding.limits)
        .map_err(malformed_request)
}

fn decode_stream<T>(
    request: Request<Incoming>,
    codec: &impl Codec<T>,
) -> Result<Request<Streaming<T>>, Error> {
    let (incoming, parts): (_, RequestParts) = request.into_parts();
    let Incoming::Many(inbound) = incoming else {
        return Err(Error::internal(
            "a method that takes a stream was given one message",
        ));
    };
    let stream = Streaming::new(inbound, codec.clone(), parts.encoding, malformed_request);
    Ok(Request::from_parts(stream, parts))
}

fn malformed_request(error: CodecError) -> Error {
    Error::invalid_argument(error.to_string()).with_source(error)
}

fn one<T: Send + 'static>(response: Response<T>, codec: impl Codec<T>) -> Response<Reply> {
    response.map(|message| Reply::One(Box::new(Encodable { message, codec })))
}

fn many<T, S>(response: Response<S>, codec: impl Codec<T>) -> Response<Reply>
where
    T: Send + 'static,
    S: Stream<Item = Result<T, Error>> + Send + 'static,
{
    response.map(|stream| Reply::Many(Box::pin(StreamOutbound::new(stream, codec))))
}
