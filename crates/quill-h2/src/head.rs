//! Header lists as heads and trailers, and what HTTP/2 asks of them (RFC 9113,
//! sections 8.1 to 8.3).

use quill_core::{Headers, HttpMethod, HttpVersion, RequestHead, ResponseHead};

use crate::hpack::{Field, Sink};

/// What a decoded head came to, besides its fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) content_length: Option<u64>,
    pub(crate) is_head_request: bool,
}

/// The regular fields of a list, with what is wrong with the first that is.
#[derive(Debug, Default)]
struct Regular {
    headers: Headers,
    content_length: Option<u64>,
    wrong: Option<&'static str>,
}

impl Regular {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        if let Some(wrong) = self.check(name, value) {
            self.wrong.get_or_insert(wrong);
            return;
        }
        if self.headers.try_append(name, value).is_err() {
            self.wrong
                .get_or_insert("a field holds bytes that no field may hold");
        }
    }

    fn check(&mut self, name: &[u8], value: &[u8]) -> Option<&'static str> {
        // RFC 9113, section 8.2.1.
        if is_blank(value.first()) || is_blank(value.last()) {
            return Some("a field's value begins or ends with white space");
        }
        match name {
            // RFC 9113, section 8.2.2.
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding"
            | b"upgrade" => Some("a field belongs to connections of HTTP/1.1"),
            b"te" if !value.eq_ignore_ascii_case(b"trailers") => {
                Some("te holds something else than trailers")
            }
            b"content-length" => self.note_length(value),
            _ => None,
        }
    }

    /// RFC 9110, section 8.6: one number, however often.
    fn note_length(&mut self, value: &[u8]) -> Option<&'static str> {
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(value).unwrap_or_default();
        match text.parse() {
            Ok(length) if digits && self.content_length.is_none_or(|known| known == length) => {
                self.content_length = Some(length);
                None
            }
            _ => Some("content-length is no number, or several"),
        }
    }
}

fn is_blank(byte: Option<&u8>) -> bool {
    matches!(byte, Some(b' ' | b'\t'))
}

/// Reads a request's head.
#[derive(Debug, Default)]
pub(crate) struct RequestSink {
    method: Option<HttpMethod>,
    has_scheme: bool,
    target: Option<String>,
    authority: Option<String>,
    host: Option<String>,
    regular: Regular,
}

impl Sink for RequestSink {
    fn field(&mut self, field: Field<'_>) {
        let Field { name, value, .. } = field;
        if let Some(pseudo) = name.strip_prefix(b":") {
            if let Some(wrong) = self.pseudo(pseudo, value) {
                self.regular.wrong.get_or_insert(wrong);
            }
        } else if name == b"host" {
            if self.host.is_some() {
                self.regular.wrong.get_or_insert("there are two hosts");
            }
            self.host = text(value);
            if self.host.is_none() {
                self.regular
                    .wrong
                    .get_or_insert("host holds bytes of no host");
            }
        } else {
            self.regular.field(name, value);
        }
    }
}

impl RequestSink {
    /// RFC 9113, section 8.3.
    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Option<&'static str> {
        if !self.regular.headers.is_empty() || self.host.is_some() {
            return Some("a pseudo-header field follows a regular one");
        }
        let twice = match name {
            b"method" => self.method.replace(method(value)?).is_some(),
            b"scheme" => std::mem::replace(&mut self.has_scheme, true),
            b"path" => {
                let Some(target) = text(value).filter(|target| is_target(target)) else {
                    return Some(":path is no path");
                };
                self.target.replace(target).is_some()
            }
            b"authority" => {
                let Some(authority) = text(value).filter(|text| !text.contains('@')) else {
                    return Some(":authority is no authority");
                };
                self.authority.replace(authority).is_some()
            }
            _ => return Some("a pseudo-header field is unknown"),
        };
        twice.then_some("a pseudo-header field comes twice")
    }

    /// The head; an error is a malformed request (RFC 9113, section 8.1.1).
    pub(crate) fn finish(self) -> Result<(RequestHead, Facts), &'static str> {
        let Self {
            method,
            has_scheme,
            target,
            authority,
            host,
            regular,
        } = self;
        if let Some(wrong) = regular.wrong {
            return Err(wrong);
        }
        let method = method.ok_or(":method is missing or no method")?;
        // RFC 9113, section 8.5.
        let connects = matches!(&method, HttpMethod::Other(name) if &**name == "CONNECT");
        if connects {
            if has_scheme || target.is_some() || authority.is_none() {
                return Err("CONNECT takes :authority alone");
            }
        } else if !has_scheme || target.is_none() {
            return Err(":scheme or :path is missing");
        }
        // RFC 9113, section 8.3.1: both name the same.
        if let (Some(authority), Some(host)) = (&authority, &host)
            && !authority.eq_ignore_ascii_case(host)
        {
            return Err("host and :authority differ");
        }
        let facts = Facts {
            content_length: regular.content_length,
            is_head_request: matches!(&method, HttpMethod::Other(name) if &**name == "HEAD"),
        };
        let head = RequestHead {
            method,
            target: target.unwrap_or_default(),
            version: HttpVersion::Http2,
            authority: authority.or(host).unwrap_or_default(),
            headers: regular.headers,
        };
        Ok((head, facts))
    }
}

