//! Unary calls without side effects by GET: the message lies in the query.

use std::sync::Arc;

use bytes::Bytes;
use quill_core::{Error, Format, HttpMethod, Idempotency, Method, MethodKind, RequestHead};

use crate::base64;
use crate::message::Packed;
use crate::negotiate;
use crate::protocol::{Call, Refusal, Wire, WireOptions};
use crate::wire::Opened;

use super::{lossy, negotiate_encodings, timeout, unary};

/// The longest target that a client writes: what RFC 9110, section 4.1, asks
/// everyone to support. A longer call goes by POST.
const TARGET_BYTES_MAX: usize = 8_000;

const VERSION: &str = "v1";

/// Whether this method may be called by GET at all.
pub(crate) fn allows(method: &Method) -> bool {
    method.idempotency() == Idempotency::NoSideEffects && method.kind() == MethodKind::Unary
}

/// The parameters of a query, undecoded; of those that repeat the first.
#[derive(Default)]
struct Query<'a> {
    base64: Option<&'a str>,
    compression: Option<&'a str>,
    connect: Option<&'a str>,
    encoding: Option<&'a str>,
    message: Option<&'a str>,
}

impl<'a> Query<'a> {
    fn parse(query: &'a str) -> Self {
        let mut parsed = Self::default();
        for (name, value) in negotiate::query_pairs(query) {
            let parameter = match name {
                "base64" => &mut parsed.base64,
                "compression" => &mut parsed.compression,
                "connect" => &mut parsed.connect,
                "encoding" => &mut parsed.encoding,
                "message" => &mut parsed.message,
                // Gateways and caches add their own.
                _ => continue,
            };
            parameter.get_or_insert(value);
        }
        parsed
    }
}

/// Server: opens a GET.
pub(crate) fn open(
    head: &RequestHead,
    method: Arc<Method>,
    options: Arc<WireOptions>,
) -> Result<Opened, Refusal> {
    if !allows(&method) {
        return Err(Refusal::HttpMethod("POST"));
    }
    let query = Query::parse(head.query());
    let format = match query.encoding {
        Some(name) => Some(Format::from_name(name).ok_or(Refusal::MediaType)?),
        None => None,
    };
    // Errors are JSON in any case, so a missing format harms no answer.
    let answer_format = format.unwrap_or(Format::Json);
    let (mut call, received) =
        super::incoming(Wire::ConnectGet, head, method, answer_format, options);
    let checked = match format {
        Some(_) => read(&mut call, head, &query),
        None => Err(missing("encoding")),
    };
    Ok((call, received.and(checked)))
}

fn read(call: &mut Call, head: &RequestHead, query: &Query<'_>) -> Result<(), Error> {
    if let Some(version) = query.connect.filter(|version| *version != VERSION) {
        return Err(Error::invalid_argument(format!(
            "query parameter \"connect\" must be \"{VERSION}\", not {version:?}"
        )));
    }
    call.timeout = timeout::read(&head.headers)?;
    negotiate_encodings(
        call,
        query.compression,
        lossy(&head.headers, "accept-encoding").as_deref(),
    )?;
    let message = query.message.ok_or_else(|| missing("message"))?;
    let message = negotiate::percent_decode(message, true)
        .ok_or_else(|| broken("has a '%' without two hex digits behind it"))?;
    let message = match query.base64 {
        None => message,
        Some("1") => base64::decode_any(&message).ok_or_else(|| broken("is no base64"))?,
        Some(other) => {
            return Err(Error::invalid_argument(format!(
                "query parameter \"base64\" must be \"1\" or be left out, not {other:?}"
            )));
        }
    };
    call.inline_body = Some(Bytes::from(message));
    Ok(())
}

fn missing(name: &str) -> Error {
    Error::invalid_argument(format!("query parameter \"{name}\" is missing"))
}

fn broken(how: &str) -> Error {
    Error::invalid_argument(format!("query parameter \"message\" {how}"))
}

/// Client: the head of a GET; `None` when its target would be too long. The
/// parameters stand in the order that the spec recommends, so that equal calls
/// of all clients are equal to caches.
pub(crate) fn request(call: &Call, message: &Packed) -> Option<RequestHead> {
    if message.bytes.len() > TARGET_BYTES_MAX {
        return None;
    }
    let as_base64 = message.compressed || call.format == Format::Proto;
    let mut target = call.method.path().to_owned();
    target.push_str("?connect=v1");
    if as_base64 {
        target.push_str("&base64=1");
    }
    if message.compressed {
        target.push_str("&compression=");
        target.push_str(call.send.name());
    }
    target.push_str("&encoding=");
    target.push_str(call.format.name());
    target.push_str("&message=");
    if as_base64 {
        target.push_str(&base64::encode_url(&message.bytes));
    } else {
        percent_encode(&message.bytes, &mut target);
    }
    if target.len() > TARGET_BYTES_MAX {
        return None;
    }
    let mut head = RequestHead::post(target);
    head.method = HttpMethod::Get;
    head.version = call.version;
    unary::put_accepted(call, &mut head.headers);
    timeout::write(call.timeout, &mut head.headers);
    crate::fields::put(&call.metadata, &mut head.headers);
    Some(head)
}

/// Percent coding of all but RFC 3986's unreserved characters (section 2.3).
fn percent_encode(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(*byte));
            continue;
        }
        out.push('%');
        for digit in [byte >> 4, byte & 0x0f] {
            let digit = char::from_digit(u32::from(digit), 16).unwrap_or_default();
            out.push(digit.to_ascii_uppercase());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn percent_coding_goes_both_ways(bytes in any::<Vec<u8>>()) {
            let mut text = String::new();
            percent_encode(&bytes, &mut text);
            prop_assert!(text.is_ascii());
            for plus_is_space in [false, true] {
                prop_assert_eq!(negotiate::percent_decode(&text, plus_is_space), Some(bytes.clone()));
            }
        }
    }

    #[test]
    fn of_a_repeated_parameter_the_first_counts() {
        let query = Query::parse("message=a&x=1&message=b&&encoding");
        assert_eq!(query.message, Some("a"));
        assert_eq!(query.encoding, Some(""));
        assert_eq!(query.connect, None);
    }
}
