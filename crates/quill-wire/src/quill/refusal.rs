//! Answers to requests that never become a call.

use quill_core::Error;

use super::problem::{self, Occurrence};
use crate::negotiate::PROBLEM_JSON;
use crate::out::Out;
use crate::plain;
use crate::protocol::Refusal;

/// Writes the whole answer: a problem, or the one header that HTTP wants.
pub(crate) fn refuse(refusal: Refusal, out: &mut Out) {
    let mut head = plain::refusal_head(refusal);
    head.headers.append("cache-control", "no-store");
    let error = match refusal {
        Refusal::UnknownPath => Some(Error::unimplemented(
            "there is no method at this path; paths are /package.Service/Method",
        )),
        Refusal::PathNotCanonical => Some(Error::invalid_argument(
            "this path is not in its canonical form; paths are /package.Service/Method",
        )),
        Refusal::HttpVersion => Some(Error::unimplemented(
            "this method needs HTTP/2: its two halves overlap",
        )),
        // RFC 9110 wants their header, and clients of every kind want no body.
        Refusal::HttpMethod(_) | Refusal::MediaType => None,
    };
    if let Some(error) = error {
        head.headers.append("content-type", PROBLEM_JSON);
        let at = Occurrence::default();
        let document = problem::encode_with_status(&error, head.status, at, usize::MAX);
        out.put_bytes(document.into());
    }
    out.put_head(head);
    out.end(None);
}
