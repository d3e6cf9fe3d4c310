//! The path of a call, from a request to its answer.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_core::Stream;
use quill_core::{
    CallContext, Codec, CodecError, Deadline, Encodable, Error, Inbound, MessageEncoding, Metadata,
    Method, Outbound, Outgoing, Request, RequestParts, Response, Streaming,
};
use quill_exchange::{
    CreditedInbound, Credits, DeadlineInbound, DirectInbound, GivenUp, Receiver, SendBody, Source,
    StreamOutbound, UnaryOutbound, WholeBody, at_deadline, deadline_exceeded, from_transport,
};
use quill_transport::{Lease, RecvBody};
use quill_wire::{Call, Decode, Out, Side};

use crate::client::QuillClient;
use crate::error_body::ErrorBody;

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
        let (call, messages) = self.one_message(method, requests, request)?;
        call.run_one(messages, responses).await
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
        let (call, messages) = self.one_message(method, requests, request)?;
        call.run_many(messages, responses).await
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
        let (call, messages) = self.many_messages(method, requests, request)?;
        call.run_one(messages, responses).await
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
        let (call, messages) = self.many_messages(method, requests, request)?;
        call.run_many(messages, responses).await
    }

    fn one_message<Req: Send + 'static>(
        &self,
        method: &Method,
        codec: impl Codec<Req>,
        request: Request<Req>,
    ) -> Result<(Outgo, Messages), Error> {
        let (message, parts) = request.into_parts();
        let message = Box::new(Encodable { message, codec });
        Ok((Outgo::new(self, method, parts)?, Messages::One(message)))
    }

    fn many_messages<Req: Send + 'static>(
        &self,
        method: &Method,
        codec: impl Codec<Req>,
        request: Request<impl Stream<Item = Req> + Send + 'static>,
    ) -> Result<(Outgo, Messages), Error> {
        let (messages, parts) = request.into_parts();
        let messages = StreamOutbound::new(Unfailing(Box::pin(messages)), codec);
        Ok((
            Outgo::new(self, method, parts)?,
            Messages::Many(Box::pin(messages)),
        ))
    }
}

/// The messages of a request.
enum Messages {
    One(Box<dyn Outgoing>),
    Many(Pin<Box<dyn Outbound>>),
}

/// One call being made.
struct Outgo {
    client: QuillClient,
    call: Call,
    deadline: Option<Deadline>,
}

/// An answer that has begun.
struct Answer {
    metadata: Metadata,
    messages: AnswerMessages,
    encoding: MessageEncoding,
    deadline: Option<Deadline>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "it lives for one call, and most calls have no credits"
)]
enum AnswerMessages {
    Direct(Receiver),
    Credited(Credits),
}

