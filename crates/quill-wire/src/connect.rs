//! Connect (connectrpc.com/docs/protocol): unary calls by POST and GET, and
//! streams, for servers and clients.

use std::borrow::Cow;
use std::sync::Arc;

use quill_core::compression::Encoding;
use quill_core::{Code, Error, Format, Headers, Metadata, Method, RequestHead};

use crate::fields;
use crate::negotiate;
use crate::out::Out;
use crate::plain;
use crate::protocol::{Call, Refusal, Side, Wire, WireOptions};
use crate::wire::Opened;

mod body;
mod end_stream;
mod error;
mod get;
pub(crate) mod stream;
mod timeout;
pub(crate) mod unary;

const VERSION_HEADER: &str = "connect-protocol-version";
const VERSION: &str = "1";
/// Of errors and of an end of stream, whatever format the messages have.
const JSON: &str = "application/json";

/// Answers a request that never became a call. Clients read 405 and 415 by
/// their status alone; the others carry an error document, for people.
pub(crate) fn refuse(refusal: Refusal, out: &mut Out) {
    let mut head = plain::refusal_head(refusal);
    let error = match refusal {
        Refusal::UnknownPath => Some(Error::unimplemented(
            "there is no method at this path; paths are /package.Service/Method",
        )),
        Refusal::PathNotCanonical => Some(Error::invalid_argument(
            "this path is not in its canonical form; paths are /package.Service/Method",
        )),
        Refusal::HttpVersion => Some(Error::unimplemented(
            "this method needs HTTP/2: its streams overlap",
        )),
        Refusal::HttpMethod(_) | Refusal::MediaType => None,
    };
    if let Some(error) = error {
        head.headers.append("content-type", JSON);
        error::write(&error, out.buffer());
    }
    out.put_head(head);
    out.end(None);
}

/// A server's call, before the protocol's own fields were read, and whether its
/// metadata could be.
fn incoming(
    wire: Wire,
    head: &RequestHead,
    method: Arc<Method>,
    format: Format,
    options: Arc<WireOptions>,
) -> Opened {
    let mut metadata = Metadata::new();
    let received = fields::receive_all(&head.headers, &mut metadata)
        .map_err(|junk| junk.into_error(at_fault(Side::Server)));
    let call = Call {
        wire,
        method,
        format,
        metadata,
        timeout: None,
        previous_attempts: 0,
        receive: Encoding::Identity,
        send: Encoding::Identity,
        options,
        version: head.version,
        inline_body: None,
        credits: None,
        marks: crate::quill::Marks::default(),
    };
    (call, received)
}

/// The protocol version may be left out; one that we don't speak is refused.
fn check_version(headers: &Headers) -> Result<(), Error> {
    match headers.first(VERSION_HEADER) {
        None => Ok(()),
        Some(version) if version == VERSION.as_bytes() => Ok(()),
        Some(version) => Err(Error::invalid_argument(format!(
            "{VERSION_HEADER} must be \"{VERSION}\", not {:?}",
            String::from_utf8_lossy(version)
        ))),
    }
}

/// A header's first value; bytes that are no text make it a name nobody has.
fn lossy<'a>(headers: &'a Headers, name: &str) -> Option<Cow<'a, str>> {
    headers.first(name).map(String::from_utf8_lossy)
}

/// Settles a server's encodings: `used` is what the request is compressed with,
/// `offered` what the answer may be. A caller who offers nothing is taken to
/// read what it writes.
fn negotiate_encodings(
    call: &mut Call,
    used: Option<&str>,
    offered: Option<&str>,
) -> Result<(), Error> {
    let used = read_encoding(used, &call.options.accept);
    if call.options.compress {
        call.send = match (offered, &used) {
            (Some(list), _) => negotiate::choose_encoding(list, &call.options.accept),
            (None, Ok(used)) => *used,
            (None, Err(_)) => Encoding::Identity,
        };
    }
    call.receive = used.map_err(|name| {
        let accepted = negotiate::encoding_list(&call.options.accept);
        Error::unimplemented(format!(
            "unknown compression {name:?}: this server accepts {}",
            if accepted.is_empty() {
                "none"
            } else {
                &accepted
            }
        ))
    })?;
    Ok(())
}

/// The encoding of this name, which is none when there is no name; the name
/// itself when it is not allowed here.
fn read_encoding<'a>(name: Option<&'a str>, allowed: &[Encoding]) -> Result<Encoding, &'a str> {
    let name = name.unwrap_or_default().trim();
    if name.is_empty() || name.eq_ignore_ascii_case(Encoding::Identity.name()) {
        return Ok(Encoding::Identity);
    }
    Encoding::from_name(&name.to_ascii_lowercase())
        .filter(|encoding| allowed.contains(encoding))
        .ok_or(name)
}

/// Client: the encoding that an answer names.
fn answer_encoding(name: Option<&str>, allowed: &[Encoding]) -> Result<Encoding, Error> {
    read_encoding(name, allowed).map_err(|name| {
        Error::internal(format!(
            "the answer's compression {name:?} is none that the request accepts"
        ))
    })
}

/// Client: checks that an answer of status 200 is of the call's format:
/// `unknown` for what does not even look like Connect, `internal` for the
/// wrong format.
fn check_answer_type(found: &str, prefix: &str, format: Format) -> Result<(), Error> {
    let suffix = found
        .get(..prefix.len())
        .filter(|start| start.eq_ignore_ascii_case(prefix))
        .and_then(|_| found.get(prefix.len()..));
    let code = match suffix {
        Some(name) if name.eq_ignore_ascii_case(format.name()) => return Ok(()),
        Some(_) => Code::Internal,
        None => Code::Unknown,
    };
    Err(Error::new(
        code,
        format!(
            "the answer's content type is {found:?}; it must be \"{prefix}{}\"",
            format.name()
        ),
    ))
}

/// Whose fault malformed bytes are: the caller's at a server, the server's at a
/// client.
fn at_fault(side: Side) -> fn(String) -> Error {
    match side {
        Side::Server => |text| Error::invalid_argument(text),
        Side::Client => |text| Error::internal(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_named_in_any_case_and_only_allowed_ones_are_taken() {
        let allowed = [Encoding::Gzip];
        for (name, encoding) in [
            (None, Ok(Encoding::Identity)),
            (Some(""), Ok(Encoding::Identity)),
            (Some("Identity"), Ok(Encoding::Identity)),
            (Some(" GZip "), Ok(Encoding::Gzip)),
            (Some("zstd"), Err("zstd")),
            (Some("gzip, gzip"), Err("gzip, gzip")),
        ] {
            assert_eq!(read_encoding(name, &allowed), encoding);
        }
    }

    #[test]
    fn an_answer_has_the_formats_type() {
        let code = |found| {
            let checked = check_answer_type(found, "application/", Format::Json);
            checked.map_err(|error| error.code())
        };
        assert_eq!(code("application/json"), Ok(()));
        assert_eq!(code("Application/JSON"), Ok(()));
        assert_eq!(code("application/proto"), Err(Code::Internal));
        assert_eq!(code("text/html"), Err(Code::Unknown));
        assert_eq!(code(""), Err(Code::Unknown));
        assert_eq!(code("applicationü"), Err(Code::Unknown));
    }
}
