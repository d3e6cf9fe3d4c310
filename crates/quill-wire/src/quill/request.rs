//! Client: the heads of requests, and whole requests of one message.

use quill_core::compression::Encoding;
use quill_core::{Error, HttpMethod, Outgoing, RequestHead};

use super::credits::CREDITS;
use super::encoder::QuillEncoder;
use super::media::{Media, Shape, shape};
use super::open::may_be_got;
use super::timeout::{self, TIMEOUT};
use super::{encoding, get, squeeze};
use crate::fields;
use crate::message::{Packed, Packing};
use crate::out::Out;
use crate::protocol::{Call, Side};

/// The head of a request whose body follows through the encoder.
pub(crate) fn request(call: &Call) -> RequestHead {
    let mut head = RequestHead::post(call.method.path());
    head.version = call.version;
    let media = Media::of(call, Side::Client);
    head.headers.append("content-type", media.name());
    if media.shape == Some(Shape::Framed) && call.send != Encoding::Identity {
        head.headers.append(encoding::FRAMES, call.send.name());
    }
    if let Some(window) = call.credits() {
        head.headers.append(CREDITS, window.to_string());
    }
    put_common(call, &mut head);
    head
}

/// What every request says: what the answer may be compressed with, the time
/// left, the metadata.
fn put_common(call: &Call, head: &mut RequestHead) {
    let answer = shape(&call.method, Side::Server, call.credits.is_some());
    encoding::put_offer(answer, &call.options.accept, &mut head.headers);
    if let Some(timeout) = call.timeout {
        head.headers.append(TIMEOUT, timeout::encode(timeout));
    }
    fields::put(&call.metadata, &mut head.headers);
}

/// The whole request of a call with one request message.
pub(crate) fn unary_request(
    call: &Call,
    message: &dyn Outgoing,
    out: &mut Out,
) -> Result<RequestHead, Error> {
    if shape(&call.method, Side::Client, call.credits.is_some()) == Shape::Framed {
        QuillEncoder::new(call, Side::Client).put_request(message, out)?;
        return Ok(request(call));
    }
    let packed = squeeze::pack(&Packing::of(call), message)?;
    let encoding = if packed.compressed {
        call.send
    } else {
        Encoding::Identity
    };
    out.end(None);
    if let Some(head) = request_by_get(call, encoding, &packed) {
        return Ok(head);
    }
    let mut head = request(call);
    if encoding != Encoding::Identity {
        head.headers.append(encoding::CONTENT, encoding.name());
    }
    out.put_bytes(packed.bytes);
    Ok(head)
}

/// The call as a GET, where that was asked for and can be.
fn request_by_get(call: &Call, encoding: Encoding, packed: &Packed) -> Option<RequestHead> {
    if !call.options.use_get || !may_be_got(&call.method) {
        return None;
    }
    let path = call.method.path();
    let target = get::target(path, call.format, encoding, &packed.bytes)?;
    let mut head = RequestHead::post(target);
    head.method = HttpMethod::Get;
    head.version = call.version;
    put_common(call, &mut head);
    Some(head)
}
