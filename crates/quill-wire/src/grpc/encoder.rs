//! Writes one side's half of a call.

use std::sync::Arc;

use quill_core::compression::Encoding;
use quill_core::{Code, Error, Headers, Metadata, Outgoing, ResponseHead};

use super::content_type;
use super::encodings::{self, ACCEPT_ENCODING, ENCODING};
use super::{status, text, web_trailers};
use crate::message::Packing;
use crate::out::Out;
use crate::protocol::{Call, Encode, Side, Wire, WireOptions};
use crate::{envelope, fields};

#[derive(Debug)]
pub(crate) struct GrpcEncoder {
    side: Side,
    wire: Wire,
    packing: Packing,
    options: Arc<WireOptions>,
    wrote_head: bool,
}

impl GrpcEncoder {
    pub(crate) fn new(call: &Call, side: Side) -> Self {
        Self {
            side,
            wire: call.wire,
            packing: Packing::of(call),
            options: Arc::clone(&call.options),
            wrote_head: false,
        }
    }

    /// How to pack this message: one that may not be compressed, or is known to be too
    /// small for it, is encoded in place.
    fn packing_for(&self, message: &dyn Outgoing) -> Packing {
        let mut packing = self.packing;
        if !packing.may_compress() {
            return packing;
        }
        let len = message.encoded_len(packing.format);
        let is_small = len.is_some_and(|len| len < packing.compress_bytes_min);
        if is_small || !message.may_compress() {
            packing.encoding = Encoding::Identity;
        }
        packing
    }

    fn put_message(
        &self,
        packing: &Packing,
        message: &dyn Outgoing,
        out: &mut Out,
    ) -> Result<(), Error> {
        if self.wire != (Wire::GrpcWeb { text: true }) {
            return envelope::put_message(packing, message, out);
        }
        let mut plain = Out::new();
        envelope::put_message(packing, message, &mut plain)?;
        text::put(plain, out);
        Ok(())
    }

    fn new_head(&self) -> ResponseHead {
        ResponseHead {
            status: 200,
            headers: content_type::field(self.wire, self.packing.format),
        }
    }

    fn put_head(&mut self, packing: &Packing, metadata: &Metadata, out: &mut Out) {
        let mut head = self.new_head();
        if packing.may_compress() {
            head.headers.append(ENCODING, packing.encoding.name());
        }
        fields::put(metadata, &mut head.headers);
        out.put_head(head);
        self.wrote_head = true;
    }

    /// The answer's end after its head: the trailers.
    fn put_end(&self, result: Result<(), &Error>, trailers: &Metadata, out: &mut Out) {
        let mut fields = match result {
            Ok(()) => status::OK,
            Err(error) => {
                let mut fields = Headers::new();
                status::put(error, &mut fields);
                fields::put(error.metadata(), &mut fields);
                fields
            }
        };
        fields::put(trailers, &mut fields);
        match self.wire {
            Wire::GrpcWeb { text: false } => web_trailers::put(&fields, out.buffer()),
            Wire::GrpcWeb { text: true } => {
                let mut plain = Out::new();
                web_trailers::put(&fields, plain.buffer());
                text::put(plain, out);
            }
            _ => return out.end(Some(fields)),
        }
        out.end(None);
    }

    /// A failure before any head. gRPC says it all in the head; gRPC-Web in the
    /// body, since a page reads only those header fields that CORS exposes.
    fn put_failure(&mut self, error: &Error, head: &Metadata, trailers: &Metadata, out: &mut Out) {
        let mut answer = self.new_head();
        let fields = &mut answer.headers;
        // What tells a refused encoding from a missing method (`compression.md`).
        if error.code() == Code::Unimplemented
            && let Some(list) = encodings::accept_list(&self.options.accept)
        {
            fields.append(ACCEPT_ENCODING, list.as_bytes());
        }
        self.wrote_head = true;
        if self.wire == Wire::Grpc {
            status::put(error, fields);
            fields::put(head, fields);
            fields::put(error.metadata(), fields);
            fields::put(trailers, fields);
            out.put_head(answer);
            out.end(None);
        } else {
            fields::put(head, fields);
            out.put_head(answer);
            self.put_end(Err(error), trailers, out);
        }
    }
}

impl Encode for GrpcEncoder {
    fn unary(
        &mut self,
        result: Result<&dyn Outgoing, &Error>,
        head: &Metadata,
        trailers: &Metadata,
        out: &mut Out,
    ) {
        let message = match result {
            Ok(message) => message,
            Err(error) => return self.put_failure(error, head, trailers, out),
        };
        let packing = self.packing_for(message);
        match self.put_message(&packing, message, out) {
            Ok(()) => {
                self.put_head(&packing, head, out);
                self.put_end(Ok(()), trailers, out);
            }
            Err(error) => self.put_failure(&error, head, trailers, out),
        }
    }

    fn head(&mut self, metadata: &Metadata, out: &mut Out) {
        let packing = self.packing;
        self.put_head(&packing, metadata, out);
    }

    fn message(&mut self, message: &dyn Outgoing, out: &mut Out) -> Result<(), Error> {
        let packing = self.packing_for(message);
        self.put_message(&packing, message, out)
    }

    fn end(&mut self, result: Result<(), &Error>, trailers: &Metadata, out: &mut Out) {
        match (self.side, result) {
            (Side::Client, Ok(())) => out.end(None),
            // A client gives up by resetting the exchange; there is nothing to write.
            (Side::Client, Err(_)) => {}
            (Side::Server, Err(error)) if !self.wrote_head => {
                self.put_failure(error, &Metadata::new(), trailers, out);
            }
            (Side::Server, result) => {
                if !self.wrote_head {
                    self.head(&Metadata::new(), out);
                }
                self.put_end(result, trailers, out);
            }
        }
    }
}
