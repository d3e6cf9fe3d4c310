//! Each protocol's part of the seam, chosen by the variant of [`Wire`].

use std::sync::Arc;

use bytes::Bytes;
use quill_core::compression::Encoding;
use quill_core::{Error, Headers, Metadata, Method, Outgoing, RequestHead, ResponseHead};

use crate::out::Out;
use crate::protocol::{Call, Decode, Encode, Event, Refusal, Side, Wire, WireOptions};
use crate::{connect, envelope, grpc, negotiate, plain, quill};

/// What a head opens: always a call, so that a refusal of what the head says
/// can be written in the caller's own protocol; and whether it may go on.
pub type Opened = (Call, Result<(), Error>);

impl Wire {
    /// Which protocol a request speaks, by its HTTP method, content type and
    /// query alone: an unknown path must be refused in the caller's protocol.
    #[must_use]
    pub fn recognise(head: &RequestHead) -> Wire {
        negotiate::recognise(head)
    }

    /// Reads the head of a request for `method`.
    ///
    /// # Errors
    /// A request that this protocol can't make of this method; answer it by
    /// [`refuse`](Self::refuse).
    pub fn open(
        self,
        head: &RequestHead,
        method: Arc<Method>,
        options: Arc<WireOptions>,
    ) -> Result<Opened, Refusal> {
        match self {
            Wire::Quill | Wire::QuillGet => quill::open(head, method, options),
            Wire::PlainHttp => Err(plain::refusal(head, &method)),
            Wire::Grpc | Wire::GrpcWeb { .. } => grpc::open(self, head, method, options),
            Wire::ConnectUnary if method.kind() != quill_core::MethodKind::Unary => {
                quill::open(head, method, options)
            }
            Wire::ConnectUnary | Wire::ConnectGet => {
                connect::unary::open(self, head, method, options)
            }
            Wire::ConnectStream => connect::stream::open(head, method, options),
        }
    }

    /// Writes the whole answer to a request that never became a call.
    pub fn refuse(self, refusal: Refusal, out: &mut Out) {
        match self {
            Wire::Quill | Wire::QuillGet => quill::refuse(refusal, out),
            Wire::PlainHttp => plain::refuse(refusal, out),
            Wire::Grpc | Wire::GrpcWeb { .. } => grpc::refuse(self, refusal, out),
            Wire::ConnectUnary | Wire::ConnectGet | Wire::ConnectStream => {
                connect::refuse(refusal, out);
            }
        }
    }
}

impl Call {
    /// Client: the head of the request, for a call whose body follows through
    /// the [`encoder`](Self::encoder).
    #[must_use]
    pub fn request(&self) -> RequestHead {
        match self.wire {
            Wire::Quill | Wire::QuillGet => quill::request(self),
            Wire::Grpc | Wire::GrpcWeb { .. } => grpc::request(self),
            Wire::ConnectUnary | Wire::ConnectGet => connect::unary::request(self),
            Wire::ConnectStream => connect::stream::request(self),
            Wire::PlainHttp => RequestHead::post(self.method.path()),
        }
    }

    /// Client: the whole request of a call with one request message: the head
    /// is returned, the body and its end are written to `out`.
    ///
    /// # Errors
    /// A message that can't be encoded or is over the limit.
    pub fn unary_request(
        &self,
        message: &dyn Outgoing,
        out: &mut Out,
    ) -> Result<RequestHead, Error> {
        match self.wire {
            Wire::ConnectUnary | Wire::ConnectGet => {
                connect::unary::unary_request(self, message, out)
            }
            Wire::Quill | Wire::QuillGet => quill::unary_request(self, message, out),
            _ => {
                let mut encoder = self.encoder(Side::Client);
                encoder.message(message, out)?;
                encoder.end(Ok(()), &Metadata::new(), out);
                Ok(self.request())
            }
        }
    }

    /// Where the only message of a request begins in `body`, its whole body, if that can
    /// be told at a glance: it is plain, and within the limits. For any other a
    /// [`decoder`](Self::decoder) has to be asked.
    #[must_use]
    pub fn message_at(&self, body: &[u8]) -> Option<usize> {
        let at = match self.wire {
            Wire::Grpc => envelope::plain_payload_at(body)?,
            Wire::ConnectUnary if self.receive == Encoding::Identity => 0,
            _ => return None,
        };
        (body.len() <= self.options.receive_bytes_max.saturating_add(at)).then_some(at)
    }

