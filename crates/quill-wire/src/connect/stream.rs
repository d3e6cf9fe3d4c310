//! Streams: messages in envelopes, the end of an answer in one of its own, and
//! HTTP status 200 whatever happens.

use std::sync::Arc;

use bytes::Bytes;
use quill_core::compression::Encoding;
use quill_core::{
    Error, Format, Headers, HttpMethod, Metadata, Method, MethodKind, Outgoing, RequestHead,
    ResponseHead,
};

use crate::envelope::{self, Envelope, EnvelopeDecoder, FLAG_COMPRESSED};
use crate::message::{self, Packing};
use crate::negotiate;
use crate::out::Out;
use crate::protocol::{Call, Decode, Encode, Event, Refusal, Side, Wire, WireOptions};
use crate::wire::Opened;

use super::end_stream::{self, FLAG_END_STREAM};
use super::error::{DOCUMENT_BYTES_MAX, of_status};
use super::{lossy, timeout};
use crate::fields;

const CONTENT_TYPE_PREFIX: &str = "application/connect+";
const ENCODING: &str = "connect-content-encoding";
const ACCEPTED: &str = "connect-accept-encoding";

fn content_type(format: Format) -> &'static str {
    match format {
        Format::Proto => "application/connect+proto",
        Format::Json => "application/connect+json",
    }
}

/// Server: opens a call with a stream on at least one side.
pub(crate) fn open(
    head: &RequestHead,
    method: Arc<Method>,
    options: Arc<WireOptions>,
) -> Result<Opened, Refusal> {
    if head.method != HttpMethod::Post {
        return Err(Refusal::HttpMethod("POST"));
    }
    let format = match negotiate::media_type(&head.headers) {
        _ if method.kind() == MethodKind::Unary => return Err(Refusal::MediaType),
        name if name.eq_ignore_ascii_case(content_type(Format::Proto)) => Format::Proto,
        name if name.eq_ignore_ascii_case(content_type(Format::Json)) => Format::Json,
        _ => return Err(Refusal::MediaType),
    };
    let (mut call, received) = super::incoming(Wire::ConnectStream, head, method, format, options);
    let checked = read(&mut call, &head.headers);
    Ok((call, received.and(checked)))
}

fn read(call: &mut Call, headers: &Headers) -> Result<(), Error> {
    super::check_version(headers)?;
    call.timeout = timeout::read(headers)?;
    super::negotiate_encodings(
        call,
        lossy(headers, ENCODING).as_deref(),
        lossy(headers, ACCEPTED).as_deref(),
    )
}

/// Client: the head of a request.
pub(crate) fn request(call: &Call) -> RequestHead {
    let mut head = RequestHead::post(call.method.path());
    head.version = call.version;
    let headers = &mut head.headers;
    headers.append("content-type", content_type(call.format));
    headers.append(super::VERSION_HEADER, super::VERSION);
    put_encodings(call.send, &call.options, headers);
    timeout::write(call.timeout, headers);
    fields::put(&call.metadata, headers);
    head
}

fn put_encodings(send: Encoding, options: &WireOptions, headers: &mut Headers) {
    if send != Encoding::Identity {
        headers.append(ENCODING, send.name());
    }
    let accepted = negotiate::encoding_list(&options.accept);
    if !accepted.is_empty() {
        headers.append(ACCEPTED, accepted);
    }
}

/// Writes a stream's requests, or its answers and their end.
#[derive(Debug)]
pub(crate) struct StreamEncoder {
    side: Side,
    packing: Packing,
    options: Arc<WireOptions>,
    /// Server: whether the head was written.
    is_started: bool,
}

impl StreamEncoder {
    pub(crate) fn new(call: &Call, side: Side) -> Self {
        Self {
            side,
            packing: Packing::of(call),
            options: Arc::clone(&call.options),
            is_started: side == Side::Client,
        }
    }
}

impl Encode for StreamEncoder {
    fn unary(
        &mut self,
        result: Result<&dyn Outgoing, &Error>,
        head: &Metadata,
        trailers: &Metadata,
        out: &mut Out,
    ) {
        self.head(head, out);
        match result.map(|message| self.message(message, out)) {
            Ok(Ok(())) => self.end(Ok(()), trailers, out),
            Ok(Err(error)) => self.end(Err(&error), trailers, out),
            Err(error) => self.end(Err(error), trailers, out),
        }
    }

    fn head(&mut self, metadata: &Metadata, out: &mut Out) {
        if self.is_started {
            return;
        }
        self.is_started = true;
        let mut head = ResponseHead::new(200);
        let headers = &mut head.headers;
        headers.append("content-type", content_type(self.packing.format));
        put_encodings(self.packing.encoding, &self.options, headers);
        fields::put(metadata, headers);
        out.put_head(head);
    }

    fn message(&mut self, message: &dyn Outgoing, out: &mut Out) -> Result<(), Error> {
        self.head(&Metadata::new(), out);
        envelope::put_message(&self.packing, message, out)
    }

    fn end(&mut self, result: Result<(), &Error>, trailers: &Metadata, out: &mut Out) {
        if self.side == Side::Client {
            // A client gives up by leaving its half without an end.
            if result.is_ok() {
                out.end(None);
            }
            return;
        }
        self.head(&Metadata::new(), out);
        end_stream::put(result, trailers, out.buffer());
        out.end(None);
    }
}

