//! The path of a request, from its head to its answer.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use quill_core::compression::Encoding;
use quill_core::trace::TraceContext;
use quill_core::{Budget, Code, Draining, Error, ResponseHead, SharedHead};
use quill_exchange::{SendBody, WholeBody, named};
use quill_transport::{
    Body, BoxBody, Chunk, HttpRequest, HttpResponse, Service, TransportError, Whole,
};
use quill_wire::{Call, Out, Refusal, Wire, WireOptions};

use crate::exchange::{self, Opening};
use crate::middleware::metrics::Metering;
use crate::middleware::observe::Refused;
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

pub(crate) struct Shared {
    routes: Arc<Routes>,
    pub(crate) stack: Stack,
    options: Arc<WireOptions>,
    fallback: Option<Fallback>,
    pub(crate) allowed: Allowed,
    pub(crate) draining: Draining,
    pub(crate) metering: Metering,
    /// Whose answers are never compressed, by the number of the route.
    uncompressed: Vec<bool>,
}

/// What a request's head says: which of the routes it takes, as which call.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) route: usize,
    pub(crate) call: Call,
    /// Where in which trace the caller is.
    pub(crate) trace: Option<Arc<TraceContext>>,
}

/// Why a request is no call that can be handled.
enum Unopened {
    /// No service has its path.
    Unknown(Wire),
    /// Its protocol can't make it of the method with this number.
    Refused(Wire, Refusal, usize),
    /// Something in its head is wrong, for the method with this number.
    Wrong(Box<(Call, Error)>, usize),
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
        draining: Draining,
        fallback: Option<Fallback>,
    ) -> Self {
        Self(Arc::new(Shared {
            routes,
            stack,
            options: Arc::new(options),
            allowed,
            draining,
            fallback,
            metering: Metering::default(),
            uncompressed: Vec::new(),
        }))
    }

    /// Counts what never reaches the stack. To be set before it is cloned.
    pub(crate) fn with_metering(mut self, metering: Metering) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.metering = metering;
        }
        self
    }

    /// Compresses no answer of these routes. To be set before it is cloned.
    pub(crate) fn with_uncompressed(mut self, uncompressed: Vec<bool>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            shared.uncompressed = uncompressed;
        }
        self
    }
}

impl Service for Dispatch {
    type Body = ReplyBody;
    type Future = AnswerFuture;

    fn call(&self, request: HttpRequest) -> Self::Future {
        let head = request.head.clone();
        match self.0.open(&head) {
            Ok(opened) => {
                let HttpRequest {
                    body, peer, budget, ..
                } = request;
                Opening::new(&self.0, opened, peer).answer(&self.0, body, budget)
            }
            Err(unopened) => self.0.answer_unopened(unopened, request),
        }
    }

    fn begin(
        &self,
        request: HttpRequest,
        cx: &mut Context<'_>,
    ) -> Result<HttpResponse<ReplyBody>, AnswerFuture> {
        let head = request.head.clone();
        let mut answer = match self.0.open(&head) {
            Ok(opened) => {
                let HttpRequest {
                    mut body,
                    peer,
                    budget,
                    ..
                } = request;
                let opening = Opening::new(&self.0, opened, peer);
                match opening.take_message(&mut body) {
                    Some(message) => return opening.begin(&self.0, message, cx),
                    None => opening.answer(&self.0, body, budget),
                }
            }
            Err(unopened) => self.0.answer_unopened(unopened, request),
        };
        match answer.as_mut().poll(cx) {
            Poll::Ready(response) => Ok(response),
            Poll::Pending => Err(answer),
        }
    }
}

/// An answer to come.
pub(crate) type AnswerFuture = Pin<Box<dyn Future<Output = HttpResponse<ReplyBody>> + Send>>;

