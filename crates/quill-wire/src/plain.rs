//! Refusals for HTTP that is no known protocol.

use quill_core::{HttpMethod, Idempotency, Method, RequestHead, ResponseHead};

use crate::negotiate::ACCEPT_POST;
use crate::out::Out;
use crate::protocol::Refusal;

/// Why plain HTTP can't call this method.
pub(crate) fn refusal(head: &RequestHead, method: &Method) -> Refusal {
    match head.method {
        HttpMethod::Post => Refusal::MediaType,
        _ => Refusal::HttpMethod(allowed(method)),
    }
}

/// The value of `allow` for this method.
pub(crate) fn allowed(method: &Method) -> &'static str {
    if method.idempotency() == Idempotency::NoSideEffects
        && method.kind() == quill_core::MethodKind::Unary
    {
        "GET, POST"
    } else {
        "POST"
    }
}

/// The status of a refusal and the one header it needs, for every protocol that
/// refuses by HTTP status.
pub(crate) fn refusal_head(refusal: Refusal) -> ResponseHead {
    let mut head = ResponseHead::new(match refusal {
        Refusal::UnknownPath => 404,
        Refusal::PathNotCanonical => 400,
        Refusal::HttpMethod(_) => 405,
        Refusal::MediaType => 415,
        Refusal::HttpVersion => 505,
    });
    match refusal {
        Refusal::HttpMethod(allow) => head.headers.append("allow", allow),
        Refusal::MediaType => head.headers.append("accept-post", ACCEPT_POST),
        _ => {}
    }
    head
}

pub(crate) fn refuse(refusal: Refusal, out: &mut Out) {
    let mut head = refusal_head(refusal);
    let text: &[u8] = match refusal {
        Refusal::UnknownPath => {
            b"there is no RPC method at this path; paths are /package.Service/Method\n"
        }
        Refusal::PathNotCanonical => {
            b"this path is not in its canonical form; paths are /package.Service/Method\n"
        }
        // `curl -d` alone names the type of a form, and shows nothing but the body.
        Refusal::MediaType => {
            b"no protocol has this content type; for JSON send 'content-type: application/json' \
              (the answer's accept-post names all that are known)\n"
        }
        // RFC 9110 wants the header, which says all.
        Refusal::HttpMethod(_) => b"",
        Refusal::HttpVersion => b"this protocol needs HTTP/2\n",
    };
    if !text.is_empty() {
        head.headers
            .append("content-type", "text/plain; charset=utf-8");
        out.buffer().extend_from_slice(text);
    }
    out.put_head(head);
    out.end(None);
}
