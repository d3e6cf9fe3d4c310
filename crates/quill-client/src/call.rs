//! The path of a call, from a request to its answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_core::Stream;
use pin_project_lite::pin_project;
use quill_core::{
    CallContext, Codec, CodecError, Deadline, Encodable, Error, Inbound, Metadata, Method,
    Outbound, Request, RequestParts, Response, ResponseHead, Streaming,
};
use quill_exchange::{
    CreditedInbound, Credits, DeadlineInbound, DirectInbound, GivenUp, Receiver, SendBody, Source,
    StreamOutbound, UnaryOutbound, WholeBody, at_deadline, deadline_exceeded, from_transport,
};
use quill_transport::{Lease, RecvBody, TransportError};
use quill_wire::{Call, Decode, Out, Side};
use tokio::time::Sleep;

use crate::client::QuillClient;
use crate::error_body::ErrorBody;
use crate::messages::{Answer, Messages};
use crate::stack;

impl QuillClient {
    /// Calls a method with one message each way.
    ///
    /// # Errors
    /// The server's error, or what kept the call from being made.
    pub async fn unary<Req, Res>(
        &self,
        method: &Method,
        requests: impl Codec<Req>,
        responses: impl Codec<Res>,
        request: Request<Req>,
    ) -> Result<Response<Res>, Error>
    where
        Req: Send + 'static,
    {
        let (messages, parts) = one_message(requests, request);
        self.one_answer(method, messages, parts, responses).await
    }

    /// Calls a method that answers with a stream.
    ///
    /// # Errors
    /// As [`unary`](Self::unary); later failures come out of the stream.
    pub async fn server_streaming<Req, Res>(
        &self,
        method: &Method,
        requests: impl Codec<Req>,
        responses: impl Codec<Res>,
        request: Request<Req>,
    ) -> Result<Response<Streaming<Res>>, Error>
    where
        Req: Send + 'static,
    {
        let (messages, parts) = one_message(requests, request);
        self.many_answers(method, messages, parts, responses).await
    }

    /// Calls a method that takes a stream.
    ///
    /// # Errors
    /// As [`unary`](Self::unary).
    pub async fn client_streaming<Req, Res, S>(
        &self,
        method: &Method,
        requests: impl Codec<Req>,
        responses: impl Codec<Res>,
        request: Request<S>,
    ) -> Result<Response<Res>, Error>
    where
        Req: Send + 'static,
        S: Stream<Item = Req> + Send + 'static,
    {
        let (messages, parts) = many_messages(requests, request);
        self.one_answer(method, messages, parts, responses).await
    }

    /// Calls a method that takes a stream and answers with one.
    ///
    /// Resolves with the head of the answer, while requests are being sent.
    /// Some servers send it only with their first message: a request that this
    /// message answers must be on its way before, or the two wait for each other.
    ///
    /// # Errors
    /// As [`unary`](Self::unary); later failures come out of the stream.
    pub async fn bidi_streaming<Req, Res, S>(
        &self,
        method: &Method,
        requests: impl Codec<Req>,
        responses: impl Codec<Res>,
        request: Request<S>,
    ) -> Result<Response<Streaming<Res>>, Error>
    where
        Req: Send + 'static,
        S: Stream<Item = Req> + Send + 'static,
    {
        let (messages, parts) = many_messages(requests, request);
        self.many_answers(method, messages, parts, responses).await
    }

