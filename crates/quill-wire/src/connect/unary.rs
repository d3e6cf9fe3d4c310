//! Unary calls: the message is the body, errors are JSON documents under their
//! HTTP status, trailing metadata are headers with a prefix.

use std::sync::Arc;

use bytes::Bytes;
use quill_core::compression::Encoding;
use quill_core::{
    Code, Error, Format, Headers, HttpMethod, Metadata, Method, MethodKind, Outgoing, RequestHead,
    ResponseHead,
};

use crate::chunks::Chunks;
use crate::message::{self, Packed, Packing};
use crate::negotiate;
use crate::out::Out;
use crate::plain;
use crate::protocol::{Call, Decode, Encode, Event, Refusal, Side, Wire, WireOptions};
use crate::wire::Opened;

use super::error::{DOCUMENT_BYTES_MAX, of_status, status_of};
use super::{JSON, body, error, get, lossy, timeout};
use crate::{fields, retry_after};

const CONTENT_TYPE_PREFIX: &str = "application/";

fn content_type(format: Format) -> &'static str {
    match format {
        Format::Proto => "application/proto",
        Format::Json => JSON,
    }
}

/// Server: opens a unary call.
pub(crate) fn open(
    wire: Wire,
    head: &RequestHead,
    method: Arc<Method>,
    options: Arc<WireOptions>,
) -> Result<Opened, Refusal> {
    if wire == Wire::ConnectGet || (head.method == HttpMethod::Get && get::allows(&method)) {
        return get::open(head, method, options);
    }
    if head.method != HttpMethod::Post {
        return Err(Refusal::HttpMethod(plain::allowed(&method)));
    }
    if method.kind() != MethodKind::Unary {
        return Err(Refusal::MediaType);
    }
    let format = match negotiate::media_type(&head.headers) {
        name if name.eq_ignore_ascii_case(content_type(Format::Proto)) => Format::Proto,
        name if name.eq_ignore_ascii_case(JSON) => Format::Json,
        _ => return Err(Refusal::MediaType),
    };
    let (mut call, received) = super::incoming(Wire::ConnectUnary, head, method, format, options);
    let checked = read(&mut call, &head.headers);
    Ok((call, received.and(checked)))
}

fn read(call: &mut Call, headers: &Headers) -> Result<(), Error> {
    super::check_version(headers)?;
    call.timeout = timeout::read(headers)?;
    super::negotiate_encodings(
        call,
        lossy(headers, "content-encoding").as_deref(),
        lossy(headers, "accept-encoding").as_deref(),
    )
}

/// Client: the head of a call whose message is not known yet, so it is not
/// compressed.
pub(crate) fn request(call: &Call) -> RequestHead {
    post_head(call, false)
}

/// Client: the whole request. By GET where the method allows, the user asks for
/// it and the message fits into a URL; else by POST.
pub(crate) fn unary_request(
    call: &Call,
    message: &dyn Outgoing,
    out: &mut Out,
) -> Result<RequestHead, Error> {
    let packing = Packing::of(call);
    let wants_get = call.options.use_get || call.wire == Wire::ConnectGet;
    let compressed = if wants_get && get::allows(&call.method) {
        let packed = message::pack(&packing, message)?;
        if let Some(head) = get::request(call, &packed) {
            out.end(None);
            return Ok(head);
        }
        out.put_bytes(packed.bytes);
        packed.compressed
    } else {
        body::put(&packing, message, out)?
    };
    out.end(None);
    Ok(post_head(call, compressed))
}

fn post_head(call: &Call, compressed: bool) -> RequestHead {
    let mut head = RequestHead::post(call.method.path());
    head.version = call.version;
    let headers = &mut head.headers;
    headers.append("content-type", content_type(call.format));
    headers.append(super::VERSION_HEADER, super::VERSION);
    if compressed {
        headers.append("content-encoding", call.send.name());
    }
    put_accepted(call, headers);
    timeout::write(call.timeout, headers);
    fields::put(&call.metadata, headers);
    head
}

/// Client: the encodings that the answer may have.
pub(crate) fn put_accepted(call: &Call, headers: &mut Headers) {
    let accepted = negotiate::encoding_list(&call.options.accept);
    if !accepted.is_empty() {
        headers.append("accept-encoding", accepted);
    }
}

/// Writes a unary request's body, or a unary answer.
#[derive(Debug)]
pub(crate) struct UnaryEncoder {
    side: Side,
    packing: Packing,
    is_get: bool,
    options: Arc<WireOptions>,
    /// What [`Encode::head`] and [`Encode::message`] were given: nothing leaves
    /// before the status is known.
    leading: Metadata,
    message: Option<Packed>,
}

