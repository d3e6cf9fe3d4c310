//! One call being answered.

use std::borrow::Cow;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use quill_core::trace::TraceId;
use quill_core::{
    Budget, CallContext, Cancellation, Deadline, Error, Incoming, MessageEncoding, Metadata,
    Outbound, Peer, Reply, Request, RequestParts, Response,
};
use quill_exchange::{
    CallGuard, CreditedInbound, Credits, DirectInbound, ExpiringOutbound, Receiver, SendBody,
    Source, StartFuture, UnaryOutbound, deadline_exceeded, named, panicked,
};
use quill_transport::{Body, HttpResponse, RecvBody};
use quill_wire::{Call, Encode, Encoder, Out, Side};
use tokio::time::Sleep;

use crate::dispatch::{AnswerFuture, Opened, ReplyBody, Shared, at_once, take_head, whole};
use crate::handler::HandlerFuture;
use crate::middleware::metrics::Unhandled;
use crate::uncompressed;

/// A call whose head was read: what its handler is given, and what it goes by.
pub(crate) struct Opening<'h> {
    opened: Cow<'h, Opened>,
    parts: RequestParts,
    terms: Terms,
}

impl<'h> Opening<'h> {
    /// A call of this peer's to one of the methods of `shared`.
    pub(crate) fn new(shared: &Shared, mut opened: Cow<'h, Opened>, peer: Peer) -> Self {
        let metadata = match &mut opened {
            // Shared with those that have it in common.
            Cow::Borrowed(opened) => opened.call.metadata.clone(),
            Cow::Owned(opened) => std::mem::take(&mut opened.call.metadata),
        };
        let call = &opened.call;
        let timeout = match (call.timeout, shared.allowed.timeout_max) {
            (Some(asked), Some(most)) => Some(asked.min(most)),
            (asked, most) => asked.or(most),
        };
        let deadline = timeout.map(Deadline::within);
        let cancellation = Cancellation::new();
        let mut parts = RequestParts::default();
        parts.metadata = metadata;
        parts.deadline = deadline;
        parts.method = Some(Arc::clone(&call.method));
        parts.route = opened.route;
        parts.previous_attempts = call.previous_attempts;
        parts.protocol = call.wire.name();
        parts.peer = Some(peer);
        parts.encoding = MessageEncoding {
            format: call.format,
            limits: call.options.decode,
        };
        parts.cancellation = Some(cancellation.clone());
        parts.draining = Some(shared.draining.clone());
        let trace = shared.metering.trace(opened.trace.as_ref());
        Self {
            opened,
            parts,
            terms: Terms {
                request_id: shared.metering.request_id(trace.as_deref()),
                context: CallContext { deadline, trace },
                timer: None,
                guard: Some(CallGuard(cancellation)),
            },
        }
    }

    /// Takes the one message of the call out of a body that has come, if it shows there.
    pub(crate) fn take_message(&self, body: &mut RecvBody) -> Option<Bytes> {
        let call = &self.opened.call;
        if call.method.kind().client_streams() || call.credits().is_some() {
            return None;
        }
        let at = call.message_at(body.as_whole()?)?;
        let mut message = body.take_whole(usize::MAX)?.data;
        message.advance(at);
        Some(message)
    }

    /// Has the handler of the call answer its one message, within the task of `cx`: most
    /// do at once, and then nothing of the call is kept anywhere.
    pub(crate) fn begin(
        self,
        shared: &Arc<Shared>,
        message: Bytes,
        cx: &mut Context<'_>,
    ) -> Result<HttpResponse<ReplyBody>, AnswerFuture> {
        let Self {
            opened,
            parts,
            mut terms,
        } = self;
        let request = Request::from_parts(Incoming::One(message), parts);
        let begun = terms.enter(|| {
            let mut handling = shared.stack.call(request, cx);
            match handling.as_mut().poll(cx) {
                Poll::Ready(result) => Ok(result),
                Poll::Pending => Err(handling),
            }
        });
        match begun {
            Ok(Ok(result)) => Ok(terms.reply(&opened.call, result)),
            Err(panicked) => Ok(terms.reply(&opened.call, Err(panicked))),
            Ok(Err(handling)) => Err(Box::pin(Exchange {
                call: opened.into_owned().call,
                work: Work {
                    shared: Arc::clone(shared),
                    receiver: None,
                    has_one: true,
                    parts: RequestParts::default(),
                    unhandled: Unhandled::default(),
                    handling: Some(handling),
                },
                terms,
            })),
        }
    }

