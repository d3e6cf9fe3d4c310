//! What travels beside a call's messages.

use std::fmt;

use crate::error::Error;
use crate::fields::Fields;

/// Names that belong to HTTP or to a protocol; a user who could set them could
/// break the framing of the call.
const RESERVED_NAMES: [&str; 19] = [
    "accept",
    "accept-encoding",
    "alt-svc",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "http2-settings",
    "keep-alive",
    "prefer",
    "proxy-authenticate",
    "proxy-connection",
    "selected-prism",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "early-data",
];
const RESERVED_PREFIXES: [&str; 4] = ["grpc-", "connect-", "quill-", "trailer-"];

/// Names and values beside the messages of a call: request metadata, an
/// answer's leading and trailing metadata, the metadata of an error.
///
/// A name is lower-case ASCII letters, digits, `-`, `_` and `.`. A name that
/// ends in `-bin` holds bytes (base64 on most wires; that is the wire's
/// concern), any other holds printable ASCII, without white space at its ends.
/// Names may repeat; order is kept.
///
/// ```
/// use quill_core::Metadata;
///
/// let mut metadata = Metadata::new();
/// metadata.insert("x-request-id", "7")?;
/// metadata.insert_bin("trace-bin", [0, 255])?;
/// assert_eq!(metadata.get("x-request-id"), Some("7"));
/// assert_eq!(metadata.get_bin("trace-bin"), Some(&[0, 255][..]));
/// assert!(metadata.insert("content-length", "0").is_err());
/// # Ok::<(), quill_core::MetadataError>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Metadata(Fields);

impl Metadata {
    /// No metadata; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(Fields::new())
    }

    /// From now on clones allocate nothing until they are changed: for what many calls
    /// have in common.
    pub fn share(&mut self) {
        self.0.share();
    }

    /// Sets a text value, in place of all values of this name.
    ///
    /// # Errors
    /// A name or value outside the allowed characters, a name ending in `-bin`
    /// (see [`insert_bin`](Self::insert_bin)), a reserved name.
    pub fn insert(&mut self, name: &str, value: &str) -> Result<(), MetadataError> {
        check_text(name, value)?;
        self.0.remove(name);
        self.0.push(name, value.as_bytes());
        Ok(())
    }

    /// Adds a text value after those of the same name.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn append(&mut self, name: &str, value: &str) -> Result<(), MetadataError> {
        check_text(name, value)?;
        self.0.push(name, value.as_bytes());
        Ok(())
    }

    /// Sets a binary value, in place of all values of this name.
    ///
    /// # Errors
    /// A name outside the allowed characters, one that does not end in `-bin`,
    /// a reserved name.
    pub fn insert_bin(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), MetadataError> {
        check_binary_name(name)?;
        self.0.remove(name);
        self.0.push(name, value.as_ref());
        Ok(())
    }

    /// Adds a binary value after those of the same name.
    ///
    /// # Errors
    /// As [`insert_bin`](Self::insert_bin).
    pub fn append_bin(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<(), MetadataError> {
        check_binary_name(name)?;
        self.0.push(name, value.as_ref());
        Ok(())
    }

    /// The first text value of this name; `None` for a `-bin` name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        if is_binary(name) {
            return None;
        }
        std::str::from_utf8(self.0.first(name)?).ok()
    }

    /// The first binary value of this `-bin` name.
    #[must_use]
    pub fn get_bin(&self, name: &str) -> Option<&[u8]> {
        if is_binary(name) {
            self.0.first(name)
        } else {
            None
        }
    }

    /// All values of this name, as bytes, in their order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0
            .iter()
            .filter(move |(n, _)| *n == name)
            .map(|(_, v)| v)
    }

    /// Every name and value in order; text values as their bytes.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter()
    }

    /// Removes every value of this name; returns whether there was one.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name)
    }

    /// Adds all of `other` after what is here.
    pub fn extend(&mut self, other: &Metadata) {
        for (name, value) in other.iter() {
            self.0.push(name, value);
        }
    }

    /// Adds those of `other` whose names have no value here.
    pub fn complete(&mut self, other: &Metadata) {
        if other.is_empty() {
            return;
        }
        let own = self.0.len();
        for (name, value) in other.iter() {
            // What was added is behind those that were here.
            if !self.0.iter().take(own).any(|(n, _)| n == name) {
                self.0.push(name, value);
            }
        }
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// Bytes of all names and values together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// Adds what a peer sent, as its protocol decoded it. Unlike the setters it
    /// keeps values a peer should not have sent (control characters but CR, LF
    /// and NUL, bytes over 0x7e), since a reader may need them; names that are
    /// reserved or malformed are not metadata and are left out.
    pub fn receive(&mut self, name: &str, value: &[u8]) {
        let smuggles = value.iter().any(|b| matches!(b, b'\r' | b'\n' | 0));
        if is_well_formed(name) && !is_reserved(name) && (is_binary(name) || !smuggles) {
            self.0.push(name, value);
        }
    }
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|(n, v)| (n, v.escape_ascii().to_string())))
            .finish()
    }
}

/// Whether values of this name are bytes rather than text: it ends in `-bin`.
#[must_use]
pub fn is_binary(name: &str) -> bool {
    name.ends_with("-bin")
}