    async fn one_answer<Res>(
        &self,
        method: &Method,
        messages: Messages,
        parts: RequestParts,
        codec: impl Codec<Res>,
    ) -> Result<Response<Res>, Error> {
        let response = match self.layers() {
            None => {
                let mut outgo = Outgo::new(self, Arc::new(method.clone()), parts)?;
                let lease = outgo.lease().await?;
                outgo.run_one(messages, lease).await?
            }
            Some(layers) => {
                let response = Box::pin(stack::call(self, layers, method, messages, parts)).await?;
                let (answer, metadata, trailers) = response.into_parts();
                match answer {
                    Answer::One(message) => Response::from_parts(message, metadata, trailers),
                    Answer::Many(_) => return Err(other_kind()),
                }
            }
        };
        let (message, metadata, trailers) = response.into_parts();
        let encoding = self.settings().encoding();
        let message = codec
            .decode(encoding.format, message, &encoding.limits)
            .map_err(malformed_answer)?;
        Ok(Response::from_parts(message, metadata, trailers))
    }

    async fn many_answers<Res>(
        &self,
        method: &Method,
        messages: Messages,
        parts: RequestParts,
        codec: impl Codec<Res>,
    ) -> Result<Response<Streaming<Res>>, Error> {
        let response = match self.layers() {
            None => {
                let mut outgo = Outgo::new(self, Arc::new(method.clone()), parts)?;
                let lease = outgo.lease().await?;
                outgo.run_many(messages, lease).await?
            }
            Some(layers) => {
                let response = Box::pin(stack::call(self, layers, method, messages, parts)).await?;
                let (answer, metadata, trailers) = response.into_parts();
                match answer {
                    Answer::Many(inbound) => Response::from_parts(inbound, metadata, trailers),
                    Answer::One(_) => return Err(other_kind()),
                }
            }
        };
        let encoding = self.settings().encoding();
        Ok(response.map(|inbound| Streaming::new(inbound, codec, encoding, malformed_answer)))
    }
}

fn one_message<Req: Send + 'static>(
    codec: impl Codec<Req>,
    request: Request<Req>,
) -> (Messages, RequestParts) {
    let (message, parts) = request.into_parts();
    (Messages::One(Box::new(Encodable { message, codec })), parts)
}

fn many_messages<Req: Send + 'static>(
    codec: impl Codec<Req>,
    request: Request<impl Stream<Item = Req> + Send + 'static>,
) -> (Messages, RequestParts) {
    let (messages, parts) = request.into_parts();
    let messages = StreamOutbound::new(Unfailing(Box::pin(messages)), codec);
    (Messages::Many(Box::pin(messages)), parts)
}

fn other_kind() -> Error {
    Error::internal("a layer of the client has answered with another kind of messages")
}

/// One attempt of a call being made.
pub(crate) struct Outgo {
    client: QuillClient,
    call: Call,
    deadline: Option<Deadline>,
}

/// An answer that has begun.
struct Begun {
    metadata: Metadata,
    messages: BegunMessages,
}

#[expect(
    clippy::large_enum_variant,
    reason = "it lives for one call, and most calls have no credits"
)]
enum BegunMessages {
    Direct(Receiver),
    Credited(Credits),
}

impl Outgo {
    /// Fills in what the request leaves to the client and to the handler that
    /// makes the call: the deadline, the trace.
    pub(crate) fn new(
        client: &QuillClient,
        method: Arc<Method>,
        parts: RequestParts,
    ) -> Result<Self, Error> {
        let inherited = CallContext::current();
        let own = client.settings().timeout.map(Deadline::within);
        let asked = parts.deadline.or(own);
        let deadline = Deadline::earliest(asked, inherited.deadline);
        let mut call = client.new_call(method);
        call.metadata = parts.metadata;
        call.metadata.complete(&client.settings().metadata);
        call.previous_attempts = parts.previous_attempts;
        if let Some(trace) = &inherited.trace
            && call.metadata.get("traceparent").is_none()
        {
            trace.write_to(&mut call.metadata);
        }
        if let Some(deadline) = deadline {
            left(deadline)?;
        }
        Ok(Self {
            client: client.clone(),
            call,
            deadline,
        })
    }

