//! The path of a request, from its head to its answer.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use quill_core::{
    Budget, CallContext, Cancellation, Code, Deadline, Error, Incoming, MessageEncoding, Metadata,
    Outbound, Reply, Request, RequestParts, Response, ResponseHead,
};
use quill_exchange::{
    CallGuard, CreditedInbound, Credits, DirectInbound, ExpiringOutbound, Receiver, SendBody,
    Source, StartFuture, UnaryOutbound, WholeBody, deadline_exceeded, panicked,
};
use quill_transport::{Body, BoxBody, Chunk, HttpRequest, HttpResponse, Service, TransportError};
use quill_wire::{Call, Encode, Encoder, Out, Refusal, Side, Wire, WireOptions};
use tokio::time::Sleep;

use crate::handler::HandlerFuture;
use crate::middleware::metrics::Metering;
use crate::routes::Routes;
use crate::stack::Stack;

/// What answers paths that no service has: the rest of an HTTP server.
pub(crate) type Fallback = Arc<
    dyn Fn(HttpRequest) -> Pin<Box<dyn Future<Output = HttpResponse<BoxBody>> + Send>>
        + Send
        + Sync,
>;

/// Answers requests by the methods of a server: THE path of a request.
#[derive(Clone)]
pub(crate) struct Dispatch(Arc<Shared>);

struct Shared {
    routes: Arc<Routes>,
    stack: Arc<Stack>,
    options: Arc<WireOptions>,
    fallback: Option<Fallback>,
    allowed: Allowed,
    /// Fires when the server begins to drain.
    draining: Cancellation,
    metering: Metering,
}

/// What a server allows its callers, beside what the wire does.
pub(crate) struct Allowed {
    /// What their unfinished messages may hold.
    pub(crate) budget: Budget,
    /// How long they may stall.
    pub(crate) receive_timeout: Option<Duration>,
    /// How long a call may take.
    pub(crate) timeout_max: Option<Duration>,
}

impl Dispatch {
    pub(crate) fn new(
        routes: Arc<Routes>,
        stack: Stack,
        options: WireOptions,
        allowed: Allowed,
        draining: Cancellation,
        fallback: Option<Fallback>,
    ) -> Self {
        Self(Arc::new(Shared {
            routes,
            stack: Arc::new(stack),
            options: Arc::new(options),
            allowed,
            draining,
            fallback,
            metering: Metering::default(),
        }))
    }

    /// Counts what never reaches the stack. To be set before it is cloned.
    pub(crate) fn with_metering(mut self, metering: Metering) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.metering = metering;
        }
        self
    }
}

impl Service for Dispatch {
    type Body = ReplyBody;
    type Future = AnswerFuture;

    fn call(&self, request: HttpRequest) -> Self::Future {
        match self.0.open(request) {
            Ok(exchange) => exchange.answer(),
            Err(answer) => answer,
        }
    }
}

/// An answer to come.
type AnswerFuture = Pin<Box<dyn Future<Output = HttpResponse<ReplyBody>> + Send>>;

fn at_once(response: HttpResponse<ReplyBody>) -> AnswerFuture {
    Box::pin(std::future::ready(response))
}

/// The body of an answer.
pub enum ReplyBody {
    /// One that was there at once.
    Whole(WholeBody),
    /// A stream.
    Stream(Box<SendBody>),
    /// The fallback's.
    Other(BoxBody),
}

impl Shared {
    /// Opens the call that a request is; or its answer, where it is none.
    fn open(self: &Arc<Self>, request: HttpRequest) -> Result<Box<Exchange>, AnswerFuture> {
        let wire = Wire::recognise(&request.head);
        let Some((index, route)) = self.routes.find(request.head.path()) else {
            return Err(self.answer_elsewhere(wire, request));
        };
        let method = Arc::clone(&route.method);
        let HttpRequest {
            head,
            body,
            peer,
            budget,
        } = request;
        let (call, valid) = match wire.open(&head, method, Arc::clone(&self.options)) {
            Ok(opened) => opened,
            Err(refusal) => return Err(at_once(self.refuse(wire, refusal, Some(index)))),
        };
        // Another server's connections have no budgets; this server's holds them all.
        let budget = budget.unwrap_or_else(|| self.allowed.budget.clone());
        let is_whole_owed = !call.method.kind().client_streams();
        let receiver = Receiver::new(call.decoder(Side::Server), body, Side::Server)
            .with_budget(Some(&budget))
            .with_timeout(self.allowed.receive_timeout, is_whole_owed);
        let mut call = Box::new(Exchange::new(Arc::clone(self), call, index, receiver));
        call.work.parts.peer = Some(peer);
        match valid {
            Ok(()) => Ok(call),
            Err(error) => Err(at_once(call.fail(error))),
        }
    }

