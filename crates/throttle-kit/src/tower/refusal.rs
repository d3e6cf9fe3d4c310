//! What a refused request is answered.

use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Response, StatusCode};

use super::key::RequestHead;
use crate::decision::{Decision, Outcome};

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalReason {
    /// The limit is reached, or the request costs more than it ever allows.
    Limited,
    /// It is not known whom to limit, and that is the server's fault.
    ClientUnknown,
    /// It is not known whom to limit: the request lacks what it is limited by.
    KeyMissing,
}

/// A refusal, for whoever writes its answer.
#[derive(Debug)]
pub struct Refusal<'a> {
    /// Why.
    pub reason: RefusalReason,
    /// The decision, if there was one.
    pub decision: Option<&'a Decision>,
    /// The request.
    pub request: RequestHead<'a>,
}

impl Refusal<'_> {
    /// 429, 503 or 400.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        match self.reason {
            RefusalReason::Limited => StatusCode::TOO_MANY_REQUESTS,
            RefusalReason::ClientUnknown => StatusCode::SERVICE_UNAVAILABLE,
            RefusalReason::KeyMissing => StatusCode::BAD_REQUEST,
        }
    }

    /// The answer of a gRPC server, if this is a gRPC request: it needs the
    /// status in headers and no body.
    #[must_use]
    pub fn grpc_response<B: Default>(&self) -> Option<Response<B>> {
        let content_type = self.request.headers.get(CONTENT_TYPE)?;
        if !content_type.as_bytes().starts_with(b"application/grpc") {
            return None;
        }
        let (code, message) = match self.reason {
            RefusalReason::Limited => ("8", "rate limit exceeded"),
            RefusalReason::ClientUnknown => ("14", "the client's address is unknown"),
            RefusalReason::KeyMissing => ("3", "the request lacks what it is limited by"),
        };
        let mut response = Response::new(B::default());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, content_type.clone());
        headers.insert(GRPC_STATUS, HeaderValue::from_static(code));
        headers.insert(GRPC_MESSAGE, HeaderValue::from_static(message));
        if let Some(pushback) = self.decision.and_then(pushback_ms) {
            headers.insert(GRPC_PUSHBACK, pushback);
        }
        Some(response)
    }
}

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// When a client may retry by itself (gRFC A6); negative for never.
const GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

fn pushback_ms(decision: &Decision) -> Option<HeaderValue> {
    if decision.outcome() == Outcome::InsufficientCapacity {
        return Some(HeaderValue::from_static("-1"));
    }
    // gRFC A6 reads it as an int32.
    let wait_ms = decision.retry_after()?.as_nanos().div_ceil(1_000_000);
    Some(HeaderValue::from(wait_ms.min(i32::MAX as u128) as u64))
}

/// Writes the answer to a refusal; the layer adds the headers of the limit and
/// `Retry-After`. A function of the refusal is one.
pub trait Refuse<ResBody>: Send + Sync + 'static {
    /// The answer.
    fn refuse(&self, refusal: &Refusal<'_>) -> Response<ResBody>;
}

impl<ResBody, F> Refuse<ResBody> for F
where
    F: Fn(&Refusal<'_>) -> Response<ResBody> + Send + Sync + 'static,
{
    fn refuse(&self, refusal: &Refusal<'_>) -> Response<ResBody> {
        self(refusal)
    }
}

/// The status and an empty body; to a gRPC request, a gRPC answer.
#[derive(Debug, Clone, Copy, Default)]
pub struct StandardRefusal;

impl<ResBody: Default> Refuse<ResBody> for StandardRefusal {
    fn refuse(&self, refusal: &Refusal<'_>) -> Response<ResBody> {
        refusal.grpc_response().unwrap_or_else(|| {
            let mut response = Response::new(ResBody::default());
            *response.status_mut() = refusal.status();
            response
        })
    }
}
