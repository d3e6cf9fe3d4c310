//! The head of an answer, as a client reads it, and answers that failed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quill_core::compression::Encoding;
use quill_core::{Error, Format, Headers, Metadata, ResponseHead};

use super::super::credits::{self, CREDITS, CREDITS_DEFAULT};
use super::super::media::{Media, Shape};
use super::super::timeout::digits;
use super::super::{encoding, problem};
use crate::chunks::Chunks;
use crate::fields;
use crate::negotiate::{PROBLEM_JSON, media_type};
use crate::protocol::{Call, Event, WireOptions};

/// What a client expects of its answer.
#[derive(Debug)]
pub(super) struct Expected {
    shape: Shape,
    format: Format,
    options: Arc<WireOptions>,
}

/// What a head says of a good answer.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) encoding: Encoding,
    pub(super) granted: Option<u32>,
    pub(super) metadata: Metadata,
    pub(super) trailers: Metadata,
}

impl Expected {
    pub(super) fn of(call: &Call, shape: Shape) -> Self {
        Self {
            shape,
            format: call.format,
            options: Arc::clone(&call.options),
        }
    }

    /// The failure that this head begins; `None` for the head of a good answer.
    pub(super) fn failure(&self, head: &ResponseHead) -> Option<Failure> {
        let is_problem = media_type(&head.headers).eq_ignore_ascii_case(PROBLEM_JSON);
        (head.status != 200 || is_problem).then(|| Failure::new(head, is_problem, &self.options))
    }

    /// Reads the head of a good answer.
    ///
    /// # Errors
    /// `unknown` for a body that is not this protocol's, `internal` for a head
    /// that breaks it.
    pub(super) fn read(&self, head: &ResponseHead) -> Result<Read, Error> {
        let headers = &head.headers;
        let wanted = Media {
            shape: Some(self.shape),
            format: self.format,
        };
        let name = media_type(headers);
        if Media::from_name(name) != Some(wanted) {
            return Err(Error::unknown(format!(
                "the server answered with content type {name:?}; {:?} was expected",
                wanted.name()
            )));
        }
        let header = encoding::header(self.shape);
        let named = headers.first(header);
        let encoding = encoding::accepted(header, named, &self.options.accept)
            .map_err(|error| Error::internal(error.message().to_owned()))?;
        let (answer, well_formed) = fields::receive_answer(headers);
        well_formed.map_err(|junk| junk.into_error(Error::internal))?;
        Ok(Read {
            encoding,
            granted: granted(headers)?,
            metadata: answer.leading,
            trailers: answer.trailing,
        })
    }
}

fn granted(headers: &Headers) -> Result<Option<u32>, Error> {
    let Some(value) = headers.first(CREDITS) else {
        return Ok(None);
    };
    match credits::decode(value) {
        Some(granted) if granted >= CREDITS_DEFAULT => Ok(Some(granted)),
        _ => Err(Error::internal(format!(
            "the server's quill-credits must be a number of messages, {CREDITS_DEFAULT} or more"
        ))),
    }
}

/// An answer that failed before it had a body of its own: a problem document,
/// or whatever something on the way said.
#[derive(Debug)]
pub(super) struct Failure {
    /// The body has ended.
    pub(super) is_whole: bool,
    status: u16,
    is_problem: bool,
    encoding: Option<Encoding>,
    metadata: Metadata,
    trailers: Metadata,
    retry_after: Option<Duration>,
    chunks: Chunks,
    bytes_max: usize,
    delivered: bool,
}

impl Failure {
    fn new(head: &ResponseHead, is_problem: bool, options: &WireOptions) -> Self {
        let headers = &head.headers;
        let named = headers.first(encoding::CONTENT);
        // Metadata that can't be read does not hide the failure.
        let (answer, _) = fields::receive_answer(headers);
        let seconds = headers.first("retry-after").and_then(digits);
        Self {
            is_whole: false,
            status: head.status,
            is_problem,
            encoding: encoding::accepted(encoding::CONTENT, named, &options.accept).ok(),
            metadata: answer.leading,
            trailers: answer.trailing,
            retry_after: seconds.map(Duration::from_secs),
            chunks: Chunks::whole(options.receive_bytes_max),
            bytes_max: options.receive_bytes_max,
            delivered: false,
        }
    }

    pub(super) fn leading(&self) -> Metadata {
        self.metadata.clone()
    }

    /// Keeps a problem document; what is over the limit, or no document, is dropped.
    pub(super) fn feed(&mut self, bytes: Bytes) {
        if !self.is_problem {
            return;
        }
        if bytes.len() > self.bytes_max.saturating_sub(self.chunks.len()) {
            self.is_problem = false;
            self.chunks = Chunks::default();
            return;
        }
        self.chunks.push(bytes);
    }

    /// The failure: as soon as the document is whole, or at once where the head
    /// is all that counts.
    pub(super) fn next(&mut self) -> Option<Event> {
        if self.delivered || self.is_problem && !self.is_whole {
            return None;
        }
        self.delivered = true;
        let mut error = self.error();
        if error.retry_after().is_none()
            && let Some(delay) = self.retry_after
        {
            error = error.with_retry_after(delay);
        }
        error.received_metadata_mut().extend(&self.metadata);
        error.received_metadata_mut().extend(&self.trailers);
        Some(Event::End(Err(error)))
    }

    fn error(&mut self) -> Error {
        let bytes = self.chunks.take_all();
        let document = match self.encoding {
            _ if !self.is_problem => None,
            None => None,
            Some(Encoding::Identity) => Some(bytes),
            Some(encoding) => {
                quill_core::compression::decompress(encoding, &bytes, self.bytes_max).ok()
            }
        };
        document
            .and_then(|document| problem::decode(&document, Some(self.status)))
            .unwrap_or_else(|| problem::of_status(self.status))
    }

    pub(super) fn hold(&mut self) {
        self.chunks.hold();
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.chunks.held_bytes()
    }
}
