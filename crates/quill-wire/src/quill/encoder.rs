//! Writing one side's half of a call.

use std::num::NonZeroU32;
use std::sync::Arc;

use quill_core::compression::Encoding;
use quill_core::{Error, Metadata, Outgoing};

use super::answer::Answer;
use super::credits::Ledger;
use super::media::{Shape, shape};
use super::{frames, metadata, squeeze};
use crate::message::{Packed, Packing};
use crate::out::Out;
use crate::protocol::{Call, Encode, Side};

/// Writes requests or answers, bare or in frames.
#[derive(Debug)]
pub(crate) struct QuillEncoder {
    /// The server's side only.
    answer: Option<Answer>,
    shape: Shape,
    packing: Packing,
    /// No METADATA, PROBLEM, COMPRESSED or DATA|END_STREAM: the reader knows none.
    is_dialect: bool,
    ledger: Option<Arc<Ledger>>,
    head_sent: bool,
    ended: bool,
    /// Server: leading metadata that came when the head had left already; it
    /// goes before the trailing one. Of a bare answer, all leading metadata
    /// until its message is there.
    leading: Metadata,
    /// The message of a bare answer that is written in steps.
    pending: Option<Packed>,
    has_message: bool,
}

impl QuillEncoder {
    pub(crate) fn new(call: &Call, side: Side) -> Self {
        let shape = shape(&call.method, side, call.credits.is_some());
        let mut packing = Packing::of(call);
        // The client's head has left by the time a message comes, so it can't
        // name the encoding of a bare body; `unary_request` can.
        if call.marks.is_dialect && shape == Shape::Framed
            || side == Side::Client && shape == Shape::Bare
        {
            packing.encoding = Encoding::Identity;
        }
        Self {
            answer: (side == Side::Server).then(|| Answer::of(call)),
            shape,
            packing,
            is_dialect: call.marks.is_dialect,
            ledger: call.credits.as_ref().and_then(super::Credits::ledger),
            head_sent: false,
            ended: false,
            leading: Metadata::new(),
            pending: None,
            has_message: false,
        }
    }

    /// One message in a frame, the last one or not.
    fn put_frame(
        &mut self,
        message: &dyn Outgoing,
        is_last: bool,
        out: &mut Out,
    ) -> Result<(), Error> {
        frames::put_message(&self.packing, message, is_last, out)?;
        if let Some(ledger) = &self.ledger {
            ledger.sent();
        }
        Ok(())
    }

    /// Client: all messages of the request, of which there is one.
    pub(super) fn put_request(
        &mut self,
        message: &dyn Outgoing,
        out: &mut Out,
    ) -> Result<(), Error> {
        self.put_frame(message, true, out)?;
        self.end_messages(out);
        Ok(())
    }

    /// Client: no message follows; grants may.
    fn end_messages(&mut self, out: &mut Out) {
        if self.ledger.as_ref().is_none_or(|ledger| ledger.is_off()) {
            self.ended = true;
            out.end(None);
        }
    }

    /// Writes the message of a bare answer and everything around it.
    fn bare_answer(
        &mut self,
        message: &dyn Outgoing,
        head: &Metadata,
        trailers: &Metadata,
        out: &mut Out,
    ) -> Result<(), Error> {
        let Some(answer) = &self.answer else {
            return Ok(());
        };
        let packing = &self.packing;
        let is_small = message
            .encoded_len(packing.format)
            .is_some_and(|len| len < packing.compress_bytes_min);
        let encoding = if is_small || !packing.may_compress() {
            frames::put_bare(packing, message, out)?;
            Encoding::Identity
        } else {
            let packed = squeeze::pack(packing, message)?;
            let encoding = packed_encoding(packing, &packed);
            out.put_bytes(packed.bytes);
            encoding
        };
        out.put_head(answer.bare(encoding, head, trailers));
        self.ended = true;
        out.end(None);
        Ok(())
    }

    /// Server: everything behind the last message of a stream that went well.
    fn end_well(&mut self, trailers: &Metadata, out: &mut Out) {
        if self.is_dialect {
            frames::put_end(out);
        } else {
            let mut all = std::mem::take(&mut self.leading);
            all.extend(trailers);
            let (block, fits) = metadata::block(&all);
            if let Err(error) = fits {
                let error = Error::resource_exhausted(error.to_string());
                self.end_badly(&error, &Metadata::new(), out);
                return;
            }
            frames::put_metadata(block, out);
            frames::put_end(out);
        }
        self.ended = true;
        out.end(None);
    }

    /// Server: the end of a stream that failed after its head.
    fn end_badly(&mut self, error: &Error, trailers: &Metadata, out: &mut Out) {
        if self.is_dialect {
            frames::put_cancel(out);
        } else if let Some(answer) = &self.answer {
            let mut all = std::mem::take(&mut self.leading);
            all.extend(trailers);
            all.extend(error.metadata());
            // The failure matters more than metadata that does not fit.
            let (block, _) = metadata::block(&all);
            frames::put_metadata(block, out);
            frames::put_problem(answer.document(error), out);
        }
        self.ended = true;
        out.end(None);
    }

