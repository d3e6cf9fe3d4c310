//! Tokens that somebody else understands.

use std::fmt;
use std::future::Future;

use quill_core::{Error, RequestParts};

use super::authenticator::{Asking, Authenticator, Verdict};
use super::credentials::{Brought, authorization};
use super::identity::Identity;

type Validate = Box<dyn Fn(String) -> Asking + Send + Sync>;

/// Asks a function of yours about each `authorization: Bearer TOKEN`, such as one
/// that calls an introspection endpoint (RFC 7662) or looks into a database. What
/// it answers is not kept; a cache is its own affair.
///
/// ```
/// use quill_server::auth::{Identity, TokenValidator};
///
/// let tokens = TokenValidator::new(|token: String| async move {
///     Ok((token == "opaque").then(|| Identity::new("ann")))
/// });
/// ```
pub struct TokenValidator(Validate);

impl TokenValidator {
    /// Asks `validate`, which says whose token it is or that it is nobody's
    /// (`None`); its error, such as `unavailable`, is the call's.
    pub fn new<F, Fut>(validate: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Option<Identity>, Error>> + Send + 'static,
    {
        Self(Box::new(move |token| {
            let validated = validate(token);
            Box::pin(async move {
                let identity = validated.await?;
                identity.ok_or_else(|| Error::unauthenticated("this token is not valid"))
            })
        }))
    }
}

impl Authenticator for TokenValidator {
    fn authenticate(&self, request: &RequestParts) -> Verdict {
        match authorization(request, "Bearer") {
            Brought::Nothing => Verdict::NoCredentials,
            Brought::Malformed(error) => Verdict::Refused(error),
            Brought::Credentials(token) => Verdict::Asking((self.0)(token.to_owned())),
        }
    }

    fn challenge(&self) -> Option<&str> {
        Some("Bearer")
    }
}

impl fmt::Debug for TokenValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenValidator")
    }
}
