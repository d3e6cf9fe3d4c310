//! Heads of HTTP requests and answers, as the protocols see them.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::fields::Fields;

/// An ordered list of HTTP header or trailer fields.
///
/// Names are lower case. What HTTP forbids never gets in: CR, LF and NUL in a
/// value become spaces (RFC 9110, section 5.5), a byte that no name may hold
/// becomes `_` (section 5.6.2), so no field can smuggle another one.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(Fields);

impl Headers {
    /// An empty list; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(Fields::new())
    }

    /// These fields, which must be as [`append`](Self::append) would leave them;
    /// allocates nothing until one is added.
    #[must_use]
    pub const fn constant(fields: &'static [(&'static str, &'static str)]) -> Self {
        Self(Fields::constant(fields))
    }

    /// Adds a field after those of the same name.
    pub fn append(&mut self, name: &str, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        let name_fits = !name.is_empty() && name.bytes().all(is_lower_token);
        let value_fits = !value.iter().any(|b| is_forbidden_in_value(*b));
        if name_fits && value_fits {
            self.0.push(name, value);
            return;
        }
        let name: String = name.bytes().map(token_byte).collect();
        let value: Vec<u8> = value
            .iter()
            .map(|b| if is_forbidden_in_value(*b) { b' ' } else { *b })
            .collect();
        self.0.push(&name, &value);
    }

    /// Adds a field that a peer sent, after those of the same name.
    ///
    /// # Errors
    /// It holds a byte that HTTP forbids there, a capital in its name included.
    pub fn try_append(&mut self, name: &[u8], value: &[u8]) -> Result<(), ForbiddenByte> {
        let name_fits = !name.is_empty() && name.iter().all(|b| is_lower_token(*b));
        let value_fits = !value.iter().any(|b| is_forbidden_in_value(*b));
        match std::str::from_utf8(name) {
            Ok(name) if name_fits && value_fits => {
                self.0.push(name, value);
                Ok(())
            }
            _ => Err(ForbiddenByte),
        }
    }

    /// Sets a field, in place of all those of the same name.
    pub fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.0.remove(name);
        self.append(name, value);
    }

    /// Removes every field of this name; returns whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name)
    }

    /// The first value of this (lower-case) name.
    #[must_use]
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        self.0.first(name)
    }

    /// The first value of this name, where it is UTF-8 text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(self.first(name)?).ok()
    }

    /// All values of this name, in their order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0
            .iter()
            .filter(move |(n, _)| *n == name)
            .map(|(_, v)| v)
    }

    /// Every field in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter()
    }

    /// The number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// Bytes of all names and values together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// A field that holds a byte which HTTP forbids there (RFC 9110, sections 5.1 and 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForbiddenByte;

impl fmt::Display for ForbiddenByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field holds a byte that HTTP forbids there")
    }
}

impl std::error::Error for ForbiddenByte {}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|(n, v)| (n, String::from_utf8_lossy(v))))
            .finish()
    }
}

fn is_lower_token(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

fn token_byte(byte: u8) -> char {
    let lower = byte.to_ascii_lowercase();
    if is_lower_token(lower) {
        lower as char
    } else {
        '_'
    }
}

fn is_forbidden_in_value(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n' | 0)
}

/// The HTTP methods that RPC protocols use; all others are [`HttpMethod::Other`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HttpMethod {
    /// `POST`, the method of nearly every call.
    Post,
    /// `GET`, for calls without side effects.
    Get,
    /// `OPTIONS`, a browser's preflight.
    Options,
    /// Any other method, by its name.
    Other(Box<str>),
}

/// The version of HTTP a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum HttpVersion {
    /// HTTP/1.0 and HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

/// The head of an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The HTTP method.
    pub method: HttpMethod,
    /// Path and query as sent: `/pkg.Service/Method?x=y`.
    pub target: String,
    /// The version of the connection it came on, or will leave on.
    pub version: HttpVersion,
    /// Host and port as the caller named them (`:authority` or `host`); empty
    /// when it named none.
    pub authority: String,
    /// Header fields, without pseudo-headers and `host`.
    pub headers: Headers,
}