/// Reads a stream's requests, or its answers and their end.
#[derive(Debug)]
pub(crate) struct StreamDecoder {
    side: Side,
    format: Format,
    options: Arc<WireOptions>,
    encoding: Encoding,
    envelopes: EnvelopeDecoder,
    /// Client: the answer's leading metadata, for its error.
    leading: Metadata,
    /// Client: the end that was read; it counts once nothing follows it.
    end: Option<Result<Metadata, Error>>,
    is_finished: bool,
    is_over: bool,
}

impl StreamDecoder {
    pub(crate) fn new(call: &Call, side: Side) -> Self {
        Self {
            side,
            format: call.format,
            options: Arc::clone(&call.options),
            encoding: call.receive,
            envelopes: EnvelopeDecoder::default(),
            leading: Metadata::new(),
            end: None,
            is_finished: false,
            is_over: false,
        }
    }

    fn stop(&mut self) {
        self.is_over = true;
        self.envelopes = EnvelopeDecoder::default();
    }

    fn check_head(&mut self, head: &ResponseHead) -> Result<(), Error> {
        if head.status != 200 {
            return Err(of_status(head.status));
        }
        let media_type = negotiate::media_type(&head.headers);
        super::check_answer_type(media_type, CONTENT_TYPE_PREFIX, self.format)?;
        let encoding = lossy(&head.headers, ENCODING);
        self.encoding = super::answer_encoding(encoding.as_deref(), &self.options.accept)?;
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Event>, Error> {
        if self.end.is_none() {
            let message_bytes_max = self.options.receive_bytes_max;
            let is_client = self.side == Side::Client;
            let envelope = self.envelopes.next_by(|flags| {
                if is_client && flags & FLAG_END_STREAM != 0 {
                    DOCUMENT_BYTES_MAX
                } else {
                    message_bytes_max
                }
            })?;
            match envelope {
                Some(envelope) if envelope.flags & FLAG_END_STREAM == 0 => {
                    return self.read_message(&envelope).map(Some);
                }
                Some(envelope) => self.end = Some(self.read_end(&envelope)?),
                None if self.is_finished => return self.read_finish().map(Some),
                None => return Ok(None),
            }
        }
        if self.envelopes.is_partial() {
            return Err(Error::internal("bytes follow the end of the stream"));
        }
        if self.is_finished {
            return Ok(self.end.take().map(Event::End));
        }
        Ok(None)
    }

    fn read_message(&self, envelope: &Envelope) -> Result<Event, Error> {
        self.unpack(envelope, self.options.receive_bytes_max)
            .map(Event::Message)
    }

    /// An envelope's payload, decompressed; refuses flags that nobody defined.
    fn unpack(&self, envelope: &Envelope, bytes_max: usize) -> Result<Bytes, Error> {
        let at_fault = super::at_fault(self.side);
        if envelope.flags & !(FLAG_COMPRESSED | FLAG_END_STREAM) != 0 {
            return Err(at_fault(format!(
                "envelope flags {:#04x} are not defined",
                envelope.flags
            )));
        }
        if envelope.flags & FLAG_COMPRESSED == 0 {
            return Ok(envelope.payload.clone());
        }
        if self.encoding == Encoding::Identity {
            return Err(Error::internal(
                "a message is compressed, and the head names no compression",
            ));
        }
        if envelope.payload.is_empty() {
            // Some peers compress an empty message to nothing.
            return Ok(Bytes::new());
        }
        message::unpack(self.encoding, &envelope.payload, bytes_max, at_fault)
    }

    fn read_end(&self, envelope: &Envelope) -> Result<Result<Metadata, Error>, Error> {
        if self.side == Side::Server {
            return Err(Error::invalid_argument(
                "a request stream has no end-of-stream envelope; it ends with its body",
            ));
        }
        let payload = self.unpack(envelope, DOCUMENT_BYTES_MAX)?;
        let (error, trailing) = end_stream::read(&payload)?;
        Ok(match error {
            None => Ok(trailing),
            Some(mut error) => {
                error.received_metadata_mut().extend(&self.leading);
                error.received_metadata_mut().extend(&trailing);
                Err(error)
            }
        })
    }

    /// The body ended where no envelope had said so.
    fn read_finish(&self) -> Result<Event, Error> {
        if self.envelopes.is_partial() {
            return Err(super::at_fault(self.side)(
                "the body ends inside an envelope".to_owned(),
            ));
        }
        match self.side {
            Side::Server => Ok(Event::End(Ok(Metadata::new()))),
            Side::Client => Err(Error::internal(
                "the body ends without an end-of-stream envelope",
            )),
        }
    }
}

impl Decode for StreamDecoder {
    fn head(&mut self, head: &ResponseHead) -> Result<Metadata, Error> {
        let mut leading = Metadata::new();
        let received = fields::receive_all(&head.headers, &mut leading);
        let received = received.map_err(|junk| junk.into_error(Error::internal));
        if let Err(mut error) = self.check_head(head).and(received) {
            self.stop();
            error.received_metadata_mut().extend(&leading);
            return Err(error);
        }
        self.leading = leading.clone();
        Ok(leading)
    }

    fn feed(&mut self, bytes: Bytes) {
        if !self.is_over {
            self.envelopes.feed(bytes);
        }
    }

    fn finish(&mut self, _: Option<Headers>) {
        self.is_finished = true;
    }

    fn next(&mut self) -> Result<Option<Event>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let step = self.step();
        if matches!(step, Err(_) | Ok(Some(Event::End(_)))) {
            self.stop();
        }
        step
    }

    fn share_memory(&mut self) {
        self.envelopes.share_memory();
    }

    fn hold(&mut self) {
        self.envelopes.hold();
    }

    fn held_bytes(&self) -> usize {
        self.envelopes.held_bytes()
    }
}