impl Outgo {
    /// Fills in what the request leaves to the client and to the handler that
    /// makes the call: the deadline, the trace.
    fn new(client: &QuillClient, method: &Method, parts: RequestParts) -> Result<Self, Error> {
        let inherited = CallContext::current();
        let own = client.settings().timeout.map(Deadline::within);
        let asked = parts.deadline.or(own);
        let deadline = Deadline::earliest(asked, inherited.deadline);
        let mut call = client.new_call(method);
        call.metadata = parts.metadata;
        if let Some(trace_parent) = &inherited.trace_parent
            && call.metadata.get("traceparent").is_none()
        {
            // One that could not be sent on is not worth failing the call for.
            let _ = call.metadata.append("traceparent", trace_parent);
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
    async fn lease(&mut self) -> Result<Lease, Error> {
        let deadline = self.deadline.map(|deadline| deadline.instant().into());
        let leased = self.client.channel()?.lease(deadline).await;
        let lease = leased.map_err(|error| {
            if deadline.is_some_and(|deadline| tokio::time::Instant::now() >= deadline) {
                Error::deadline_exceeded(error.to_string()).with_source(error)
            } else {
                from_transport(error, Side::Client)
            }
        })?;
        self.call.leaves_on(lease.version())?;
        if let Some(deadline) = self.deadline {
            self.call.timeout = Some(left(deadline)?);
        }
        Ok(lease)
    }

    async fn run_one<Res>(
        mut self,
        messages: Messages,
        codec: impl Codec<Res>,
    ) -> Result<Response<Res>, Error> {
        let deadline = self.deadline;
        let lease = self.lease().await?;
        within(deadline, async move {
            let answer = self.begin(messages, lease).await?;
            let encoding = answer.encoding;
            let (message, trailers) = match answer.messages {
                AnswerMessages::Direct(mut receiver) => {
                    let received = receiver.one().await?;
                    (received.message, received.trailers)
                }
                AnswerMessages::Credited(credits) => {
                    let mut inbound = CreditedInbound::new(credits);
                    let message = inbound.one().await?;
                    (message, Pin::new(&mut inbound).take_trailers())
                }
            };
            let message = codec
                .decode(encoding.format, message, &encoding.limits)
                .map_err(malformed_answer)?;
            Ok(Response::from_parts(message, answer.metadata, trailers))
        })
        .await
    }

    async fn run_many<Res>(
        mut self,
        messages: Messages,
        codec: impl Codec<Res>,
    ) -> Result<Response<Streaming<Res>>, Error> {
        let lease = self.lease().await?;
        let answer = within(self.deadline, self.begin(messages, lease)).await?;
        let mut inbound: Pin<Box<dyn Inbound>> = match answer.messages {
            AnswerMessages::Direct(receiver) => Box::pin(DirectInbound::new(receiver)),
            AnswerMessages::Credited(credits) => Box::pin(CreditedInbound::new(credits)),
        };
        if let Some(deadline) = answer.deadline {
            let sleep = Box::pin(tokio::time::sleep_until(deadline.instant().into()));
            inbound = Box::pin(DeadlineInbound::new(inbound, sleep));
        }
        let stream = Streaming::new(inbound, codec, answer.encoding, malformed_answer);
        Ok(Response::from_parts(
            stream,
            answer.metadata,
            Metadata::new(),
        ))
    }

    /// Sends the request, and reads the answer's head.
    async fn begin(self, messages: Messages, lease: Lease) -> Result<Answer, Error> {
        let Self { call, deadline, .. } = self;
        let credits = call.credits().map(|window| Credits::new(window, None));
        let given_up = GivenUp::default();
        let sent = match (messages, &credits) {
            (Messages::One(message), None) => {
                let mut out = Out::new();
                let head = call.unary_request(&*message, &mut out)?;
                lease.send(head, WholeBody::new(out)).await
            }
            (messages, credits) => {
                let messages = match messages {
                    Messages::One(message) => Box::pin(UnaryOutbound::new(message)),
                    Messages::Many(messages) => messages,
                };
                let encoder = call.encoder(Side::Client);
                let source = Source::Messages(messages);
                let mut body = SendBody::new(encoder, Out::new(), source, Side::Client)
                    .with_given_up(given_up.clone());
                if let Some(credits) = credits {
                    body = body.with_credits(credits.clone());
                }
                lease.send(call.request(), body).await
            }
        };
        let (head, body) =
            sent.map_err(|error| given_up.or(from_transport(error, Side::Client)))?;
        let body = if head.status == 200 {
            body
        } else {
            RecvBody::new(ErrorBody::new(body, call.options.receive_bytes_max))
        };
        let mut decoder = call.decoder(Side::Client);
        let metadata = decoder.head(&head)?;
        let receiver = Receiver::new(decoder, body, Side::Client).with_given_up(given_up);
        Ok(Answer {
            metadata,
            messages: match credits {
                Some(credits) => {
                    credits.attach(receiver);
                    AnswerMessages::Credited(credits)
                }
                None => AnswerMessages::Direct(receiver),
            },
            encoding: MessageEncoding {
                format: call.format,
                limits: call.options.decode,
            },
            deadline,
        })
    }
}

/// The time until the deadline.
fn left(deadline: Deadline) -> Result<Duration, Error> {
    match deadline.remaining(Instant::now()) {
        Duration::ZERO => Err(deadline_exceeded()),
        left => Ok(left),
    }
}

/// Runs `work` until the deadline; dropping it gives the call up.
async fn within<T>(
    deadline: Option<Deadline>,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match deadline {
        None => work.await,
        Some(deadline) => {
            let deadline = deadline.instant().into();
            tokio::time::timeout_at(deadline, work)
                .await
                .unwrap_or_else(|_| Err(deadline_exceeded()))
                .map_err(|error| at_deadline(error, deadline))
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