    /// Waits for a connection, until the deadline at most; then the version of
    /// HTTP is known, and with it what the request may ask for.
    pub(crate) async fn lease(&mut self) -> Result<Lease, Error> {
        let deadline = self.deadline.map(|deadline| deadline.instant().into());
        let leased = self.client.channel()?.lease(deadline).await;
        let lease = leased.map_err(|error| {
            if deadline.is_some_and(|deadline| tokio::time::Instant::now() >= deadline) {
                let late = Error::deadline_exceeded(error.to_string());
                late.unprocessed().with_source(error)
            } else {
                from_transport(error, Side::Client)
            }
        })?;
        self.leaves_on(&lease)?;
        Ok(lease)
    }

    /// Takes note of the connection that the call will be made on.
    pub(crate) fn leaves_on(&mut self, lease: &Lease) -> Result<(), Error> {
        self.call.leaves_on(lease.version())?;
        if let Some(deadline) = self.deadline {
            self.call.timeout = Some(left(deadline)?);
        }
        Ok(())
    }

    /// Makes the call, whatever its kind.
    pub(crate) async fn run(
        self,
        messages: Messages,
        lease: Lease,
    ) -> Result<Response<Answer>, Error> {
        if self.call.method.kind().server_streams() {
            let response = self.run_many(messages, lease).await?;
            Ok(response.map(Answer::Many))
        } else {
            let response = self.run_one(messages, lease).await?;
            Ok(response.map(Answer::One))
        }
    }

    async fn run_one(&self, messages: Messages, lease: Lease) -> Result<Response<Bytes>, Error> {
        within(self.deadline, async {
            let mut answer = self.begin(messages, lease).await?;
            // Read where it is: moved, it would have its place twice in this future.
            let (message, trailers) = match &mut answer.messages {
                BegunMessages::Direct(receiver) => {
                    let received = receiver.one().await?;
                    (received.message, received.trailers)
                }
                BegunMessages::Credited(credits) => {
                    let mut inbound = CreditedInbound::new(credits.clone());
                    let message = inbound.one().await?;
                    (message, Pin::new(&mut inbound).take_trailers())
                }
            };
            Ok(Response::from_parts(message, answer.metadata, trailers))
        })
        .await
    }

    async fn run_many(
        &self,
        messages: Messages,
        lease: Lease,
    ) -> Result<Response<Pin<Box<dyn Inbound>>>, Error> {
        let answer = within(self.deadline, self.begin(messages, lease)).await?;
        let mut inbound: Pin<Box<dyn Inbound>> = match answer.messages {
            BegunMessages::Direct(receiver) => Box::pin(DirectInbound::new(receiver)),
            BegunMessages::Credited(credits) => Box::pin(CreditedInbound::new(credits)),
        };
        if let Some(deadline) = self.deadline {
            let sleep = Box::pin(tokio::time::sleep_until(deadline.instant().into()));
            inbound = Box::pin(DeadlineInbound::new(inbound, sleep));
        }
        Ok(Response::from_parts(
            inbound,
            answer.metadata,
            Metadata::new(),
        ))
    }

    /// Sends the request, and reads the answer's head.
    async fn begin(&self, messages: Messages, lease: Lease) -> Result<Begun, Error> {
        match (messages, self.call.credits()) {
            (Messages::One(message), None) => {
                let mut out = Out::new();
                let head = self.call.unary_request(&*message, &mut out)?;
                let sent = lease.send(head, WholeBody::new(out)).await;
                self.answered(sent, None, None)
            }
            (messages, credits) => {
                let messages = match messages {
                    Messages::One(message) => Box::pin(UnaryOutbound::new(message)),
                    Messages::Many(messages) => messages,
                };
                // A place of its own, lest the future of every unary call have room for it.
                Box::pin(self.begin_stream(messages, credits, lease)).await
            }
        }
    }