    fn answer_elsewhere(&self, wire: Wire, request: HttpRequest) -> AnswerFuture {
        if let Some(HttpResponse { head, body }) = self.metering.page(&request.head) {
            let body = ReplyBody::Other(Box::pin(body));
            return at_once(HttpResponse { head, body });
        }
        if let Some(fallback) = &self.fallback {
            let answer = fallback(request);
            return Box::pin(async move {
                let HttpResponse { head, body } = answer.await;
                HttpResponse {
                    head,
                    body: ReplyBody::Other(body),
                }
            });
        }
        let refusal = if is_canonical(request.head.path()) {
            Refusal::UnknownPath
        } else {
            Refusal::PathNotCanonical
        };
        at_once(self.refuse(wire, refusal, None))
    }

    /// Answers what is no call. It is counted by the code that comes closest.
    fn refuse(
        &self,
        wire: Wire,
        refusal: Refusal,
        route: Option<usize>,
    ) -> HttpResponse<ReplyBody> {
        let code = match refusal {
            Refusal::UnknownPath | Refusal::HttpVersion => Code::Unimplemented,
            Refusal::PathNotCanonical | Refusal::HttpMethod(_) | Refusal::MediaType => {
                Code::InvalidArgument
            }
        };
        self.metering.refused(route, code);
        let mut out = Out::new();
        wire.refuse(refusal, &mut out);
        whole(out)
    }
}

/// One call being answered: a future of its answer that works on the call where it
/// lies, since what moves it about costs more than it does.
struct Exchange {
    call: Call,
    work: Work,
    context: CallContext,
    deadline: Option<Pin<Box<Sleep>>>,
    /// `None` once it goes with the body of the answer.
    guard: Option<CallGuard>,
}

impl Exchange {
    fn new(shared: Arc<Shared>, mut call: Call, route: usize, receiver: Receiver) -> Self {
        let timeout = match (call.timeout, shared.allowed.timeout_max) {
            (Some(asked), Some(most)) => Some(asked.min(most)),
            (asked, most) => asked.or(most),
        };
        let deadline = timeout.map(Deadline::within);
        let cancellation = Cancellation::new();
        let mut parts = RequestParts::default();
        parts.metadata = std::mem::take(&mut call.metadata);
        parts.deadline = deadline;
        parts.method = Some(Arc::clone(&call.method));
        parts.route = route;
        parts.previous_attempts = call.previous_attempts;
        parts.encoding = MessageEncoding {
            format: call.format,
            limits: call.options.decode,
        };
        parts.cancellation = Some(cancellation.clone());
        parts.draining = Some(shared.draining.clone());
        let context = CallContext {
            deadline,
            trace_parent: parts.metadata.get("traceparent").map(Arc::from),
        };
        Self {
            work: Work {
                shared,
                receiver: Some(receiver),
                has_one: !call.method.kind().client_streams(),
                parts,
                handling: None,
            },
            deadline: deadline.map(|at| Box::pin(tokio::time::sleep_until(at.instant().into()))),
            guard: Some(CallGuard(cancellation)),
            call,
            context,
        }
    }

    fn answer(self: Box<Self>) -> AnswerFuture {
        match self.call.credits() {
            Some(window) => at_once(self.run_with_credits(window)),
            None => Box::into_pin(self),
        }
    }

    /// Runs a call's work: within its context, until its deadline; a panic is
    /// `internal`, and the process lives on.
    fn poll_work(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<Reply>, Error>> {
        let Self { work, context, .. } = self;
        let polled = catch_unwind(AssertUnwindSafe(|| context.enter(|| work.poll(cx))));
        match polled {
            Ok(Poll::Ready(result)) => return Poll::Ready(result),
            Ok(Poll::Pending) => {}
            Err(_) => return Poll::Ready(Err(panicked())),
        }
        match &mut self.deadline {
            Some(deadline) => deadline
                .as_mut()
                .poll(cx)
                .map(|()| Err(deadline_exceeded())),
            None => Poll::Pending,
        }
    }

    fn reply(&mut self, result: Result<Response<Reply>, Error>) -> HttpResponse<ReplyBody> {
        if let Err(error) = &result {
            self.work.note_refusal(error);
        }
        // What is left of the request, and of a handler that a deadline or a panic
        // ended, goes before the answer's head is made: on HTTP/1.1 that head says
        // whether the connection can take another request.
        self.work.receiver = None;
        self.work.handling = None;
        let mut encoder = self.call.encoder(Side::Server);
        let mut out = Out::new();
        match result.map(Response::into_parts) {
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
                    .with_deadline(self.deadline.take())
                    .with_context(std::mem::take(&mut self.context), guard);
                return HttpResponse {
                    head,
                    body: ReplyBody::Stream(Box::new(body)),
                };
            }
            Err(error) => {
                let streams = self.call.method.kind().server_streams();
                write_failure(streams, &mut encoder, &error, &mut out);
            }
        }
        whole(out)
    }