pub(crate) fn at_once(response: HttpResponse<ReplyBody>) -> AnswerFuture {
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
    /// Reads a request's head. What many have in common is read once.
    fn open<'h>(&self, head: &'h SharedHead) -> Result<Cow<'h, Opened>, Unopened> {
        if let Some(opened) = head.made::<Opened>()
            && Arc::ptr_eq(&opened.call.options, &self.options)
        {
            return Ok(Cow::Borrowed(opened));
        }
        let wire = Wire::recognise(head);
        let Some((index, route)) = self.routes.find(head.path()) else {
            return Err(Unopened::Unknown(wire));
        };
        let (method, options) = (Arc::clone(&route.method), Arc::clone(&self.options));
        let (mut call, valid) = match wire.open(head, method, options) {
            Ok(opened) => opened,
            Err(refusal) => return Err(Unopened::Refused(wire, refusal, index)),
        };
        if let Err(error) = valid {
            return Err(Unopened::Wrong(Box::new((call, error)), index));
        }
        if self.uncompressed.get(index) == Some(&true) {
            call.send = Encoding::Identity;
        }
        if head.is_kept() {
            call.metadata.share();
        }
        let opened = Opened {
            trace: TraceContext::from_metadata(&call.metadata).map(Arc::new),
            route: index,
            call,
        };
        if head.is_kept() {
            head.put(opened.clone());
        }
        Ok(Cow::Owned(opened))
    }

    fn answer_unopened(&self, unopened: Unopened, request: HttpRequest) -> AnswerFuture {
        match unopened {
            Unopened::Unknown(wire) => self.answer_elsewhere(wire, request),
            Unopened::Refused(wire, refusal, index) => {
                at_once(self.refuse(wire, refusal, Some(index), &request))
            }
            Unopened::Wrong(wrong, index) => {
                let (call, error) = *wrong;
                let error = self.wrong(&call, error, index, &request);
                // On HTTP/1.1, what is left of the request goes before the answer is made.
                drop(request);
                at_once(exchange::fail(&call, &error))
            }
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
        at_once(self.refuse(wire, refusal, None, &request))
    }

    /// Notes a call whose head is wrong, and gives its error what it is called by.
    fn wrong(&self, call: &Call, error: Error, route: usize, request: &HttpRequest) -> Error {
        let caller = TraceContext::from_metadata(&call.metadata).map(Arc::new);
        let trace = self.metering.trace(caller.as_ref());
        let refused = Refused {
            path: call.method.path(),
            protocol: call.wire.name(),
            peer: &request.peer,
            trace: trace.as_deref(),
            code: error.code(),
            message: Some(error.message()),
        };
        self.metering.refused(Some(route), &refused);
        named(error, self.metering.request_id(trace.as_deref()))
    }

    /// Answers what is no call. It is counted by the code that comes closest.
    fn refuse(
        &self,
        wire: Wire,
        refusal: Refusal,
        route: Option<usize>,
        request: &HttpRequest,
    ) -> HttpResponse<ReplyBody> {
        let code = match refusal {
            Refusal::UnknownPath | Refusal::HttpVersion => Code::Unimplemented,
            Refusal::PathNotCanonical | Refusal::HttpMethod(_) | Refusal::MediaType => {
                Code::InvalidArgument
            }
        };
        let refused = Refused {
            path: request.head.path(),
            protocol: wire.name(),
            peer: &request.peer,
            trace: None,
            code,
            message: None,
        };
        self.metering.refused(route, &refused);
        let mut out = Out::new();
        wire.refuse(refusal, &mut out);
        whole(out)
    }
}

pub(crate) fn whole(mut out: Out) -> HttpResponse<ReplyBody> {
    HttpResponse {
        head: take_head(&mut out),
        body: ReplyBody::Whole(WholeBody::new(out)),
    }
}

/// Every encoder writes a head; should one not have, the server broke.
pub(crate) fn take_head(out: &mut Out) -> ResponseHead {
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

    fn take_whole(&mut self, bytes_max: usize) -> Option<Whole> {
        match self {
            Self::Whole(body) => body.take_whole(bytes_max),
            Self::Stream(_) | Self::Other(_) => None,
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
