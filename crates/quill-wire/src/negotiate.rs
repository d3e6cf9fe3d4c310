//! Which protocol, format and encodings a head names.

use std::borrow::Cow;

use quill_core::compression::Encoding;
use quill_core::{Headers, HttpMethod, RequestHead};

use crate::protocol::Wire;

/// Every content type a call may have, for `accept-post` (the formats `+proto`
/// and `+json` stand for themselves).
pub(crate) const ACCEPT_POST: &str = "application/proto, application/json, \
    application/connect+proto, application/connect+json, \
    application/grpc, application/grpc+proto, application/grpc+json, \
    application/grpc-web, application/grpc-web+proto, application/grpc-web+json, \
    application/grpc-web-text, application/grpc-web-text+proto, \
    application/quill+proto, application/quill+json, \
    application/quill-stream+proto, application/quill-stream+json";

/// The media type that marks a caller who reads RFC 9457 problem documents.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// The content type of a head without its parameters; empty when there is none.
pub(crate) fn media_type(headers: &Headers) -> &str {
    let value = headers.text("content-type").unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

pub(crate) fn recognise(head: &RequestHead) -> Wire {
    match head.method {
        HttpMethod::Get => recognise_get(head),
        // A wrong HTTP method is refused in the protocol its content type names.
        _ => recognise_body(&head.headers),
    }
}

fn recognise_get(head: &RequestHead) -> Wire {
    let has = |name| query_pairs(head.query()).any(|(n, _)| n == name);
    if has("quill") {
        Wire::QuillGet
    } else if has("connect") || (has("message") && has("encoding")) {
        Wire::ConnectGet
    } else {
        recognise_body(&head.headers)
    }
}

fn recognise_body(headers: &Headers) -> Wire {
    let media_type = lower(media_type(headers));
    let Some(subtype) = media_type.strip_prefix("application/") else {
        return Wire::PlainHttp;
    };
    let (name, suffix) = match subtype.split_once('+') {
        Some((name, suffix)) => (name, Some(suffix)),
        None => (subtype, None),
    };
    match (name, suffix) {
        ("grpc", _) => Wire::Grpc,
        ("grpc-web", _) => Wire::GrpcWeb { text: false },
        ("grpc-web-text", _) => Wire::GrpcWeb { text: true },
        ("connect", Some(_)) => Wire::ConnectStream,
        ("quill" | "quill-stream", Some(_)) => Wire::Quill,
        ("proto" | "json", None) if reads_problems(headers) => Wire::Quill,
        ("proto" | "json", None) => Wire::ConnectUnary,
        _ => Wire::PlainHttp,
    }
}

/// In lower case; nearly all of them are already.
fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

/// Whether the caller marks itself as one of Quill's dialect: it names Prism
/// profiles, or reads problem documents.
pub(crate) fn reads_problems(headers: &Headers) -> bool {
    let names = |header, wanted| {
        headers
            .all(header)
            .filter_map(|value| std::str::from_utf8(value).ok())
            .any(|value| value.to_ascii_lowercase().contains(wanted))
    };
    names("prefer", "prism=") || names("accept", PROBLEM_JSON)
}

/// The first encoding of `offered` (a comma-separated list) that this build
/// knows and that `allowed` has; identity when there is none.
pub(crate) fn choose_encoding(offered: &str, allowed: &[Encoding]) -> Encoding {
    offered
        .split(',')
        .filter_map(|item| {
            let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
            let refused = parameters.replace(' ', "").trim_end_matches('0') == "q=0."
                || parameters.trim() == "q=0";
            (!refused).then(|| Encoding::from_name(name.trim()))?
        })
        .find(|encoding| allowed.contains(encoding))
        .unwrap_or(Encoding::Identity)
}

/// The names of these encodings as a list for a header, identity left out.
pub(crate) fn encoding_list(encodings: &[Encoding]) -> String {
    let names: Vec<&str> = encodings
        .iter()
        .filter(|encoding| **encoding != Encoding::Identity)
        .map(|encoding| encoding.name())
        .collect();
    names.join(",")
}

/// The names and raw values of a query, undecoded.
pub(crate) fn query_pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Undoes percent coding; `+` is a space where `plus_is_space` (query values of
/// forms). `None` for a `%` without two hex digits.
pub(crate) fn percent_decode(text: &str, plus_is_space: bool) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                u8::try_from(high << 4 | low).ok()?
            }
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(content_type: &str) -> RequestHead {
        let mut head = RequestHead::post("/a.B/C");
        head.headers.append("content-type", content_type);
        head
    }

    #[test]
    fn content_types_name_their_protocol() {
        for (content_type, wire) in [
            ("application/grpc", Wire::Grpc),
            ("application/grpc;charset=utf-8", Wire::Grpc),
            ("APPLICATION/GRPC+PROTO", Wire::Grpc),
            ("application/grpc-web+proto", Wire::GrpcWeb { text: false }),
            ("application/grpc-web-text", Wire::GrpcWeb { text: true }),
            ("application/connect+json", Wire::ConnectStream),
            ("application/json; charset=utf-8", Wire::ConnectUnary),
            ("application/proto", Wire::ConnectUnary),
            ("application/quill+json", Wire::Quill),
            ("application/quill-stream+proto", Wire::Quill),
            ("application/grpcfoo", Wire::PlainHttp),
            ("image/jpeg", Wire::PlainHttp),
            ("", Wire::PlainHttp),
        ] {
            assert_eq!(recognise(&post(content_type)), wire, "{content_type}");
        }
    }

    #[test]
    fn a_reader_of_problems_speaks_quill() {
        let mut head = post("application/json");
        head.headers.append("accept", "application/problem+json");
        assert_eq!(recognise(&head), Wire::Quill);
        let mut head = post("application/proto");
        head.headers
            .append("prefer", "respond-async, prism=hyper,turbo");
        assert_eq!(recognise(&head), Wire::Quill);
    }

    #[test]
    fn a_query_marks_a_get() {
        let mut head = post("");
        head.method = HttpMethod::Get;
        head.headers = Headers::new();
        for (target, wire) in [
            (
                "/a.B/C?connect=v1&encoding=json&message=%7B%7D",
                Wire::ConnectGet,
            ),
            ("/a.B/C?encoding=json&message=%7B%7D", Wire::ConnectGet),
            (
                "/a.B/C?quill=v1&encoding=json&message=%7B%7D",
                Wire::QuillGet,
            ),
            ("/a.B/C", Wire::PlainHttp),
        ] {
            head.target = target.to_owned();
            assert_eq!(recognise(&head), wire, "{target}");
        }
    }

    #[test]
    fn the_first_offered_encoding_that_is_allowed_wins() {
        let both = [Encoding::Zstd, Encoding::Gzip];
        assert_eq!(choose_encoding("br, gzip, zstd", &both), Encoding::Gzip);
        assert_eq!(
            choose_encoding("gzip;q=0, zstd;q=0.5", &both),
            Encoding::Zstd
        );
        assert_eq!(choose_encoding("gzip;q=0.0", &both), Encoding::Identity);
        assert_eq!(choose_encoding("br", &both), Encoding::Identity);
        assert_eq!(choose_encoding("", &both), Encoding::Identity);
    }

    #[test]
    fn percent_coding_is_undone_or_refused() {
        assert_eq!(
            percent_decode("a%20b+c", false).as_deref(),
            Some(&b"a b+c"[..])
        );
        assert_eq!(percent_decode("a+c", true).as_deref(), Some(&b"a c"[..]));
        for broken in ["%", "%4", "%zz", "%+1"] {
            assert_eq!(percent_decode(broken, false), None);
        }
    }
}
