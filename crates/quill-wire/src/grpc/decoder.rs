//! Reads the other side's half of a call.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use quill_core::compression::Encoding;
use quill_core::{Error, Format, Headers, Metadata, ResponseHead};

use super::content_type::{self, ContentType};
use super::encodings::{self, ENCODING};
use super::retry;
use super::status;
use super::text::TextDecoder;
use super::web_trailers::{self, FLAG_TRAILERS, TRAILERS_BYTES_MAX};
use crate::envelope::{Envelope, EnvelopeDecoder, FLAG_COMPRESSED};
use crate::fields;
use crate::message;
use crate::protocol::{Call, Decode, Event, Side, Wire, WireOptions};

#[derive(Debug)]
pub(crate) struct GrpcDecoder {
    side: Side,
    web: bool,
    format: Format,
    options: Arc<WireOptions>,
    receive: Receive,
    text: Option<TextDecoder>,
    envelopes: EnvelopeDecoder,
    /// What was wrong with the text of the body, after what came before it.
    text_error: Option<Error>,
    answer: Answer,
    phase: Phase,
}

/// The encoding of compressed messages.
#[derive(Debug)]
enum Receive {
    Known(Encoding),
    /// One that we don't take: an error once a message has it, not before, so
    /// that a failed call's own status is not hidden.
    Refused(String),
}

/// What a client learns of an answer beside its messages.
#[derive(Debug, Default)]
struct Answer {
    http_status: u16,
    /// The head's metadata, which an error repeats.
    leading: Metadata,
    /// A head that holds a status: the only trailers, unless a body follows.
    head: Option<Headers>,
    trailers: Option<Headers>,
    has_messages: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Bytes may follow.
    Body,
    /// The body has ended; events may be left in it.
    Finished,
    /// The end, or an error, was given.
    Over,
}

impl GrpcDecoder {
    pub(crate) fn new(call: &Call, side: Side) -> Self {
        Self {
            side,
            web: call.wire != Wire::Grpc,
            format: call.format,
            options: Arc::clone(&call.options),
            receive: Receive::Known(call.receive),
            text: (call.wire == Wire::GrpcWeb { text: true }).then(TextDecoder::default),
            envelopes: EnvelopeDecoder::default(),
            text_error: None,
            answer: Answer::default(),
            phase: Phase::Body,
        }
    }

    fn advance(&mut self) -> Result<Option<Event>, Error> {
        let trailers_allowed = self.trailers_allowed();
        let message_bytes_max = self.options.receive_bytes_max;
        let envelope = self.envelopes.next_by(|flags| {
            if trailers_allowed && flags & FLAG_TRAILERS != 0 {
                TRAILERS_BYTES_MAX
            } else {
                message_bytes_max
            }
        })?;
        if let Some(envelope) = envelope {
            self.check_flags(envelope.flags)?;
            return self.open_envelope(envelope);
        }
        if let Some(error) = self.text_error.take() {
            return Err(error);
        }
        match self.phase {
            Phase::Finished => self.end().map(|end| Some(Event::End(end))),
            Phase::Body | Phase::Over => Ok(None),
        }
    }

    fn trailers_allowed(&self) -> bool {
        self.web && self.side == Side::Client
    }

    fn check_flags(&self, flags: u8) -> Result<(), Error> {
        if self.web && self.answer.trailers.is_some() {
            return Err(Error::internal("the body goes on after its trailers"));
        }
        let known = if self.trailers_allowed() {
            FLAG_COMPRESSED | FLAG_TRAILERS
        } else {
            FLAG_COMPRESSED
        };
        if flags & !known != 0 {
            return Err(Error::internal(format!(
                "a message has flags {flags:#04x}: allowed are 0x00 and, for a compressed one, 0x01"
            )));
        }
        if flags & FLAG_COMPRESSED == 0 {
            return Ok(());
        }
        match &self.receive {
            Receive::Known(Encoding::Identity) => Err(Error::internal(
                "a message is marked as compressed, but no grpc-encoding says how",
            )),
            Receive::Known(_) => Ok(()),
            Receive::Refused(refusal) => Err(Error::internal(refusal.clone())),
        }
    }

    fn open_envelope(&mut self, envelope: Envelope) -> Result<Option<Event>, Error> {
        if envelope.flags & FLAG_TRAILERS != 0 {
            let block = self.payload(envelope, TRAILERS_BYTES_MAX)?;
            self.answer.trailers = Some(web_trailers::parse(&block)?);
            // Only the end of the body shows that nothing follows.
            return self.advance();
        }
        self.answer.has_messages = true;
        let message = self.payload(envelope, self.options.receive_bytes_max)?;
        Ok(Some(Event::Message(message)))
    }

    fn payload(&self, envelope: Envelope, bytes_max: usize) -> Result<Bytes, Error> {
        match &self.receive {
            // Some senders compress nothing into nothing.
            Receive::Known(encoding)
                if envelope.flags & FLAG_COMPRESSED != 0 && !envelope.payload.is_empty() =>
            {
                message::unpack(*encoding, &envelope.payload, bytes_max, |text| {
                    Error::internal(text)
                })
            }
            _ => Ok(envelope.payload),
        }
    }

    /// The end of a body that was read to its end.
    fn end(&mut self) -> Result<Result<Metadata, Error>, Error> {
        let text_is_partial = self.text.as_ref().is_some_and(|text| text.held_bytes() > 0);
        let is_partial = text_is_partial || self.envelopes.is_partial();
        let end = match self.side {
            Side::Server => Ok(Metadata::new()),
            Side::Client => self.answer_end(),
        };
        match end {
            // The server's own error says more than that it stopped within a message.
            Ok(_) if is_partial => Err(Error::internal("the body ends inside a message")),
            end => Ok(end),
        }
    }