fn method(value: &[u8]) -> Option<HttpMethod> {
    Some(match value {
        b"POST" => HttpMethod::Post,
        b"GET" => HttpMethod::Get,
        b"OPTIONS" => HttpMethod::Options,
        // RFC 9110, section 9.1: a method is a token.
        _ if !value.is_empty() && value.iter().all(|byte| is_token(*byte)) => {
            HttpMethod::Other(std::str::from_utf8(value).ok()?.into())
        }
        _ => return None,
    })
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Text without blanks and controls.
fn text(value: &[u8]) -> Option<String> {
    let plain = value.iter().all(u8::is_ascii_graphic);
    let text = std::str::from_utf8(value).ok()?;
    plain.then(|| text.to_owned())
}

/// RFC 9113, section 8.3.1: it begins with a slash, or is the asterisk of OPTIONS;
/// a fragment is never sent.
fn is_target(target: &str) -> bool {
    (target.starts_with('/') || target == "*") && !target.contains('#')
}

/// Reads an answer's head.
#[derive(Debug, Default)]
pub(crate) struct ResponseSink {
    status: Option<u16>,
    regular: Regular,
}

impl Sink for ResponseSink {
    fn field(&mut self, field: Field<'_>) {
        let Field { name, value, .. } = field;
        let Some(pseudo) = name.strip_prefix(b":") else {
            self.regular.field(name, value);
            return;
        };
        let late = !self.regular.headers.is_empty();
        match (pseudo, status(value)) {
            (b"status", Some(status)) if !late && self.status.is_none() => {
                self.status = Some(status);
            }
            _ => {
                let wrong = "the pseudo-header fields are not one :status";
                self.regular.wrong.get_or_insert(wrong);
            }
        }
    }
}

impl ResponseSink {
    /// The head; an error is a malformed answer (RFC 9113, section 8.1.1).
    pub(crate) fn finish(self) -> Result<(ResponseHead, Facts), &'static str> {
        if let Some(wrong) = self.regular.wrong {
            return Err(wrong);
        }
        let status = self.status.ok_or(":status is missing")?;
        // RFC 9113, section 8.6.
        if status == 101 {
            return Err("HTTP/2 has no status 101");
        }
        let facts = Facts {
            content_length: self.regular.content_length,
            is_head_request: false,
        };
        let headers = self.regular.headers;
        Ok((ResponseHead { status, headers }, facts))
    }
}

/// RFC 9110, section 15: three digits.
fn status(value: &[u8]) -> Option<u16> {
    let [
        hundreds @ b'1'..=b'9',
        tens @ b'0'..=b'9',
        ones @ b'0'..=b'9',
    ] = value
    else {
        return None;
    };
    let digit = |byte: &u8| u16::from(byte - b'0');
    Some(digit(hundreds) * 100 + digit(tens) * 10 + digit(ones))
}

/// Reads trailers.
#[derive(Debug, Default)]
pub(crate) struct TrailersSink(Regular);

impl Sink for TrailersSink {
    fn field(&mut self, field: Field<'_>) {
        let Field { name, value, .. } = field;
        if name.starts_with(b":") {
            self.0
                .wrong
                .get_or_insert("trailers hold a pseudo-header field");
            return;
        }
        self.0.field(name, value);
    }
}

impl TrailersSink {
    pub(crate) fn finish(self) -> Result<Headers, &'static str> {
        match self.0.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(self.0.headers),
        }
    }
}

/// Reads a block for what it does to the table alone.
#[derive(Debug)]
pub(crate) struct Ignored;

