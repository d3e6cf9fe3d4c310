//! Server: from the head of a request to a call.

use std::sync::Arc;
use std::time::Duration;

use quill_core::compression::Encoding;
use quill_core::{
    Error, Format, Headers, HttpMethod, Idempotency, Metadata, Method, MethodKind, RequestHead,
};

use super::credits::{self, CREDITS, Credits};
use super::media::{Media, Shape, shape};
use super::timeout::{self, TIMEOUT};
use super::{encoding, get, prism, problem};
use crate::fields;
use crate::negotiate::media_type;
use crate::plain;
use crate::protocol::{Call, Refusal, Side, Wire, WireOptions};
use crate::wire::Opened;

/// What the answer to a request depends on beside its call: the metadata it
/// is in goes to the handler.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    /// The client is of the framework that the frames come from.
    pub(super) is_dialect: bool,
    /// The profile to answer with, where one was asked for.
    pub(super) selected_prism: Option<&'static str>,
    /// The trace that the request belongs to, in hex.
    pub(super) trace_id: Option<[u8; 32]>,
}

/// Reads the head of a request for `method`.
pub(crate) fn open(
    head: &RequestHead,
    method: Arc<Method>,
    options: Arc<WireOptions>,
) -> Result<Opened, Refusal> {
    match head.method {
        HttpMethod::Post => open_post(head, method, options),
        HttpMethod::Get if may_be_got(&method) => open_get(head, method, options),
        _ => Err(Refusal::HttpMethod(plain::allowed(&method))),
    }
}

/// Client and server: whether a call of this method may be a GET.
pub(super) fn may_be_got(method: &Method) -> bool {
    method.kind() == MethodKind::Unary && method.idempotency() == Idempotency::NoSideEffects
}

fn open_post(
    head: &RequestHead,
    method: Arc<Method>,
    options: Arc<WireOptions>,
) -> Result<Opened, Refusal> {
    let media = Media::from_name(media_type(&head.headers)).ok_or(Refusal::MediaType)?;
    let mut said = Said::read(&head.headers);
    let asked = said.credits.filter(|_| !media.is_dialect());
    let request_shape = shape(&method, Side::Client, asked.is_some());
    if media.shape.is_some_and(|shape| shape != request_shape) {
        return Err(Refusal::MediaType);
    }
    let answer_shape = shape(&method, Side::Server, asked.is_some());
    let credits = asked.map(|value| credits::decode(value).ok_or_else(credits::malformed));
    let receive = said.receive(request_shape, media.is_dialect(), &options);
    let send = said.send(answer_shape, media.is_dialect(), &options);
    // What could not be read is refused, in the shape that was asked for.
    let granted = asked.map(|value| credits::decode(value).unwrap_or(1));
    let mut call = Call {
        receive: *receive.as_ref().unwrap_or(&Encoding::Identity),
        send,
        credits: granted.map(|n| Credits::of_server(options.credits, n, head.version)),
        ..said.call(Wire::Quill, head, method, media.format, options)
    };
    call.marks.is_dialect = media.is_dialect();
    let opened = said.checked.and(receive.map(drop));
    Ok((call, opened.and(credits.transpose().map(drop))))
}

fn open_get(
    head: &RequestHead,
    method: Arc<Method>,
    options: Arc<WireOptions>,
) -> Result<Opened, Refusal> {
    let format = get::format(head.query())?;
    let mut said = Said::read(&head.headers);
    let send = said.send(Shape::Bare, false, &options);
    let message = get::message(head.query(), &options);
    let mut call = said.call(Wire::QuillGet, head, method, format, options);
    call.send = send;
    let message = said.checked.and(message);
    let opened = message.map(|bytes| call.inline_body = Some(bytes));
    Ok((call, opened))
}

/// What the headers of a request say, read in one pass.
struct Said<'a> {
    metadata: Metadata,
    timeout: Option<Duration>,
    credits: Option<&'a [u8]>,
    content_encoding: Option<&'a [u8]>,
    accept_encoding: Option<&'a [u8]>,
    frame_encoding: Option<&'a [u8]>,
    accept_frame_encoding: Option<&'a [u8]>,
    /// The first thing that can't be read.
    checked: Result<(), Error>,
}

impl<'a> Said<'a> {
    fn read(headers: &'a Headers) -> Self {
        let mut said = Self {
            metadata: Metadata::new(),
            timeout: None,
            credits: None,
            content_encoding: None,
            accept_encoding: None,
            frame_encoding: None,
            accept_frame_encoding: None,
            checked: Ok(()),
        };
        for (name, value) in headers.iter() {
            let read = said.field(name, value);
            if said.checked.is_ok() {
                said.checked = read;
            }
        }
        said
    }

    fn field(&mut self, name: &str, value: &'a [u8]) -> Result<(), Error> {
        match name {
            TIMEOUT => self.timeout = Some(timeout::decode(value)?),
            CREDITS => self.credits = Some(value),
            encoding::CONTENT => self.content_encoding = Some(value),
            encoding::ACCEPT => self.accept_encoding = Some(value),
            encoding::FRAMES => self.frame_encoding = Some(value),
            encoding::ACCEPT_FRAMES => self.accept_frame_encoding = Some(value),
            _ => fields::receive(name, value, &mut self.metadata)
                .map_err(|junk| junk.into_error(Error::invalid_argument))?,
        }
        Ok(())
    }

    /// The encoding of the request. Only the dialect compresses a whole body of
    /// frames.
    fn receive(
        &self,
        shape: Shape,
        is_dialect: bool,
        options: &WireOptions,
    ) -> Result<Encoding, Error> {
        let accept = &options.accept;
        if shape == Shape::Bare || is_dialect {
            return encoding::accepted(encoding::CONTENT, self.content_encoding, accept);
        }
        let whole = encoding::accepted(encoding::CONTENT, self.content_encoding, &[]);
        if whole.is_err() {
            return Err(Error::unimplemented(
                "a body of frames has no content-encoding; its messages are compressed by quill-encoding",
            ));
        }
        encoding::accepted(encoding::FRAMES, self.frame_encoding, accept)
    }

    /// The encoding that the answer may have.
    fn send(&self, shape: Shape, is_dialect: bool, options: &WireOptions) -> Encoding {
        let offered = match shape {
            Shape::Bare => self.accept_encoding,
            Shape::Framed if is_dialect => None,
            Shape::Framed => self.accept_frame_encoding,
        };
        encoding::chosen(offered, &options.accept, options.compress)
    }

    /// The call as far as every head says it. Takes the metadata.
    fn call(
        &mut self,
        wire: Wire,
        head: &RequestHead,
        method: Arc<Method>,
        format: Format,
        options: Arc<WireOptions>,
    ) -> Call {
        let marks = Marks {
            is_dialect: false,
            selected_prism: prism::selected(&head.headers, head.version),
            trace_id: problem::trace_id(&self.metadata),
        };
        Call {
            wire,
            method,
            format,
            metadata: std::mem::take(&mut self.metadata),
            timeout: self.timeout,
            previous_attempts: 0,
            receive: Encoding::Identity,
            send: Encoding::Identity,
            options,
            version: head.version,
            inline_body: None,
            credits: None,
            marks,
        }
    }
}