    /// The answer of a call whose messages are to be received.
    pub(crate) fn answer(
        self,
        shared: &Arc<Shared>,
        body: RecvBody,
        budget: Option<Budget>,
    ) -> AnswerFuture {
        let call = self.opened.into_owned().call;
        // Another server's connections have no budgets; this server's holds them all.
        let budget = budget.unwrap_or_else(|| shared.allowed.budget.clone());
        let has_one = !call.method.kind().client_streams();
        let receiver = Receiver::new(call.decoder(Side::Server), body, Side::Server)
            .with_budget(Some(&budget))
            .with_timeout(shared.allowed.receive_timeout, has_one);
        let exchange = Box::new(Exchange {
            work: Work {
                shared: Arc::clone(shared),
                receiver: Some(receiver),
                has_one,
                unhandled: shared.metering.receiving(&self.parts, &self.terms.context),
                parts: self.parts,
                handling: None,
            },
            terms: self.terms,
            call,
        });
        match exchange.call.credits() {
            Some(window) => at_once(exchange.run_with_credits(window)),
            None => Box::into_pin(exchange),
        }
    }
}

/// What a call goes by: what calls of its handler inherit, when it must have ended, and
/// who is told of its end.
struct Terms {
    context: CallContext,
    /// What the call is called in its error.
    request_id: Option<TraceId>,
    /// Of the deadline, once something has to wait.
    timer: Option<Pin<Box<Sleep>>>,
    /// `None` once it goes with the body of the answer.
    guard: Option<CallGuard>,
}

impl Terms {
    /// Works for the call within its context; a panic is `internal`, and the process
    /// lives on.
    fn enter<T>(&mut self, work: impl FnOnce() -> T) -> Result<T, Error> {
        let context = &mut self.context;
        catch_unwind(AssertUnwindSafe(|| context.enter(work))).map_err(|_| panicked())
    }

    fn timer(&mut self) -> Option<&mut Pin<Box<Sleep>>> {
        let deadline = self.context.deadline?;
        let sleep = || Box::pin(tokio::time::sleep_until(deadline.instant().into()));
        Some(self.timer.get_or_insert_with(sleep))
    }

    fn take_timer(&mut self) -> Option<Pin<Box<Sleep>>> {
        self.timer();
        self.timer.take()
    }

    fn reply(
        &mut self,
        call: &Call,
        result: Result<Response<Reply>, Error>,
    ) -> HttpResponse<ReplyBody> {
        let mut encoder = call.encoder(Side::Server);
        let mut out = Out::new();
        match result.map(|response| uncompressed::heed(response).into_parts()) {
            Ok((Reply::One(message), metadata, trailers)) => {
                encoder.unary(Ok(&*message), &metadata, &trailers, &mut out);
            }
            Ok((Reply::Many(messages), metadata, trailers)) => {
                encoder.head(&metadata, &mut out);
                let head = take_head(&mut out);
                let guard = self.guard.take();
                let messages = match &guard {
                    Some(guard) => until(self.context.deadline, messages, &guard.0),
                    None => messages,
                };
                let body = SendBody::new(encoder, out, Source::Messages(messages), Side::Server)
                    .with_trailers(trailers)
                    .with_deadline(self.take_timer())
                    .with_request_id(self.request_id)
                    .with_context(std::mem::take(&mut self.context), guard);
                return HttpResponse {
                    head,
                    body: ReplyBody::Stream(Box::new(body)),
                };
            }
            Err(error) => {
                let error = named(error, self.request_id);
                let streams = call.method.kind().server_streams();
                write_failure(streams, &mut encoder, &error, &mut out);
            }
        }
        whole(out)
    }
}

/// A call being answered: a future of its answer that works on the call where it lies,
/// since what moves it about costs more than it does.
struct Exchange {
    call: Call,
    work: Work,
    terms: Terms,
}

impl Exchange {
    /// Runs a call's work: within its context, until its deadline.
    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<Reply>, Error>> {
        let Self { work, terms, .. } = self;
        match terms.enter(|| work.poll(cx)) {
            Ok(Poll::Ready(result)) => return Poll::Ready(result),
            Ok(Poll::Pending) => {}
            Err(panicked) => return Poll::Ready(Err(panicked)),
        }
        match terms.timer() {
            Some(timer) => timer.as_mut().poll(cx).map(|()| Err(deadline_exceeded())),
            None => Poll::Pending,
        }
    }

