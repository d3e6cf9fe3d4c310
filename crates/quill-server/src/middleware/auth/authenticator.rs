//! What tells who makes a call.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use quill_core::{Error, RequestParts};

use super::identity::Identity;

/// Finding out who makes a call, where that takes a while.
pub type Asking = Pin<Box<dyn Future<Output = Result<Identity, Error>> + Send>>;

/// What an [`Authenticator`] says of a call.
pub enum Verdict {
    /// The call has no credentials of this kind: the next is asked.
    NoCredentials,
    /// This is who makes it.
    Known(Identity),
    /// It has credentials, and they are no good: with `unauthenticated`, or what
    /// kept them from being looked at.
    Refused(Error),
    /// That has to be found out.
    Asking(Asking),
}

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCredentials => f.write_str("NoCredentials"),
            Self::Known(identity) => f.debug_tuple("Known").field(identity).finish(),
            Self::Refused(error) => f.debug_tuple("Refused").field(error).finish(),
            Self::Asking(_) => f.write_str("Asking"),
        }
    }
}

/// Tells who makes a call, by one kind of credentials.
pub trait Authenticator: Send + Sync + 'static {
    /// Who makes this call.
    fn authenticate(&self, request: &RequestParts) -> Verdict;

    /// How to ask for such credentials: the value of a `www-authenticate` header
    /// (RFC 9110, section 11.6.1); `None` where there is no such way.
    fn challenge(&self) -> Option<&str> {
        None
    }
}

impl<A: Authenticator + ?Sized> Authenticator for Arc<A> {
    fn authenticate(&self, request: &RequestParts) -> Verdict {
        (**self).authenticate(request)
    }

    fn challenge(&self) -> Option<&str> {
        (**self).challenge()
    }
}
