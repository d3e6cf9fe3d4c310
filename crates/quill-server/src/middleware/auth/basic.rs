//! Names and passwords in `authorization: Basic` (RFC 7617).

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use quill_core::{Error, RequestParts};

use super::authenticator::{Authenticator, Verdict};
use super::credentials::{Brought, authorization};
use super::identity::Identity;
use super::secrets::{Secrets, sha256};

/// Knows callers by a name and a password.
///
/// Only a SHA-256 of both is kept, which suits generated passwords (accounts of
/// machines) and no others. For passwords that people choose, write an
/// [`Authenticator`] over a hash made for them, such as Argon2.
pub struct BasicValidator {
    pairs: Secrets,
    challenge: String,
}

impl BasicValidator {
    /// Knows nobody yet. The realm tells people what they are asked for.
    #[must_use]
    pub fn new(realm: &str) -> Self {
        let printable =
            |letter: &char| matches!(letter, ' '..='~') && !matches!(letter, '"' | '\\');
        let realm: String = realm.chars().filter(printable).collect();
        Self {
            pairs: Secrets::new(),
            challenge: format!("Basic realm=\"{realm}\", charset=\"UTF-8\""),
        }
    }

    /// Knows a name, which has no `:`, by this password.
    #[must_use]
    pub fn user(mut self, name: &str, password: &str, identity: Identity) -> Self {
        let pair = [name, ":", password].concat();
        self.pairs.insert(sha256(pair.as_bytes()), identity);
        self
    }

    /// Knows a name and its password by the SHA-256 of `NAME:PASSWORD`, for those
    /// that are kept hashed.
    #[must_use]
    pub fn hashed_user(mut self, sha256: [u8; 32], identity: Identity) -> Self {
        self.pairs.insert(sha256, identity);
        self
    }
}

impl Authenticator for BasicValidator {
    fn authenticate(&self, request: &RequestParts) -> Verdict {
        let encoded = match authorization(request, "Basic") {
            Brought::Nothing => return Verdict::NoCredentials,
            Brought::Malformed(error) => return Verdict::Refused(error),
            Brought::Credentials(encoded) => encoded,
        };
        let pair = BASE64_STANDARD.decode(encoded).ok();
        match pair.and_then(|pair| self.pairs.find(&pair)) {
            Some(identity) => Verdict::Known(identity.clone()),
            None => Verdict::Refused(Error::unauthenticated(
                "this name and password are not known",
            )),
        }
    }

    fn challenge(&self) -> Option<&str> {
        Some(&self.challenge)
    }
}

impl fmt::Debug for BasicValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BasicValidator")
            .field("users", &self.pairs.len())
            .finish_non_exhaustive()
    }
}