impl Sink for Ignored {
    fn field(&mut self, _: Field<'_>) {}
}

/// Whether a field must not be sent on HTTP/2 (RFC 9113, section 8.2.2), or is said
/// by a pseudo-header field.
pub(crate) fn stays_behind(name: &str, value: &[u8]) -> bool {
    match name {
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
        | "host" => true,
        "te" => !value.eq_ignore_ascii_case(b"trailers"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(sink: &mut impl Sink, fields: &[(&str, &str)]) {
        for (name, value) in fields {
            sink.field(Field {
                name: name.as_bytes(),
                value: value.as_bytes(),
                never_indexed: false,
            });
        }
    }

    fn request(fields: &[(&str, &str)]) -> Result<(RequestHead, Facts), &'static str> {
        let mut sink = RequestSink::default();
        feed(&mut sink, fields);
        sink.finish()
    }

    const GOOD: [(&str, &str); 4] = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/a.B/C?x"),
        (":authority", "a.example:80"),
    ];

    #[test]
    fn a_request_is_read() {
        let mut fields = GOOD.to_vec();
        fields.extend([
            ("te", "trailers"),
            ("content-length", "7"),
            ("host", "A.example:80"),
        ]);
        let (head, facts) = request(&fields).unwrap();
        assert_eq!(head.method, HttpMethod::Post);
        assert_eq!(
            (head.target.as_str(), head.authority.as_str()),
            ("/a.B/C?x", "a.example:80")
        );
        assert_eq!(facts.content_length, Some(7));
        assert_eq!(head.headers.len(), 2);
    }

    #[test]
    fn malformed_requests_are_refused() {
        let with = |more: &[(&'static str, &'static str)]| {
            let mut fields = GOOD.to_vec();
            fields.extend(more);
            request(&fields).is_err()
        };
        for more in [
            &[("x-A", "1")][..],
            &[("x a", "1")],
            &[("", "1")],
            &[("x", "a\r\nb")],
            &[("x", " a")],
            &[("x", "a\t")],
            &[("te", "gzip")],
            &[("connection", "close")],
            &[("transfer-encoding", "chunked")],
            &[("x", "1"), (":path", "/")],
            &[(":method", "GET")],
            &[(":status", "200")],
            &[(":protocol", "websocket")],
            &[("content-length", "1"), ("content-length", "2")],
            &[("content-length", "+1")],
            &[("content-length", "99999999999999999999")],
            &[("host", "b.example")],
        ] {
            assert!(with(more), "{more:?}");
        }
        assert!(!with(&[("content-length", "1"), ("content-length", "1")]));
        for (index, value) in [
            (0, "PO ST"),
            (2, ""),
            (2, "a"),
            (2, "/a b"),
            (2, "/#"),
            (3, "u@a"),
        ] {
            let mut fields = GOOD;
            fields[index].1 = value;
            assert!(request(&fields).is_err(), "{value:?}");
        }
        for missing in 0..3 {
            let mut fields = GOOD.to_vec();
            fields.remove(missing);
            assert!(request(&fields).is_err());
        }
    }

    #[test]
    fn connect_has_an_authority_alone() {
        let connect = [(":method", "CONNECT"), (":authority", "a:1")];
        let (head, _) = request(&connect).unwrap();
        assert_eq!((head.target.as_str(), head.authority.as_str()), ("", "a:1"));
        let mut fields = GOOD;
        fields[0].1 = "CONNECT";
        assert!(request(&fields).is_err());
    }

    #[test]
    fn answers_and_trailers_are_read_and_checked() {
        let response = |fields: &[(&str, &str)]| {
            let mut sink = ResponseSink::default();
            feed(&mut sink, fields);
            sink.finish()
        };
        assert_eq!(response(&[(":status", "204")]).unwrap().0.status, 204);
        for wrong in [
            &[][..],
            &[(":status", "2000")],
            &[(":status", "101")],
            &[(":status", "2x0")],
            &[("x", "1"), (":status", "200")],
            &[(":status", "200"), (":status", "200")],
            &[(":status", "200"), (":path", "/")],
        ] {
            assert!(response(wrong).is_err(), "{wrong:?}");
        }
        let trailers = |fields: &[(&str, &str)]| {
            let mut sink = TrailersSink::default();
            feed(&mut sink, fields);
            sink.finish()
        };
        assert_eq!(trailers(&[("x-status", "0")]).unwrap().len(), 1);
        assert!(trailers(&[(":status", "200")]).is_err());
        assert!(trailers(&[("X", "1")]).is_err());
    }
}
