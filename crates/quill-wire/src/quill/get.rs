//! Calls by GET: the request's message in the query (docs/protocol.md, "GET").

use bytes::Bytes;
use quill_core::compression::Encoding;
use quill_core::{Error, Format};

use super::encoding;
use crate::base64;
use crate::message;
use crate::negotiate::{percent_decode, query_pairs};
use crate::protocol::{Refusal, WireOptions};

/// The value of `quill` that marks such a query.
const VERSION: &str = "v1";
/// The longest target a client makes: beyond it servers and proxies refuse.
const TARGET_BYTES_MAX: usize = 8000;

/// The target of a GET for this message; `None` where it would be too long.
/// JSON stands as it is, percent-coded; anything else is base64.
pub(super) fn target(
    path: &str,
    format: Format,
    encoding: Encoding,
    message: &[u8],
) -> Option<String> {
    let mut target = format!("{path}?quill={VERSION}&encoding={}", format.name());
    if encoding != Encoding::Identity {
        target.push_str("&compression=");
        target.push_str(encoding.name());
    }
    if format == Format::Json && encoding == Encoding::Identity {
        target.push_str("&message=");
        percent_encode(message, &mut target);
    } else {
        target.push_str("&base64=1&message=");
        target.push_str(&base64::encode_url(message));
    }
    (target.len() <= TARGET_BYTES_MAX).then_some(target)
}

/// The unreserved characters of RFC 3986 stay, every other byte is coded.
fn percent_encode(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(*byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// The parameters of a query, undecoded.
#[derive(Debug, Default)]
struct Query<'a> {
    quill: Option<&'a str>,
    encoding: Option<&'a str>,
    message: Option<&'a str>,
    base64: Option<&'a str>,
    compression: Option<&'a str>,
}

impl<'a> Query<'a> {
    /// Parameters that are not ours are no business of ours; ours stand once.
    fn parse(query: &'a str) -> Result<Self, Error> {
        let mut parsed = Query::default();
        for (name, value) in query_pairs(query) {
            let slot = match name {
                "quill" => &mut parsed.quill,
                "encoding" => &mut parsed.encoding,
                "message" => &mut parsed.message,
                "base64" => &mut parsed.base64,
                "compression" => &mut parsed.compression,
                _ => continue,
            };
            if slot.replace(value).is_some() {
                return Err(Error::invalid_argument(format!(
                    "query parameter {name:?} is there twice"
                )));
            }
        }
        Ok(parsed)
    }
}

/// The format that a query names.
///
/// # Errors
/// A query that names none or an unknown one has no media type.
pub(super) fn format(query: &str) -> Result<Format, Refusal> {
    query_pairs(query)
        .find(|(name, _)| *name == "encoding")
        .and_then(|(_, value)| Format::from_name(value))
        .ok_or(Refusal::MediaType)
}

/// The request's message, decompressed.
pub(super) fn message(query: &str, options: &WireOptions) -> Result<Bytes, Error> {
    let query = Query::parse(query)?;
    if query.quill != Some(VERSION) {
        return Err(Error::invalid_argument(
            "query parameter \"quill\" must be v1",
        ));
    }
    let Some(text) = query.message else {
        return Err(Error::invalid_argument(
            "query parameter \"message\" is missing",
        ));
    };
    let is_base64 = match query.base64 {
        None => false,
        Some("1") => true,
        Some(_) => {
            return Err(Error::invalid_argument(
                "query parameter \"base64\" must be 1 or absent",
            ));
        }
    };
    let name = query.compression.map(str::as_bytes);
    let encoding = encoding::accepted("query parameter \"compression\"", name, &options.accept)?;
    let bytes = decode(text, is_base64)?;
    match encoding {
        Encoding::Identity if bytes.len() > options.receive_bytes_max => Err(
            message::too_large_to_receive(bytes.len(), options.receive_bytes_max),
        ),
        Encoding::Identity => Ok(bytes.into()),
        encoding => message::unpack(
            encoding,
            &bytes.into(),
            options.receive_bytes_max,
            Error::invalid_argument,
        ),
    }
}

fn decode(text: &str, is_base64: bool) -> Result<Vec<u8>, Error> {
    // In base64 a plus is a digit; elsewhere in a query it may be a space.
    let bytes = percent_decode(text, !is_base64).ok_or_else(|| {
        Error::invalid_argument("query parameter \"message\" is not percent-coded well")
    })?;
    if !is_base64 {
        return Ok(bytes);
    }
    base64::decode_any(&bytes)
        .ok_or_else(|| Error::invalid_argument("query parameter \"message\" is not base64"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quill_core::Code;

    fn read(query: &str) -> Result<Bytes, Error> {
        message(query, &WireOptions::default())
    }

    #[test]
    fn a_message_goes_both_ways_in_each_form() {
        let text = "{\"message\":\"100% \u{fc} + more\"}".as_bytes();
        let target = target("/a.B/C", Format::Json, Encoding::Identity, text).unwrap();
        let query = target.strip_prefix("/a.B/C?").unwrap();
        assert!(
            target.contains("message=%7B%22message%22%3A%22100%25%20%C3%BC%20%2B%20more%22%7D")
        );
        assert_eq!(format(query), Ok(Format::Json));
        assert_eq!(read(query).unwrap(), text);

        let bytes = [0xff, 0xef, 0x00];
        let target = super::target("/a.B/C", Format::Proto, Encoding::Identity, &bytes).unwrap();
        assert_eq!(
            target,
            "/a.B/C?quill=v1&encoding=proto&base64=1&message=_-8A"
        );
        let query = target.strip_prefix("/a.B/C?").unwrap();
        assert_eq!(format(query), Ok(Format::Proto));
        assert_eq!(read(query).unwrap(), &bytes[..]);
    }

    #[test]
    fn a_target_has_a_bound() {
        let long = vec![0; 6000];
        assert_eq!(
            target("/a.B/C", Format::Proto, Encoding::Identity, &long),
            None
        );
    }

    #[test]
    fn base64_is_taken_in_every_form_and_other_junk_is_named() {
        for message in ["_-8", "_-8%3D", "/+8=", "%2F%2B8"] {
            let query = format!("quill=v1&encoding=proto&base64=1&message={message}");
            assert_eq!(read(&query).unwrap(), &[0xff, 0xef][..], "{message}");
        }
        for query in [
            "quill=v2&message=",
            "message=",
            "quill=v1",
            "quill=v1&message=&message=",
            "quill=v1&base64=0&message=",
            "quill=v1&base64=1&message=%21",
            "quill=v1&message=%2",
        ] {
            let error = read(query).unwrap_err();
            assert_eq!(error.code(), Code::InvalidArgument, "{query}");
        }
        let error = read("quill=v1&compression=br&message=").unwrap_err();
        assert_eq!(error.code(), Code::Unimplemented);
        assert_eq!(format("encoding=xml"), Err(Refusal::MediaType));
    }

    #[test]
    fn the_limit_holds_before_and_after_decompression() {
        let options = WireOptions {
            receive_bytes_max: 10,
            ..WireOptions::default()
        };
        assert!(message("quill=v1&message=0123456789", &options).is_ok());
        let error = message("quill=v1&message=0123456789x", &options).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);

        let mut bomb = bytes::BytesMut::new();
        quill_core::compression::compress(Encoding::Gzip, 3, &[0; 1000], &mut bomb).unwrap();
        let target = target("/a", Format::Proto, Encoding::Gzip, &bomb).unwrap();
        let query = target.strip_prefix("/a?").unwrap();
        let error = message(query, &options).unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted);
        assert_eq!(read(query).unwrap().len(), 1000);
    }
}
