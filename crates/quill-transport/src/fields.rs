//! Header fields and heads: the `http` crate's types and ours. The only place
//! where one becomes the other.

use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri};
use quill_core::{Headers, HttpMethod, HttpVersion, RequestHead, ResponseHead};

use crate::error::{TransportError, TransportErrorKind};

/// Fields of the `http` crate as ours.
pub(crate) fn from_http(map: &HeaderMap) -> Headers {
    let mut headers = Headers::new();
    for (name, value) in map {
        headers.append(name.as_str(), value.as_bytes());
    }
    headers
}

/// Our fields as trailers of the `http` crate.
pub(crate) fn trailers_to_http(headers: &Headers) -> HeaderMap {
    let mut map = to_http(headers);
    // What frames the message has been said in the head (RFC 9110, section 6.5.1).
    map.remove(CONTENT_LENGTH);
    map
}

/// Our fields as those of the `http` crate, without those of a single
/// connection: HTTP/2 forbids them (RFC 9113, section 8.2.2), and in HTTP/1.1
/// they are the connection's to say.
fn to_http(headers: &Headers) -> HeaderMap {
    let mut map = HeaderMap::try_with_capacity(headers.len()).unwrap_or_default();
    for (name, value) in headers.iter() {
        if is_of_connection(name, value) {
            continue;
        }
        let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_bytes(value),
        ) else {
            tracing::debug!(name, "a field that HTTP can't carry was left out");
            continue;
        };
        if map.try_append(name, value).is_err() {
            tracing::debug!("fields over the number that HTTP can carry were left out");
            break;
        }
    }
    map
}

fn is_of_connection(name: &str, value: &[u8]) -> bool {
    match name {
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
        | "host" => true,
        "te" => !value.eq_ignore_ascii_case(b"trailers"),
        _ => false,
    }
}

pub(crate) fn version_from_http(version: http::Version) -> HttpVersion {
    match version {
        http::Version::HTTP_2 => HttpVersion::Http2,
        http::Version::HTTP_3 => HttpVersion::Http3,
        _ => HttpVersion::Http1,
    }
}

pub(crate) fn version_to_http(version: HttpVersion) -> http::Version {
    match version {
        HttpVersion::Http2 => http::Version::HTTP_2,
        HttpVersion::Http3 => http::Version::HTTP_3,
        _ => http::Version::HTTP_11,
    }
}

pub(crate) fn method_from_http(method: &Method) -> HttpMethod {
    match *method {
        Method::POST => HttpMethod::Post,
        Method::GET => HttpMethod::Get,
        Method::OPTIONS => HttpMethod::Options,
        ref other => HttpMethod::Other(other.as_str().into()),
    }
}

pub(crate) fn method_to_http(method: &HttpMethod) -> Result<Method, TransportError> {
    Ok(match method {
        HttpMethod::Post => Method::POST,
        HttpMethod::Get => Method::GET,
        HttpMethod::Options => Method::OPTIONS,
        HttpMethod::Other(name) => Method::from_bytes(name.as_bytes()).map_err(|error| {
            head_error(format!("{name:?} is no HTTP method")).with_source(error)
        })?,
        other => return Err(head_error(format!("the method {other:?} is unknown here"))),
    })
}

/// The head of a request that a connection, or another stack, received.
pub(crate) fn request_from_http(parts: &http::request::Parts) -> RequestHead {
    let authority = match parts.uri.authority() {
        Some(authority) => authority.as_str().to_owned(),
        None => parts
            .headers
            .get(HOST)
            .map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned())
            .unwrap_or_default(),
    };
    let mut headers = from_http(&parts.headers);
    headers.remove("host");
    RequestHead {
        method: method_from_http(&parts.method),
        target: parts
            .uri
            .path_and_query()
            .map_or_else(String::new, |target| target.as_str().to_owned()),
        version: version_from_http(parts.version),
        authority,
        headers,
    }
}

