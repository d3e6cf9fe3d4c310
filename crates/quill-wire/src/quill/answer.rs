//! The heads of a server's answers, and the problems among them.

use std::sync::Arc;

use quill_core::compression::Encoding;
use quill_core::{Error, Headers, Metadata, Method, ResponseHead};

use super::credits::{CREDITS, Credits};
use super::media::Media;
use super::problem::{self, Occurrence};
use super::{encoding, prism, status};
use crate::negotiate::PROBLEM_JSON;
use crate::out::Out;
use crate::protocol::{Call, Side, Wire};
use crate::{fields, retry_after};

/// What the heads of one call's answer say, whatever the answer is.
#[derive(Debug)]
pub(super) struct Answer {
    method: Arc<Method>,
    media: Media,
    /// The encoding that the messages of frames may be compressed with.
    frame_encoding: Encoding,
    credits: Option<u32>,
    selected_prism: Option<&'static str>,
    trace_id: Option<[u8; 32]>,
    /// To a GET, whose answers may be kept by caches.
    is_get: bool,
    bytes_max: usize,
}

impl Answer {
    pub(super) fn of(call: &Call) -> Self {
        let granted = call.credits.as_ref().filter(|credits| credits.works());
        Self {
            method: Arc::clone(&call.method),
            media: Media::of(call, Side::Server),
            frame_encoding: call.send,
            credits: granted.map(Credits::window),
            selected_prism: call.marks.selected_prism,
            trace_id: call.marks.trace_id,
            is_get: call.wire == Wire::QuillGet,
            bytes_max: call.options.send_bytes_max,
        }
    }

    /// The head of an answer whose one message is bare.
    pub(super) fn bare(
        &self,
        encoding: Encoding,
        metadata: &Metadata,
        trailers: &Metadata,
    ) -> ResponseHead {
        let mut head = self.start(200, self.media.name());
        if encoding != Encoding::Identity {
            head.headers.append(encoding::CONTENT, encoding.name());
        }
        if self.is_get {
            self.put_caching(metadata, &mut head.headers);
        }
        fields::put(metadata, &mut head.headers);
        fields::put_trailers(trailers, &mut head.headers);
        head
    }

    /// The head of an answer in frames.
    pub(super) fn framed(&self, metadata: &Metadata) -> ResponseHead {
        let mut head = self.start(200, self.media.name());
        if self.frame_encoding != Encoding::Identity && !self.media.is_dialect() {
            let name = self.frame_encoding.name();
            head.headers.append(encoding::FRAMES, name);
        }
        if let Some(granted) = self.credits {
            head.headers.append(CREDITS, granted.to_string());
        }
        fields::put(metadata, &mut head.headers);
        head
    }

    /// The whole answer of a call that failed before any head.
    pub(super) fn put_problem(
        &self,
        error: &Error,
        metadata: &Metadata,
        trailers: &Metadata,
        out: &mut Out,
    ) {
        let mut head = self.start(status::http_of_code(error.code()), PROBLEM_JSON);
        let headers = &mut head.headers;
        if self.is_get {
            headers.append("cache-control", "no-store");
        }
        retry_after::put_seconds(error, headers);
        fields::put(metadata, headers);
        fields::put(error.metadata(), headers);
        fields::put_trailers(trailers, headers);
        out.put_head(head);
        out.put_bytes(self.document(error).into());
        out.end(None);
    }

    /// The document of a failure in this call.
    pub(super) fn document(&self, error: &Error) -> Vec<u8> {
        let trace_id = self.trace_id.as_ref();
        let at = Occurrence {
            instance: self.method.path(),
            trace_id: trace_id.and_then(|id| std::str::from_utf8(id).ok()),
        };
        problem::encode(error, at, self.bytes_max)
    }

    fn start(&self, status: u16, content_type: &str) -> ResponseHead {
        let mut head = ResponseHead::new(status);
        head.headers.append("content-type", content_type);
        if let Some(profile) = self.selected_prism {
            head.headers.append(prism::SELECTED_PRISM, profile);
        }
        head
    }

    /// How long caches may keep the answer: the method's word, or the
    /// handler's, which alone can make it public.
    fn put_caching(&self, metadata: &Metadata, headers: &mut Headers) {
        headers.append("vary", "accept, prefer, accept-encoding");
        if metadata.all("cache-control").next().is_none() {
            let seconds = self.method.cache_ttl().unwrap_or_default().as_secs();
            headers.append("cache-control", format!("private, max-age={seconds}"));
        }
    }
}
