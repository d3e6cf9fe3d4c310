//! Reading one side's half of a call.

mod answer;
mod bare;
mod framed;

use bytes::Bytes;
use quill_core::{Error, Headers, Metadata, ResponseHead};

use self::answer::{Expected, Failure};
use self::bare::Bare;
use self::framed::Framed;
use super::media::{Shape, shape};
use crate::protocol::{Call, Decode, Event, Side};

/// Reads requests or answers, bare or in frames.
#[derive(Debug)]
pub(crate) struct QuillDecoder {
    body: Body,
    /// The client's side only, until the head came.
    expected: Option<Expected>,
    /// Trailing metadata as far as it came.
    trailers: Metadata,
}

/// What the body is read as.
#[derive(Debug)]
enum Body {
    Bare(Bare),
    Framed(Box<Framed>),
    /// Client: an answer that failed before it had a body of its own.
    Failure(Failure),
}

/// Whose fault it is that received bytes are not what they should be: the
/// caller's for a request, the server's for an answer.
fn at_fault(side: Side) -> fn(String) -> Error {
    match side {
        Side::Server => Error::invalid_argument,
        Side::Client => Error::internal,
    }
}

impl QuillDecoder {
    pub(crate) fn new(call: &Call, side: Side) -> Self {
        let sender = match side {
            Side::Server => Side::Client,
            Side::Client => Side::Server,
        };
        let shape = shape(&call.method, sender, call.credits.is_some());
        let body = match shape {
            Shape::Bare => Body::Bare(Bare::of(call, side)),
            Shape::Framed => Body::Framed(Box::new(Framed::of(call, side))),
        };
        Self {
            body,
            expected: (side == Side::Client).then(|| Expected::of(call, shape)),
            trailers: Metadata::new(),
        }
    }
}

impl Decode for QuillDecoder {
    fn head(&mut self, head: &ResponseHead) -> Result<Metadata, Error> {
        let Some(expected) = self.expected.take() else {
            return Ok(Metadata::new());
        };
        if let Some(failure) = expected.failure(head) {
            let leading = failure.leading();
            self.body = Body::Failure(failure);
            return Ok(leading);
        }
        let read = expected.read(head)?;
        match &mut self.body {
            Body::Bare(bare) => bare.encoding = read.encoding,
            Body::Framed(framed) => {
                framed.answered(read.encoding, read.granted, &read.metadata);
            }
            Body::Failure(_) => {}
        }
        self.trailers = read.trailers;
        Ok(read.metadata)
    }

    fn feed(&mut self, bytes: Bytes) {
        match &mut self.body {
            Body::Bare(bare) => bare.feed(bytes),
            Body::Framed(framed) => framed.feed(bytes),
            Body::Failure(failure) => failure.feed(bytes),
        }
    }

    fn finish(&mut self, _: Option<Headers>) {
        match &mut self.body {
            Body::Bare(bare) => bare.is_whole = true,
            Body::Framed(framed) => framed.finish(),
            Body::Failure(failure) => failure.is_whole = true,
        }
    }

    fn next(&mut self) -> Result<Option<Event>, Error> {
        match &mut self.body {
            Body::Bare(bare) => bare.next(&mut self.trailers),
            Body::Framed(framed) => framed.next(&mut self.trailers),
            Body::Failure(failure) => Ok(failure.next()),
        }
    }

    fn share_memory(&mut self) {
        if let Body::Framed(framed) = &mut self.body {
            framed.share_memory();
        }
    }

    fn hold(&mut self) {
        match &mut self.body {
            Body::Bare(bare) => bare.hold(),
            Body::Framed(framed) => framed.hold(),
            Body::Failure(failure) => failure.hold(),
        }
    }

    fn held_bytes(&self) -> usize {
        match &self.body {
            Body::Bare(bare) => bare.held_bytes(),
            Body::Framed(framed) => framed.held_bytes(),
            Body::Failure(failure) => failure.held_bytes(),
        }
    }
}