    /// With credits the head leaves at once, since it carries the first credit.
    fn run_with_credits(self: Box<Self>, window: u32) -> HttpResponse<ReplyBody> {
        let Self {
            call,
            work,
            mut terms,
        } = *self;
        let Work {
            shared,
            receiver,
            has_one: one,
            parts,
            mut unhandled,
            ..
        } = work;
        let mut encoder = call.encoder(Side::Server);
        let mut out = Out::new();
        let credits = Credits::new(window, receiver);
        let mut inbound = CreditedInbound::new(credits.clone());
        let deadline_at = terms.context.deadline;
        let token = terms.guard.as_ref().map(|guard| guard.0.clone());
        let start: StartFuture = Box::pin(async move {
            let incoming = if one {
                let one = inbound.one().await;
                Incoming::One(one.inspect_err(|error| unhandled.ended(error))?)
            } else {
                Incoming::Many(Box::pin(inbound))
            };
            let request = Request::from_parts(incoming, parts);
            unhandled.reached();
            let response = shared.stack.handle(request).await?;
            let (reply, metadata, mut trailers) = uncompressed::heed(response).into_parts();
            trailers.extend(&metadata);
            let messages: Pin<Box<dyn Outbound>> = match reply {
                Reply::One(message) => Box::pin(UnaryOutbound::new(message)),
                Reply::Many(messages) => match &token {
                    Some(token) => until(deadline_at, messages, token),
                    None => messages,
                },
            };
            Ok((messages, trailers))
        });
        encoder.head(&Metadata::new(), &mut out);
        let head = take_head(&mut out);
        let body = SendBody::new(encoder, out, Source::Starting(start), Side::Server)
            .with_credits(credits)
            .with_deadline(terms.take_timer())
            .with_request_id(terms.request_id)
            .with_context(terms.context, terms.guard);
        HttpResponse {
            head,
            body: ReplyBody::Stream(Box::new(body)),
        }
    }
}

impl Future for Exchange {
    type Output = HttpResponse<ReplyBody>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(self.poll_work(cx));
        if let Err(error) = &result {
            self.work.unhandled.ended(error);
        }
        // What is left of the request, and of a handler that a deadline or a panic
        // ended, goes before the answer's head is made: on HTTP/1.1 that head says
        // whether the connection can take another request.
        self.work.receiver = None;
        self.work.handling = None;
        let Self { call, terms, .. } = &mut *self;
        Poll::Ready(terms.reply(call, result))
    }
}

/// What is done for a call: its message is received, then its handler runs.
struct Work {
    shared: Arc<Shared>,
    /// `None` once its messages are the handler's.
    receiver: Option<Receiver>,
    /// The call has one message, which the handler is given whole.
    has_one: bool,
    parts: RequestParts,
    unhandled: Unhandled,
    handling: Option<HandlerFuture>,
}

impl Work {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<Reply>, Error>> {
        loop {
            if let Some(handling) = &mut self.handling {
                return handling.as_mut().poll(cx);
            }
            let incoming = match &mut self.receiver {
                Some(one) if self.has_one => Incoming::One(ready!(one.poll_one(cx)?).message),
                many => match many.take() {
                    Some(many) => Incoming::Many(Box::pin(DirectInbound::new(many))),
                    None => {
                        let message = "a call's messages were taken before";
                        return Poll::Ready(Err(Error::internal(message)));
                    }
                },
            };
            let parts = std::mem::take(&mut self.parts);
            let request = Request::from_parts(incoming, parts);
            self.unhandled.reached();
            self.handling = Some(self.shared.stack.call(request, cx));
        }
    }
}

/// Messages that end at the call's deadline also while nobody reads them.
fn until(
    deadline: Option<Deadline>,
    messages: Pin<Box<dyn Outbound>>,
    token: &Cancellation,
) -> Pin<Box<dyn Outbound>> {
    match deadline {
        Some(deadline) => Box::pin(ExpiringOutbound::new(messages, deadline, token.clone())),
        None => messages,
    }
}

/// The answer of a call whose head was wrong.
pub(crate) fn fail(call: &Call, error: &Error) -> HttpResponse<ReplyBody> {
    let mut out = Out::new();
    let streams = call.method.kind().server_streams();
    write_failure(streams, &mut call.encoder(Side::Server), error, &mut out);
    whole(out)
}

fn write_failure(streams: bool, encoder: &mut Encoder, error: &Error, out: &mut Out) {
    let none = Metadata::new();
    if streams {
        encoder.end(Err(error), &none, out);
    } else {
        encoder.unary(Err(error), &none, &none, out);
    }
}