    /// With credits the head leaves at once, since it carries the first credit.
    fn run_with_credits(self: Box<Self>, window: u32) -> HttpResponse<ReplyBody> {
        let Self {
            call,
            work,
            context,
            deadline,
            guard,
        } = *self;
        let Work {
            shared,
            receiver,
            has_one: one,
            parts,
            ..
        } = work;
        let route = parts.route;
        let mut encoder = call.encoder(Side::Server);
        let mut out = Out::new();
        let credits = Credits::new(window, receiver);
        let mut inbound = CreditedInbound::new(credits.clone());
        let deadline_at = context.deadline;
        let token = guard.as_ref().map(|guard| guard.0.clone());
        let start: StartFuture = Box::pin(async move {
            let incoming = if one {
                let one = inbound.one().await;
                let refused = |error: &Error| shared.metering.refused(Some(route), error.code());
                Incoming::One(one.inspect_err(refused)?)
            } else {
                Incoming::Many(Box::pin(inbound))
            };
            let response = shared
                .stack
                .call(Request::from_parts(incoming, parts))
                .await?;
            let (reply, metadata, mut trailers) = response.into_parts();
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
            .with_deadline(deadline)
            .with_context(context, guard);
        HttpResponse {
            head,
            body: ReplyBody::Stream(Box::new(body)),
        }
    }

    /// Answers a call whose head was wrong.
    fn fail(mut self: Box<Self>, error: Error) -> HttpResponse<ReplyBody> {
        self.reply(Err(error))
    }
}

impl Future for Exchange {
    type Output = HttpResponse<ReplyBody>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(self.poll_work(cx));
        Poll::Ready(self.reply(result))
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
    handling: Option<HandlerFuture>,
}

impl Work {
    /// Counts a call that failed before it reached the stack.
    fn note_refusal(&self, error: &Error) {
        if self.handling.is_none() {
            let metering = &self.shared.metering;
            metering.refused(Some(self.parts.route), error.code());
        }
    }

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
            self.handling = Some(self.shared.stack.call(request));
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

fn write_failure(streams: bool, encoder: &mut Encoder, error: &Error, out: &mut Out) {
    let none = Metadata::new();
    if streams {
        encoder.end(Err(error), &none, out);
    } else {
        encoder.unary(Err(error), &none, &none, out);
    }
}

fn whole(mut out: Out) -> HttpResponse<ReplyBody> {
    HttpResponse {
        head: take_head(&mut out),
        body: ReplyBody::Whole(WholeBody::new(out)),
    }
}

/// Every encoder writes a head; should one not have, the server broke.
fn take_head(out: &mut Out) -> ResponseHead {
    out.take_head().unwrap_or_else(|| ResponseHead::new(500))
}

/// Whether a path is `/`, as the root's is in a browser, or could be that of a
/// method: no empty, dot or escaped part.
fn is_canonical(path: &str) -> bool {
    let Some(parts) = path.strip_prefix('/') else {
        return false;
    };
    let is_plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('%');
    parts.is_empty() || parts.split('/').all(is_plain)
}

impl Body for ReplyBody {
    fn poll_chunk(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_chunk(cx),
            Self::Stream(body) => Pin::new(&mut **body).poll_chunk(cx),
            Self::Other(body) => body.as_mut().poll_chunk(cx),
        }
    }

    fn is_waiting(&self) -> bool {
        // What is whole waits for nothing.
        matches!(self, Self::Stream(body) if body.is_waiting())
    }

    fn is_ended(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_ended(),
            Self::Stream(body) => body.is_ended(),
            Self::Other(body) => body.is_ended(),
        }
    }

    fn bytes_left(&self) -> Option<u64> {
        match self {
            Self::Whole(body) => body.bytes_left(),
            Self::Stream(body) => body.bytes_left(),
            Self::Other(body) => body.bytes_left(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_are_canonical() {
        for path in ["/", "/a.B/C", "/a", "/a/b/c"] {
            assert!(is_canonical(path), "{path}");
        }
        for path in [
            "", "a/b", "//", "//a/b", "/a/b/", "/a/./b", "/a/../b", "/a%2fb/C", "*",
        ] {
            assert!(!is_canonical(path), "{path}");
        }
    }
}
