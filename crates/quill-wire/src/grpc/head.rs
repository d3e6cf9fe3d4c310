//! The head of a request, read and written, and the answer to one that is no call.

use std::sync::Arc;
use std::time::Duration;

use quill_core::compression::Encoding;
use quill_core::{
    Error, Format, Headers, HttpMethod, HttpVersion, Metadata, Method, RequestHead, ResponseHead,
};

use super::content_type::{self, CONTENT_TYPE};
use super::encodings::{self, ACCEPT_ENCODING, ENCODING};
use super::retry::{self, PREVIOUS_ATTEMPTS};
use super::status;
use super::timeout::{self, TIMEOUT};
use crate::out::Out;
use crate::plain;
use crate::protocol::{Call, Refusal, Wire, WireOptions};
use crate::wire::Opened;
use crate::{fields, negotiate};

const USER_AGENT: &str = "user-agent";
/// `"grpc-" language "-" variant "/" version`, as `PROTOCOL-HTTP2.md` asks for.
const OUR_USER_AGENT: &str = concat!("grpc-rust-quill/", env!("CARGO_PKG_VERSION"));

/// Reads the head of a request for `method`. A request without `te: trailers`
/// is served: it may lack the header for a proxy's sake only.
pub(crate) fn open(
    wire: Wire,
    head: &RequestHead,
    method: Arc<Method>,
    options: Arc<WireOptions>,
) -> Result<Opened, Refusal> {
    if head.method != HttpMethod::Post {
        return Err(Refusal::HttpMethod(plain::allowed(&method)));
    }
    if wire == Wire::Grpc && head.version == HttpVersion::Http1 {
        return Err(Refusal::HttpVersion);
    }
    let format = content_type::read(&head.headers)
        .filter(|content_type| content_type.wire == wire)
        .and_then(|content_type| content_type.format)
        .ok_or(Refusal::MediaType)?;
    let mut read = RequestFields::default();
    let opened = read.read(&head.headers, &options);
    let call = read.into_call(wire, format, head.version, method, options);
    Ok((call, opened))
}

/// What a request's fields say.
#[derive(Default)]
struct RequestFields {
    timeout: Option<Duration>,
    receive: Option<Encoding>,
    send: Option<Encoding>,
    previous_attempts: u32,
    metadata: Metadata,
}

impl RequestFields {
    /// Reads all fields in one pass; the error of the first that is wrong.
    fn read(&mut self, headers: &Headers, options: &WireOptions) -> Result<(), Error> {
        let mut result = Ok(());
        for (name, value) in headers.iter() {
            let field = match name {
                TIMEOUT => timeout::decode(value).map(|timeout| self.timeout = Some(timeout)),
                ENCODING => self.read_encoding(value, options),
                ACCEPT_ENCODING => {
                    self.read_accept(value, options);
                    Ok(())
                }
                PREVIOUS_ATTEMPTS => {
                    self.previous_attempts = retry::read_attempts(value);
                    Ok(())
                }
                _ => fields::receive(name, value, &mut self.metadata)
                    .map_err(|junk| junk.into_error(Error::internal)),
            };
            result = result.and(field);
        }
        result
    }

    fn read_encoding(&mut self, value: &[u8], options: &WireOptions) -> Result<(), Error> {
        self.receive = encodings::accepted(value, &options.accept);
        if self.receive.is_none() {
            let refusal = encodings::refusal(value, &options.accept);
            return Err(Error::unimplemented(refusal));
        }
        Ok(())
    }

    fn read_accept(&mut self, value: &[u8], options: &WireOptions) {
        if options.compress && self.send.is_none() {
            let offered = std::str::from_utf8(value).unwrap_or_default();
            let chosen = negotiate::choose_encoding(offered, &options.accept);
            self.send = Some(chosen).filter(|encoding| *encoding != Encoding::Identity);
        }
    }

    fn into_call(
        self,
        wire: Wire,
        format: Format,
        version: HttpVersion,
        method: Arc<Method>,
        options: Arc<WireOptions>,
    ) -> Call {
        Call {
            wire,
            method,
            format,
            metadata: self.metadata,
            timeout: self.timeout,
            previous_attempts: self.previous_attempts,
            receive: self.receive.unwrap_or(Encoding::Identity),
            send: self.send.unwrap_or(Encoding::Identity),
            options,
            version,
            inline_body: None,
            credits: None,
            marks: crate::quill::Marks::default(),
        }
    }
}

/// The head of a request, the call's definition before its metadata.
pub(crate) fn request(call: &Call) -> RequestHead {
    let mut head = RequestHead::post(call.method.path());
    head.version = call.version;
    let fields = &mut head.headers;
    if let Some(timeout) = call.timeout.and_then(timeout::encode) {
        fields.append(TIMEOUT, timeout);
    }
    if call.previous_attempts > 0 {
        fields.append(PREVIOUS_ATTEMPTS, call.previous_attempts.to_string());
    }
    if call.wire == Wire::Grpc {
        fields.append("te", "trailers");
    }
    fields.append(CONTENT_TYPE, content_type::of(call.wire, call.format));
    if call.send != Encoding::Identity {
        fields.append(ENCODING, call.send.name());
    }
    if let Some(list) = encodings::accept_list(&call.options.accept) {
        fields.append(ACCEPT_ENCODING, list.as_bytes());
    }
    if call.metadata.get(USER_AGENT).is_none() {
        fields.append(USER_AGENT, OUR_USER_AGENT);
    }
    fields::put(&call.metadata, fields);
    head
}

/// Answers a request that is no call: an unknown method as gRPC does, with
/// `unimplemented` in a 200, the rest by HTTP status.
pub(crate) fn refuse(wire: Wire, refusal: Refusal, out: &mut Out) {
    let head = match refusal {
        Refusal::UnknownPath => {
            let error = Error::unimplemented(
                "there is no RPC method at this path; paths are /package.Service/Method",
            );
            let mut head = ResponseHead::new(200);
            let content_type = content_type::of(wire, Format::Proto);
            head.headers.append(CONTENT_TYPE, content_type);
            status::put(&error, &mut head.headers);
            head
        }
        other => plain::refusal_head(other),
    };
    out.put_head(head);
    out.end(None);
}