    fn answer_end(&mut self) -> Result<Metadata, Error> {
        let answer = std::mem::take(&mut self.answer);
        let trailers = answer.trailers.filter(|trailers| !trailers.is_empty());
        let result = match (&trailers, &answer.head) {
            (Some(trailers), _) if trailers.first(status::STATUS).is_some() => {
                status::read(trailers)
            }
            (None, Some(head)) if !answer.has_messages => status::read(head),
            _ if answer.http_status != 200 => Err(http_error(answer.http_status)),
            (Some(trailers), _) => status::read(trailers),
            (None, _) => Err(Error::internal("the answer ended without trailers")),
        };
        let (leading, last) = match (trailers, answer.head) {
            // The head was all there is: it counts as the trailers, too.
            (None, Some(head)) => (Metadata::new(), Some(head)),
            (trailers, _) => (answer.leading, trailers),
        };
        let mut metadata = match &result {
            Ok(()) => Metadata::new(),
            Err(_) => leading,
        };
        let malformed = match &last {
            Some(fields) => fields::receive_all(fields, &mut metadata),
            None => Ok(()),
        };
        match result {
            Ok(()) => {
                malformed.map_err(|junk| junk.into_error(Error::internal))?;
                Ok(metadata)
            }
            // Malformed metadata doesn't hide the status.
            Err(mut error) => {
                *error.received_metadata_mut() = metadata;
                if let Some(pushback) = last.as_ref().and_then(retry::pushback) {
                    error = error.with_pushback(pushback);
                }
                Err(error)
            }
        }
    }

    /// Checks that an answer is of this call's protocol and format.
    fn check_answer(&self, head: &ResponseHead) -> Result<ContentType, Error> {
        let content_type = content_type::read(&head.headers)
            .filter(|found| (found.wire == Wire::Grpc) != self.web);
        let Some(content_type) = content_type else {
            let mut error = match head.headers.first(status::STATUS) {
                // A status wins over whatever else is wrong with its answer.
                Some(status) if status != b"0" => status::read(&head.headers).err(),
                _ => None,
            }
            .unwrap_or_else(|| http_error_of(head));
            // Without what is malformed in it: the answer is an error already.
            let _ = fields::receive_all(&head.headers, error.received_metadata_mut());
            return Err(error);
        };
        let is_trailers_only = head.headers.first(status::STATUS).is_some();
        if content_type.format != Some(self.format) && !is_trailers_only {
            return Err(Error::internal(format!(
                "the server answered with content-type {:?} to a request in {}",
                head.headers
                    .text(content_type::CONTENT_TYPE)
                    .unwrap_or_default(),
                self.format.name()
            )));
        }
        Ok(content_type)
    }
}

fn http_error(status: u16) -> Error {
    Error::new(
        status::code_of_http(status),
        format!("the server answered HTTP {status} without a grpc-status"),
    )
}

fn http_error_of(head: &ResponseHead) -> Error {
    let status = head.status;
    let content_type = head
        .headers
        .first(content_type::CONTENT_TYPE)
        .unwrap_or_default();
    Error::new(
        status::code_of_http(status),
        format!(
            "the server answered HTTP {status} with content-type {:?}, which is not the protocol of the call",
            content_type.escape_ascii().to_string()
        ),
    )
}

impl Decode for GrpcDecoder {
    fn head(&mut self, head: &ResponseHead) -> Result<Metadata, Error> {
        let content_type = self.check_answer(head)?;
        // The server decides, whichever of the two forms was asked for.
        self.text = (content_type.wire == Wire::GrpcWeb { text: true }).then(TextDecoder::default);
        self.answer.http_status = head.status;
        if let Some(name) = head.headers.first(ENCODING) {
            self.receive = match encodings::accepted(name, &self.options.accept) {
                Some(encoding) => Receive::Known(encoding),
                None => Receive::Refused(encodings::refusal(name, &self.options.accept)),
            };
        }
        let mut leading = Metadata::new();
        let well_formed = fields::receive_all(&head.headers, &mut leading);
        if head.headers.first(status::STATUS).is_some() {
            // What is malformed comes with the end, not to hide the status.
            self.answer.head = Some(head.headers.clone());
        } else {
            well_formed.map_err(|junk| junk.into_error(Error::internal))?;
        }
        self.answer.leading = leading.clone();
        Ok(leading)
    }

    fn feed(&mut self, bytes: Bytes) {
        if self.phase != Phase::Body || self.text_error.is_some() {
            return;
        }
        let Some(text) = &mut self.text else {
            return self.envelopes.feed(bytes);
        };
        let mut decoded = BytesMut::new();
        self.text_error = text.decode(&bytes, &mut decoded).err();
        self.envelopes.feed(decoded.freeze());
    }

    fn finish(&mut self, trailers: Option<Headers>) {
        if self.phase != Phase::Body {
            return;
        }
        self.phase = Phase::Finished;
        if self.side == Side::Client && !self.web {
            self.answer.trailers = trailers;
        }
    }

    fn next(&mut self) -> Result<Option<Event>, Error> {
        if self.phase == Phase::Over {
            return Ok(None);
        }
        let next = self.advance();
        if matches!(next, Err(_) | Ok(Some(Event::End(_)))) {
            self.phase = Phase::Over;
            self.envelopes = EnvelopeDecoder::default();
        }
        next
    }

    fn share_memory(&mut self) {
        self.envelopes.share_memory();
    }

    fn hold(&mut self) {
        self.envelopes.hold();
    }

    fn held_bytes(&self) -> usize {
        let text = self.text.as_ref().map_or(0, TextDecoder::held_bytes);
        self.envelopes.held_bytes().max(text)
    }
}