impl UnaryEncoder {
    pub(crate) fn new(call: &Call, side: Side) -> Self {
        let mut packing = Packing::of(call);
        if side == Side::Client {
            // The head, which left before, names no encoding.
            packing.encoding = Encoding::Identity;
        }
        Self {
            side,
            packing,
            is_get: call.wire == Wire::ConnectGet,
            options: Arc::clone(&call.options),
            leading: Metadata::new(),
            message: None,
        }
    }

    fn put_answer(&self, compressed: bool, leading: &Metadata, trailers: &Metadata, out: &mut Out) {
        let mut head = ResponseHead::new(200);
        let headers = &mut head.headers;
        headers.append("content-type", content_type(self.packing.format));
        if compressed {
            headers.append("content-encoding", self.packing.encoding.name());
        }
        if self.is_get {
            // Caches must not hand a compressed answer to those who can't read it.
            headers.append("vary", "accept-encoding");
        }
        fields::put(leading, headers);
        fields::put_trailers(trailers, headers);
        out.put_head(head);
        out.end(None);
    }

    fn put_error(&self, error: &Error, leading: &Metadata, trailers: &Metadata, out: &mut Out) {
        let mut head = ResponseHead::new(status_of(error.code()));
        let headers = &mut head.headers;
        headers.append("content-type", JSON);
        if error.code() == Code::Unimplemented {
            // It may have been the compression (RFC 9110, section 12.5.3).
            let accepted = negotiate::encoding_list(&self.options.accept);
            if !accepted.is_empty() {
                headers.append("accept-encoding", accepted);
            }
        }
        retry_after::put_seconds(error, headers);
        fields::put(leading, headers);
        fields::put(error.metadata(), headers);
        fields::put_trailers(trailers, headers);
        error::write(error, out.buffer());
        out.put_head(head);
        out.end(None);
    }
}

impl Encode for UnaryEncoder {
    fn unary(
        &mut self,
        result: Result<&dyn Outgoing, &Error>,
        head: &Metadata,
        trailers: &Metadata,
        out: &mut Out,
    ) {
        match result.map(|message| body::put(&self.packing, message, out)) {
            Ok(Ok(compressed)) => self.put_answer(compressed, head, trailers, out),
            Ok(Err(error)) => self.put_error(&error, head, trailers, out),
            Err(error) => self.put_error(error, head, trailers, out),
        }
    }

    fn head(&mut self, metadata: &Metadata, _: &mut Out) {
        self.leading.extend(metadata);
    }

    fn message(&mut self, message: &dyn Outgoing, out: &mut Out) -> Result<(), Error> {
        if self.message.is_some() {
            return Err(Error::internal("a unary call has one message, not two"));
        }
        let packed = message::pack(&self.packing, message)?;
        if self.side == Side::Client {
            out.put_bytes(packed.bytes.clone());
        }
        self.message = Some(packed);
        Ok(())
    }

    fn end(&mut self, result: Result<(), &Error>, trailers: &Metadata, out: &mut Out) {
        if self.side == Side::Client {
            // A client gives up by leaving its half without an end.
            if result.is_ok() {
                out.end(None);
            }
            return;
        }
        let leading = std::mem::take(&mut self.leading);
        match (result, self.message.take()) {
            (Err(error), _) => self.put_error(error, &leading, trailers, out),
            (Ok(()), Some(packed)) => {
                out.put_bytes(packed.bytes);
                self.put_answer(packed.compressed, &leading, trailers, out);
            }
            (Ok(()), None) => {
                let error = Error::internal("the handler of a unary call gave no message");
                self.put_error(&error, &leading, trailers, out);
            }
        }
    }
}

/// Reads a unary request's body, or a unary answer.
#[derive(Debug)]
pub(crate) struct UnaryDecoder {
    side: Side,
    format: Format,
    options: Arc<WireOptions>,
    encoding: Encoding,
    body: Chunks,
    stage: Stage,
    /// Client: the answer's HTTP status; 200 at a server.
    status: u16,
    /// Client: what goes with an error.
    leading: Metadata,
    trailing: Metadata,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The body is still coming.
    Body,
    /// More came than is allowed; nothing is held.
    TooLarge,
    /// All of it is there.
    Whole,
    /// The message was given out.
    End,
    Over,
}