    fn fail(&mut self, error: &Error, head: &Metadata, trailers: &Metadata, out: &mut Out) {
        if self.head_sent {
            self.leading.extend(head);
            self.end_badly(error, trailers, out);
        } else if let Some(answer) = &self.answer {
            answer.put_problem(error, head, trailers, out);
            self.ended = true;
        }
    }

    /// Server: the answer of a bare body that was written in steps.
    fn end_bare_answer(&mut self, trailers: &Metadata, out: &mut Out) {
        let leading = std::mem::take(&mut self.leading);
        match (self.pending.take(), &self.answer) {
            (Some(packed), Some(answer)) => {
                let encoding = packed_encoding(&self.packing, &packed);
                out.put_head(answer.bare(encoding, &leading, trailers));
                out.put_bytes(packed.bytes);
                self.ended = true;
                out.end(None);
            }
            _ => {
                let error = Error::internal("the answer of this method is one message, not none");
                self.fail(&error, &leading, trailers, out);
            }
        }
    }

    fn end_request(&mut self, result: Result<(), &Error>, out: &mut Out) {
        match (result, self.shape) {
            (Ok(()), Shape::Framed) => {
                frames::put_end(out);
                self.end_messages(out);
            }
            (Ok(()), Shape::Bare) => {
                self.ended = true;
                out.end(None);
            }
            (Err(_), Shape::Framed) => {
                self.ended = true;
                frames::put_cancel(out);
                out.end(None);
            }
            // An end here would make a whole message of a part; the transport
            // resets a half that is dropped without one.
            (Err(_), Shape::Bare) => self.ended = true,
        }
    }
}

fn packed_encoding(packing: &Packing, packed: &Packed) -> Encoding {
    if packed.compressed {
        packing.encoding
    } else {
        Encoding::Identity
    }
}

impl Encode for QuillEncoder {
    fn unary(
        &mut self,
        result: Result<&dyn Outgoing, &Error>,
        head: &Metadata,
        trailers: &Metadata,
        out: &mut Out,
    ) {
        if self.ended {
            return;
        }
        let written = match (result, self.shape) {
            (Err(error), _) => {
                self.fail(error, head, trailers, out);
                return;
            }
            (Ok(message), Shape::Bare) => self.bare_answer(message, head, trailers, out),
            (Ok(message), Shape::Framed) => {
                let is_last = trailers.is_empty() && self.leading.is_empty() && !self.is_dialect;
                // Leading metadata that comes too late goes with the trailing one.
                let is_last = is_last && (!self.head_sent || head.is_empty());
                let written = self.put_frame(message, is_last, out);
                if written.is_ok() {
                    self.head(head, out);
                    if is_last {
                        self.ended = true;
                        out.end(None);
                    } else {
                        self.end_well(trailers, out);
                    }
                }
                written
            }
        };
        if let Err(error) = written {
            self.fail(&error, head, trailers, out);
        }
    }

    fn head(&mut self, metadata: &Metadata, out: &mut Out) {
        let Some(answer) = &self.answer else {
            return;
        };
        if self.shape == Shape::Bare || self.head_sent {
            self.leading.extend(metadata);
            return;
        }
        out.put_head(answer.framed(metadata));
        self.head_sent = true;
    }

    fn message(&mut self, message: &dyn Outgoing, out: &mut Out) -> Result<(), Error> {
        if self.shape == Shape::Framed {
            return self.put_frame(message, false, out);
        }
        if self.has_message {
            return Err(Error::internal(
                "this side of the method sends one message, not more",
            ));
        }
        if self.answer.is_some() {
            self.pending = Some(squeeze::pack(&self.packing, message)?);
        } else {
            frames::put_bare(&self.packing, message, out)?;
        }
        self.has_message = true;
        Ok(())
    }

    fn end(&mut self, result: Result<(), &Error>, trailers: &Metadata, out: &mut Out) {
        if self.ended {
            return;
        }
        if self.answer.is_none() {
            return self.end_request(result, out);
        }
        match (result, self.shape) {
            (Ok(()), Shape::Framed) => {
                if !self.head_sent {
                    self.head(&Metadata::new(), out);
                }
                self.end_well(trailers, out);
            }
            (Ok(()), Shape::Bare) => self.end_bare_answer(trailers, out),
            (Err(error), _) => {
                let leading = match self.shape {
                    Shape::Bare => std::mem::take(&mut self.leading),
                    Shape::Framed => Metadata::new(),
                };
                self.fail(error, &leading, trailers, out);
            }
        }
    }

    fn grant(&mut self, messages: u32, out: &mut Out) {
        let (Some(ledger), Some(messages)) = (&self.ledger, NonZeroU32::new(messages)) else {
            return;
        };
        if self.ended || ledger.is_off() {
            return;
        }
        ledger.granted(messages.get());
        if self.answer.is_some() && !self.head_sent {
            self.head(&Metadata::new(), out);
        }
        frames::put_credit(messages, out);
    }

    fn credited(&mut self, messages: u32) {
        if let Some(ledger) = &self.ledger {
            ledger.credited(messages);
        }
    }

    fn may_send(&self) -> bool {
        self.ledger.as_ref().is_none_or(|ledger| ledger.may_send())
    }
}