/// The head of a request for the `http` crate; with a scheme the URI is
/// absolute, as HTTP/2 wants it, without it is the target alone, beside a
/// `host` field.
pub(crate) fn request_to_http(
    head: &RequestHead,
    scheme: Option<&str>,
) -> Result<http::request::Parts, TransportError> {
    let mut builder = Uri::builder().path_and_query(head.target.as_str());
    if let Some(scheme) = scheme {
        builder = builder.scheme(scheme).authority(head.authority.as_str());
    }
    let uri = builder.build().map_err(|error| {
        head_error(format!(
            "the request target {:?} at {:?} is no URI",
            head.target, head.authority
        ))
        .with_source(error)
    })?;
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = method_to_http(&head.method)?;
    parts.uri = uri;
    parts.version = version_to_http(head.version);
    parts.headers = to_http(&head.headers);
    if scheme.is_none() && !head.authority.is_empty() {
        let host = HeaderValue::from_str(&head.authority).map_err(|error| {
            head_error(format!("{:?} is no host", head.authority)).with_source(error)
        })?;
        parts.headers.insert(HOST, host);
    }
    Ok(parts)
}

/// Whether a request's head can be sent on HTTP/2 as it is (RFC 9113, section 8.3.1).
pub(crate) fn check_request(head: &RequestHead) -> Result<(), TransportError> {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
    let target = head.target.as_str();
    let is_target = (target.starts_with('/') || target == "*") && is_plain(target);
    let authority = head.authority.as_str();
    if !is_target || !is_plain(authority) || authority.contains('@') {
        return Err(head_error(format!(
            "the request target {target:?} at {authority:?} is no URI"
        )));
    }
    method_to_http(&head.method).map(|_| ())
}

/// The head of an answer that a connection, or another stack, received.
pub(crate) fn response_from_http(parts: &http::response::Parts) -> ResponseHead {
    ResponseHead {
        status: parts.status.as_u16(),
        headers: from_http(&parts.headers),
    }
}

/// The head of an answer for the `http` crate. A status that can't end an
/// exchange is a mistake of the server's, and told as one.
pub(crate) fn response_to_http(head: &ResponseHead) -> http::response::Parts {
    let (mut parts, ()) = http::Response::new(()).into_parts();
    parts.status = StatusCode::from_u16(head.status)
        .ok()
        .filter(|status| !status.is_informational())
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    parts.headers = to_http(&head.headers);
    parts
}

/// A number as text.
pub(crate) fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

fn head_error(message: String) -> TransportError {
    TransportError::new(TransportErrorKind::Url, message).unprocessed()
}

#[cfg(test)]
mod tests {
    use http::header::{CONNECTION, TE, TRANSFER_ENCODING, UPGRADE};

    use super::*;

    #[test]
    fn fields_of_a_connection_are_never_emitted() {
        let mut headers = Headers::new();
        for name in ["connection", "keep-alive", "proxy-connection", "upgrade"] {
            headers.append(name, "x");
        }
        headers.append("transfer-encoding", "chunked");
        headers.append("te", "gzip");
        headers.append("te", "trailers");
        headers.append("x-kept", "1");
        let map = to_http(&headers);
        for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE] {
            assert!(!map.contains_key(name));
        }
        assert_eq!(map.get_all(TE).iter().collect::<Vec<_>>(), ["trailers"]);
        assert_eq!(map.len(), 2);
    }

    #[test]
    fn fields_come_back_as_they_went() {
        let mut headers = Headers::new();
        headers.append("a", "1");
        headers.append("a", [0xff, b' ', b'x']);
        headers.append("b-bin", "AAE");
        let back = from_http(&to_http(&headers));
        assert_eq!(back, headers);
    }

    #[test]
    fn heads_come_back_as_they_went() {
        let mut head = RequestHead::post("/a.B/C?x=1");
        head.authority = "example.com:8080".to_owned();
        head.headers.append("x-a", "1");
        let parts = request_to_http(&head, Some("http")).unwrap();
        assert_eq!(request_from_http(&parts), head);
        head.version = HttpVersion::Http1;
        head.method = HttpMethod::Other("PATCH".into());
        let parts = request_to_http(&head, None).unwrap();
        assert_eq!(parts.uri, "/a.B/C?x=1");
        assert_eq!(request_from_http(&parts), head);
    }

    #[test]
    fn a_status_that_ends_nothing_is_a_server_error() {
        for status in [0, 99, 101, 199, 1000] {
            let parts = response_to_http(&ResponseHead::new(status));
            assert_eq!(parts.status, 500, "{status}");
        }
        assert_eq!(response_to_http(&ResponseHead::new(404)).status, 404);
    }
}