/// Whether this name belongs to HTTP or to an RPC protocol, not to the user.
#[must_use]
pub fn is_reserved(name: &str) -> bool {
    RESERVED_NAMES.contains(&name) || RESERVED_PREFIXES.iter().any(|p| name.starts_with(p))
}

fn is_well_formed(name: &str) -> bool {
    let fits = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    !name.is_empty() && name.bytes().all(fits)
}

fn check_name(name: &str) -> Result<(), MetadataError> {
    if !is_well_formed(name) {
        return Err(MetadataError::Name(name.to_owned()));
    }
    if is_reserved(name) {
        return Err(MetadataError::Reserved(name.to_owned()));
    }
    Ok(())
}

fn check_binary_name(name: &str) -> Result<(), MetadataError> {
    check_name(name)?;
    if is_binary(name) {
        Ok(())
    } else {
        Err(MetadataError::NotBinary(name.to_owned()))
    }
}

fn check_text(name: &str, value: &str) -> Result<(), MetadataError> {
    check_name(name)?;
    if is_binary(name) {
        return Err(MetadataError::Binary(name.to_owned()));
    }
    let printable = value.bytes().all(|b| matches!(b, 0x20..=0x7e));
    if printable && value.trim_matches(' ') == value {
        Ok(())
    } else {
        Err(MetadataError::Value(name.to_owned()))
    }
}

/// Metadata that may not be set, and why; holds the name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetadataError {
    /// The name holds a character that no name may hold, or is empty.
    Name(String),
    /// The name belongs to HTTP or to a protocol.
    Reserved(String),
    /// The value of a text name holds a character that may not travel.
    Value(String),
    /// A `-bin` name was given text.
    Binary(String),
    /// A name that does not end in `-bin` was given bytes.
    NotBinary(String),
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(
                f,
                "metadata name {name:?} is not allowed: use lower-case ASCII letters, digits, '-', '_' and '.'"
            ),
            Self::Reserved(name) => write!(
                f,
                "metadata name {name:?} is reserved for HTTP and the RPC protocols: choose another, such as \"x-{name}\""
            ),
            Self::Value(name) => write!(
                f,
                "the value of metadata {name:?} is not allowed: use printable ASCII without spaces at its ends, or a name ending in \"-bin\" for bytes"
            ),
            Self::Binary(name) => write!(
                f,
                "metadata {name:?} ends in \"-bin\" and so holds bytes: set it with insert_bin or append_bin"
            ),
            Self::NotBinary(name) => write!(
                f,
                "metadata {name:?} holds text: name it \"{name}-bin\" to send bytes"
            ),
        }
    }
}

impl std::error::Error for MetadataError {}

/// A handler that sets metadata it may not set has a bug: `internal`.
impl From<MetadataError> for Error {
    fn from(error: MetadataError) -> Self {
        Error::internal(error.to_string()).with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completing_adds_what_has_no_value() {
        let mut metadata = Metadata::new();
        metadata.insert("a", "1").unwrap();
        let mut others = Metadata::new();
        for (name, value) in [("a", "2"), ("b", "3"), ("b", "4")] {
            others.append(name, value).unwrap();
        }
        metadata.complete(&others);
        let all: Vec<_> = metadata.iter().collect();
        assert_eq!(all, [("a", &b"1"[..]), ("b", b"3"), ("b", b"4")]);
    }

    #[test]
    fn reserved_and_malformed_names_are_refused_where_they_are_set() {
        let mut metadata = Metadata::new();
        for name in [
            "grpc-status",
            "connect-x",
            "quill-credits",
            "trailer-a",
            "te",
            "host",
        ] {
            let refused = metadata.insert(name, "1");
            assert_eq!(refused, Err(MetadataError::Reserved(name.to_owned())));
        }
        for name in ["", "X-Upper", "a b", "ü", "a:b", ":path"] {
            assert!(matches!(
                metadata.insert(name, "1"),
                Err(MetadataError::Name(_))
            ));
        }
        assert!(metadata.is_empty());
    }

    #[test]
    fn values_that_could_split_a_header_are_refused() {
        let mut metadata = Metadata::new();
        for value in ["a\r\nb: c", "\0", "ü", " a", "a ", "\t"] {
            assert!(matches!(
                metadata.append("x", value),
                Err(MetadataError::Value(_))
            ));
        }
        metadata.append("x", "a b~").unwrap();
        assert_eq!(metadata.get("x"), Some("a b~"));
    }

    #[test]
    fn text_and_bytes_do_not_mix() {
        let mut metadata = Metadata::new();
        assert!(metadata.insert("a-bin", "x").is_err());
        assert!(metadata.insert_bin("a", [1]).is_err());
        metadata.insert_bin("a-bin", [0, 10, 13]).unwrap();
        assert_eq!(metadata.get("a-bin"), None);
        assert_eq!(metadata.get_bin("a-bin"), Some(&[0, 10, 13][..]));
    }

    #[test]
    fn what_a_peer_sent_is_kept_but_for_the_protocols_own() {
        let mut metadata = Metadata::new();
        metadata.receive("grpc-timeout", b"1S");
        metadata.receive("x", "ü".as_bytes());
        metadata.receive("y", b"a\nb");
        assert_eq!(metadata.len(), 1);
        assert_eq!(metadata.get("x"), Some("ü"));
    }
}
