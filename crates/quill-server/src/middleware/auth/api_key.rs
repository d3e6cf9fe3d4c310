//! API keys.

use std::borrow::Cow;
use std::fmt;

use quill_core::{Error, Metadata, RequestParts};

use super::authenticator::{Authenticator, Verdict};
use super::credentials::{Brought, authorization, header};
use super::identity::Identity;
use super::secrets::{Digest, Secrets, sha256};

const HEADER_DEFAULT: &str = "x-api-key";

/// Knows callers by keys of theirs, such as `x-api-key: 4f2c…`.
///
/// Only the keys' SHA-256 is kept. That suits keys that were generated, of 16
/// random bytes or more, and no others: passwords that people choose can be
/// guessed from it.
///
/// ```
/// use quill_server::auth::{ApiKeyValidator, Identity};
///
/// let keys = ApiKeyValidator::new()
///     .key("4f2c9a61b0d8", Identity::new("ann").with_scopes(["orders.read"]));
/// let identity = keys.validate("4f2c9a61b0d8").expect("ann's key");
/// assert_eq!(identity.subject(), "ann");
/// assert!(keys.validate("4f2c9a61b0d9").is_none());
/// ```
pub struct ApiKeyValidator {
    keys: Secrets,
    place: Place,
}

/// Where a caller has its key.
#[derive(Debug)]
enum Place {
    Header(Cow<'static, str>),
    Bearer,
}

impl ApiKeyValidator {
    /// Knows nobody yet; keys come in `x-api-key`.
    #[must_use]
    pub fn new() -> Self {
        Self {
            keys: Secrets::new(),
            place: Place::Header(HEADER_DEFAULT.into()),
        }
    }

    /// Looks for keys in another header, in whatever case its name is written.
    ///
    /// # Panics
    /// If no caller can send metadata of that name: it is reserved,
    /// as `content-type` is, for bytes (`-bin`), or malformed.
    #[must_use]
    pub fn in_header(mut self, name: impl AsRef<str>) -> Self {
        let name = name.as_ref().to_ascii_lowercase();
        if let Err(error) = Metadata::new().insert(&name, "key") {
            panic!("no API key can come in the header {name:?}: {error}");
        }
        self.place = Place::Header(name.into());
        self
    }

    /// Looks for keys in `authorization: Bearer KEY`.
    #[must_use]
    pub fn as_bearer(mut self) -> Self {
        self.place = Place::Bearer;
        self
    }

    /// Knows a key, whose hash alone is kept.
    #[must_use]
    pub fn key(self, key: impl AsRef<[u8]>, identity: Identity) -> Self {
        self.hashed_key(sha256(key.as_ref()), identity)
    }

    /// Knows a key by its SHA-256, for keys that are kept hashed.
    #[must_use]
    pub fn hashed_key(mut self, sha256: [u8; 32], identity: Identity) -> Self {
        let digest: Digest = sha256;
        self.keys.insert(digest, identity);
        self
    }

    /// Whose key this is.
    #[inline]
    #[must_use]
    pub fn validate(&self, key: &str) -> Option<&Identity> {
        self.keys.find(key.as_bytes())
    }
}

impl Default for ApiKeyValidator {
    fn default() -> Self {
        Self::new()
    }
}

impl Authenticator for ApiKeyValidator {
    fn authenticate(&self, request: &RequestParts) -> Verdict {
        let brought = match &self.place {
            Place::Header(name) => header(request, name),
            Place::Bearer => authorization(request, "Bearer"),
        };
        match brought {
            Brought::Nothing => Verdict::NoCredentials,
            Brought::Malformed(error) => Verdict::Refused(error),
            Brought::Credentials(key) => match self.validate(key) {
                Some(identity) => Verdict::Known(identity.clone()),
                None => Verdict::Refused(Error::unauthenticated("this API key is not known")),
            },
        }
    }

    fn challenge(&self) -> Option<&str> {
        matches!(self.place, Place::Bearer).then_some("Bearer")
    }
}

impl fmt::Debug for ApiKeyValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeyValidator")
            .field("keys", &self.keys.len())
            .field("place", &self.place)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_found_in_whatever_case_it_was_named() {
        let keys = ApiKeyValidator::new().in_header("X-Tenant-Key");
        let keys = keys.key("abc", Identity::new("ann"));
        let mut request = RequestParts::default();
        request.metadata.append("x-tenant-key", "abc").unwrap();
        assert!(matches!(keys.authenticate(&request), Verdict::Known(_)));
        let wrong = keys.in_header("authorization");
        assert!(matches!(
            wrong.authenticate(&request),
            Verdict::NoCredentials
        ));
    }

    #[test]
    fn a_header_that_nobody_can_send_is_told() {
        for name in ["Content-Type", "quill-key", "key-bin", "x key", ""] {
            let told = std::panic::catch_unwind(|| ApiKeyValidator::new().in_header(name));
            assert!(told.is_err(), "{name}");
        }
    }
}