impl UnaryDecoder {
    pub(crate) fn new(call: &Call, side: Side) -> Self {
        let mut decoder = Self {
            side,
            format: call.format,
            options: Arc::clone(&call.options),
            encoding: call.receive,
            body: Chunks::whole(call.options.receive_bytes_max),
            stage: Stage::Body,
            status: 200,
            leading: Metadata::new(),
            trailing: Metadata::new(),
        };
        if let Some(body) = &call.inline_body {
            // A GET has its message; whatever body it came with is no part of it.
            decoder.feed(body.clone());
            decoder.finish(None);
        }
        decoder
    }

    fn is_error(&self) -> bool {
        self.status != 200
    }

    fn bytes_max(&self) -> usize {
        if self.is_error() {
            DOCUMENT_BYTES_MAX
        } else {
            self.options.receive_bytes_max
        }
    }

    fn read_body(&mut self) -> Result<Bytes, Error> {
        let body = self.body.take_all();
        // Some peers name an encoding for an empty body and leave it empty.
        if self.encoding == Encoding::Identity || body.is_empty() {
            return Ok(body);
        }
        message::unpack(
            self.encoding,
            &body,
            self.bytes_max(),
            super::at_fault(self.side),
        )
    }

    fn read_error(&mut self) -> Error {
        let error = match self.read_body() {
            Ok(document) => error::read(&document, self.status),
            Err(_) => of_status(self.status),
        };
        self.with_metadata(error)
    }

    fn with_metadata(&mut self, mut error: Error) -> Error {
        error.received_metadata_mut().extend(&self.leading);
        error.received_metadata_mut().extend(&self.trailing);
        error
    }

    /// Checks what the head says of the body.
    fn check_head(&mut self, headers: &Headers) -> Result<(), Error> {
        let media_type = negotiate::media_type(headers);
        if self.is_error() {
            if !media_type.eq_ignore_ascii_case(JSON) {
                return Err(of_status(self.status));
            }
        } else {
            super::check_answer_type(media_type, CONTENT_TYPE_PREFIX, self.format)?;
        }
        let encoding = lossy(headers, "content-encoding");
        self.encoding = super::answer_encoding(encoding.as_deref(), &self.options.accept)?;
        Ok(())
    }
}

impl Decode for UnaryDecoder {
    fn head(&mut self, head: &ResponseHead) -> Result<Metadata, Error> {
        self.status = head.status;
        let (answer, received) = fields::receive_answer(&head.headers);
        self.leading = answer.leading;
        self.trailing = answer.trailing;
        // What is malformed beside an error does not hide that.
        let received = match received {
            Err(junk) if !self.is_error() => Err(junk.into_error(Error::internal)),
            _ => Ok(()),
        };
        if let Err(error) = self.check_head(&head.headers).and(received) {
            self.stage = Stage::Over;
            return Err(self.with_metadata(error));
        }
        if self.is_error() {
            return Ok(self.leading.clone());
        }
        Ok(std::mem::take(&mut self.leading))
    }

    fn feed(&mut self, bytes: Bytes) {
        if self.stage != Stage::Body {
            return;
        }
        if self.body.len().saturating_add(bytes.len()) > self.bytes_max() {
            self.body = Chunks::default();
            self.stage = Stage::TooLarge;
            return;
        }
        self.body.push(bytes);
    }

    fn finish(&mut self, _: Option<Headers>) {
        if self.stage == Stage::Body {
            self.stage = Stage::Whole;
        }
    }

    fn next(&mut self) -> Result<Option<Event>, Error> {
        let stage = self.stage;
        self.stage = match stage {
            Stage::Body => return Ok(None),
            Stage::Whole if !self.is_error() => Stage::End,
            _ => Stage::Over,
        };
        match stage {
            Stage::Body | Stage::Over => Ok(None),
            Stage::TooLarge if self.is_error() => {
                let error = of_status(self.status);
                Ok(Some(Event::End(Err(self.with_metadata(error)))))
            }
            Stage::TooLarge => Err(Error::resource_exhausted(format!(
                "a message is over the receive limit of {} bytes",
                self.bytes_max()
            ))),
            Stage::Whole if self.is_error() => Ok(Some(Event::End(Err(self.read_error())))),
            Stage::Whole => match self.read_body() {
                Ok(message) => Ok(Some(Event::Message(message))),
                Err(error) => {
                    self.stage = Stage::Over;
                    Err(error)
                }
            },
            Stage::End => Ok(Some(Event::End(Ok(std::mem::take(&mut self.trailing))))),
        }
    }

    fn hold(&mut self) {
        self.body.hold();
    }

    fn held_bytes(&self) -> usize {
        self.body.held_bytes()
    }
}