    async fn begin_stream(
        &self,
        messages: Pin<Box<dyn Outbound>>,
        credits: Option<u32>,
        lease: Lease,
    ) -> Result<Begun, Error> {
        let credits = credits.map(|window| Credits::new(window, None));
        let given_up = GivenUp::default();
        let encoder = self.call.encoder(Side::Client);
        let source = Source::Messages(messages);
        let mut body = SendBody::new(encoder, Out::new(), source, Side::Client)
            .with_given_up(given_up.clone());
        if let Some(credits) = &credits {
            body = body.with_credits(credits.clone());
        }
        let sent = lease.send(self.call.request(), body).await;
        self.answered(sent, Some(given_up), credits)
    }

    /// Reads the answer's head.
    fn answered(
        &self,
        sent: Result<(ResponseHead, RecvBody), TransportError>,
        given_up: Option<GivenUp>,
        credits: Option<Credits>,
    ) -> Result<Begun, Error> {
        let call = &self.call;
        let (head, body) = sent.map_err(|error| {
            let error = from_transport(error, Side::Client);
            match &given_up {
                Some(given_up) => given_up.or(error),
                None => error,
            }
        })?;
        let body = if head.status == 200 {
            body
        } else {
            RecvBody::new(ErrorBody::new(body, call.options.receive_bytes_max))
        };
        let mut decoder = call.decoder(Side::Client);
        let metadata = decoder.head(&head)?;
        let mut receiver = Receiver::new(decoder, body, Side::Client);
        if let Some(given_up) = given_up {
            receiver = receiver.with_given_up(given_up);
        }
        Ok(Begun {
            metadata,
            messages: match credits {
                Some(credits) => {
                    credits.attach(receiver);
                    BegunMessages::Credited(credits)
                }
                None => BegunMessages::Direct(receiver),
            },
        })
    }
}

/// The time until the deadline.
fn left(deadline: Deadline) -> Result<Duration, Error> {
    match deadline.remaining(Instant::now()) {
        Duration::ZERO => Err(deadline_exceeded().unprocessed()),
        left => Ok(left),
    }
}

/// Runs `work` until the deadline; dropping it gives the call up.
pub(crate) fn within<F>(deadline: Option<Deadline>, work: F) -> Within<F> {
    let deadline = deadline.map(|deadline| tokio::time::sleep_until(deadline.instant().into()));
    Within { work, deadline }
}

pin_project! {
    // The future of [`within`]: `work` is kept once, whether there is a deadline or not.
    pub(crate) struct Within<F> {
        #[pin]
        work: F,
        #[pin]
        deadline: Option<Sleep>,
    }
}

impl<T, F: Future<Output = Result<T, Error>>> Future for Within<F> {
    type Output = Result<T, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let polled = this.work.poll(cx);
        let Some(deadline) = this.deadline.as_pin_mut() else {
            return polled;
        };
        let due = deadline.deadline();
        match polled {
            Poll::Ready(result) => Poll::Ready(result.map_err(|error| at_deadline(error, due))),
            Poll::Pending => deadline.poll(cx).map(|()| Err(deadline_exceeded())),
        }
    }
}

/// A message of the server's that does not decode is the server's fault.
fn malformed_answer(error: CodecError) -> Error {
    Error::internal(error.to_string()).with_source(error)
}

/// A stream of messages as one of results.
struct Unfailing<S>(Pin<Box<S>>);

impl<S: Stream> Stream for Unfailing<S> {
    type Item = Result<S::Item, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx).map(|item| item.map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quill_core::{MethodKind, RawCodec};

    use super::*;

    static METHOD: Method = Method::new("/a.B/C", MethodKind::Unary);

    /// Futures are moved, into tasks and through combinators, and whoever awaits a
    /// call has room for it in his own.
    #[test]
    fn the_future_of_a_call_is_small() {
        let client = QuillClient::new("http://localhost:1");
        let call = client.unary(&METHOD, RawCodec, RawCodec, Request::new(Bytes::new()));
        let bytes = size_of_val(&call);
        assert!(bytes <= 3072, "{bytes}");
    }
}