impl RequestHead {
    /// A head for `POST target`, without fields.
    #[must_use]
    pub fn post(target: impl Into<String>) -> Self {
        Self {
            method: HttpMethod::Post,
            target: target.into(),
            version: HttpVersion::Http2,
            authority: String::new(),
            headers: Headers::new(),
        }
    }

    /// The target up to the query.
    #[must_use]
    pub fn path(&self) -> &str {
        self.target
            .split_once('?')
            .map_or(self.target.as_str(), |(path, _)| path)
    }

    /// The query, without its `?`; empty when there is none.
    #[must_use]
    pub fn query(&self) -> &str {
        self.target.split_once('?').map_or("", |(_, query)| query)
    }
}

/// A request's head that others of its connection may have in common, and what was made
/// of it. Clones share both.
#[derive(Clone)]
pub struct SharedHead(Arc<Common>);

struct Common {
    head: RequestHead,
    made: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl SharedHead {
    /// This head.
    #[must_use]
    pub fn new(head: RequestHead) -> Self {
        Self(Arc::new(Common {
            head,
            made: OnceLock::new(),
        }))
    }

    /// Whether somebody keeps it, be it for the next request that has the same.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// What was made of it and put here, if that is a `T`.
    #[must_use]
    pub fn made<T: Any>(&self) -> Option<&T> {
        self.0.made.get()?.downcast_ref()
    }

    /// Puts what was made of it here, unless there is something already.
    pub fn put<T: Any + Send + Sync>(&self, made: T) {
        let _ = self.0.made.set(Box::new(made));
    }
}

impl Deref for SharedHead {
    type Target = RequestHead;

    fn deref(&self) -> &RequestHead {
        &self.0.head
    }
}

impl PartialEq for SharedHead {
    fn eq(&self, other: &Self) -> bool {
        self.0.head == other.0.head
    }
}

impl Eq for SharedHead {}

impl fmt::Debug for SharedHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.head.fmt(f)
    }
}

/// The head of an HTTP answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The HTTP status, 200 to 599.
    pub status: u16,
    /// Header fields.
    pub headers: Headers,
}

impl ResponseHead {
    /// A head with this status and no fields.
    #[must_use]
    pub const fn new(status: u16) -> Self {
        Self {
            status,
            headers: Headers::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_can_smuggle_another() {
        let mut headers = Headers::new();
        headers.append("X-Evil\r\nname: ", "a\r\nset-cookie: b\0");
        let all: Vec<_> = headers.iter().collect();
        assert_eq!(all, [("x-evil__name__", &b"a  set-cookie: b "[..])]);
    }

    #[test]
    fn what_a_peer_sent_is_taken_as_it_is_or_not_at_all() {
        let mut headers = Headers::new();
        headers.try_append(b"a-1", b"\xff b").unwrap();
        for (name, value) in [
            ("", "1"),
            ("A", "1"),
            ("a b", "1"),
            ("a", "1\n"),
            ("a", "\0"),
        ] {
            assert!(
                headers
                    .try_append(name.as_bytes(), value.as_bytes())
                    .is_err()
            );
        }
        assert_eq!(
            headers.iter().collect::<Vec<_>>(),
            [("a-1", &b"\xff b"[..])]
        );
    }

    #[test]
    fn set_replaces_all_and_append_adds() {
        let mut headers = Headers::new();
        headers.append("a", "1");
        headers.append("a", "2");
        assert_eq!(headers.all("a").count(), 2);
        headers.set("a", "3");
        assert_eq!(headers.all("a").collect::<Vec<_>>(), [b"3"]);
    }

    #[test]
    fn what_was_made_of_a_head_is_found_by_all_who_share_it() {
        let head = SharedHead::new(RequestHead::post("/a.B/C"));
        assert!(!head.is_kept());
        let other = head.clone();
        assert!(head.is_kept());
        assert_eq!(head.made::<u32>(), None);
        other.put(7_u32);
        other.put(8_u32);
        assert_eq!((head.made::<u32>(), head.made::<u64>()), (Some(&7), None));
        assert_eq!(head.path(), "/a.B/C");
    }

    #[test]
    fn a_target_splits_into_path_and_query() {
        let head = RequestHead::post("/a.B/C?x=1?2");
        assert_eq!((head.path(), head.query()), ("/a.B/C", "x=1?2"));
        assert_eq!(RequestHead::post("/a.B/C").query(), "");
    }
}