    /// What writes this side's half.
    #[must_use]
    pub fn encoder(&self, side: Side) -> Encoder {
        Encoder(match self.wire {
            Wire::Quill | Wire::QuillGet => {
                EncoderKind::Quill(quill::QuillEncoder::new(self, side))
            }
            Wire::Grpc | Wire::GrpcWeb { .. } => {
                EncoderKind::Grpc(grpc::GrpcEncoder::new(self, side))
            }
            Wire::ConnectStream => {
                EncoderKind::ConnectStream(connect::stream::StreamEncoder::new(self, side))
            }
            Wire::ConnectUnary | Wire::ConnectGet | Wire::PlainHttp => {
                EncoderKind::ConnectUnary(connect::unary::UnaryEncoder::new(self, side))
            }
        })
    }

    /// What reads the other side's half.
    #[must_use]
    pub fn decoder(&self, side: Side) -> Decoder {
        Decoder(match self.wire {
            Wire::Quill | Wire::QuillGet => {
                DecoderKind::Quill(quill::QuillDecoder::new(self, side))
            }
            Wire::Grpc | Wire::GrpcWeb { .. } => {
                DecoderKind::Grpc(grpc::GrpcDecoder::new(self, side))
            }
            Wire::ConnectStream => {
                DecoderKind::ConnectStream(connect::stream::StreamDecoder::new(self, side))
            }
            Wire::ConnectUnary | Wire::ConnectGet | Wire::PlainHttp => {
                DecoderKind::ConnectUnary(connect::unary::UnaryDecoder::new(self, side))
            }
        })
    }
}

/// Writes one side's half of a call, in whichever protocol the call has.
#[derive(Debug)]
pub struct Encoder(EncoderKind);

#[derive(Debug)]
enum EncoderKind {
    Quill(quill::QuillEncoder),
    Grpc(grpc::GrpcEncoder),
    ConnectUnary(connect::unary::UnaryEncoder),
    ConnectStream(connect::stream::StreamEncoder),
}

/// Reads the other side's half of a call, in whichever protocol the call has.
#[derive(Debug)]
pub struct Decoder(DecoderKind);

#[derive(Debug)]
enum DecoderKind {
    Quill(quill::QuillDecoder),
    Grpc(grpc::GrpcDecoder),
    ConnectUnary(connect::unary::UnaryDecoder),
    ConnectStream(connect::stream::StreamDecoder),
}

macro_rules! each {
    ($kind:ident, $value:expr, $inner:ident => $call:expr) => {
        match $value {
            $kind::Quill($inner) => $call,
            $kind::Grpc($inner) => $call,
            $kind::ConnectUnary($inner) => $call,
            $kind::ConnectStream($inner) => $call,
        }
    };
}

impl Encode for Encoder {
    fn unary(
        &mut self,
        result: Result<&dyn Outgoing, &Error>,
        head: &Metadata,
        trailers: &Metadata,
        out: &mut Out,
    ) {
        each!(EncoderKind, &mut self.0, e => e.unary(result, head, trailers, out));
    }

    fn head(&mut self, metadata: &Metadata, out: &mut Out) {
        each!(EncoderKind, &mut self.0, e => e.head(metadata, out));
    }

    fn message(&mut self, message: &dyn Outgoing, out: &mut Out) -> Result<(), Error> {
        each!(EncoderKind, &mut self.0, e => e.message(message, out))
    }

    fn end(&mut self, result: Result<(), &Error>, trailers: &Metadata, out: &mut Out) {
        each!(EncoderKind, &mut self.0, e => e.end(result, trailers, out));
    }

    fn grant(&mut self, messages: u32, out: &mut Out) {
        each!(EncoderKind, &mut self.0, e => e.grant(messages, out));
    }

    fn credited(&mut self, messages: u32) {
        each!(EncoderKind, &mut self.0, e => e.credited(messages));
    }

    fn may_send(&self) -> bool {
        each!(EncoderKind, &self.0, e => e.may_send())
    }
}

impl Decode for Decoder {
    fn head(&mut self, head: &ResponseHead) -> Result<Metadata, Error> {
        each!(DecoderKind, &mut self.0, d => d.head(head))
    }

    fn feed(&mut self, bytes: Bytes) {
        each!(DecoderKind, &mut self.0, d => d.feed(bytes));
    }

    fn finish(&mut self, trailers: Option<Headers>) {
        each!(DecoderKind, &mut self.0, d => d.finish(trailers));
    }

    fn next(&mut self) -> Result<Option<Event>, Error> {
        each!(DecoderKind, &mut self.0, d => d.next())
    }

    fn share_memory(&mut self) {
        each!(DecoderKind, &mut self.0, d => d.share_memory());
    }

    fn hold(&mut self) {
        each!(DecoderKind, &mut self.0, d => d.hold());
    }

    fn held_bytes(&self) -> usize {
        each!(DecoderKind, &self.0, d => d.held_bytes())
    }
}
