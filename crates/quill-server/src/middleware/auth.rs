//! Who makes a call, and whether they may.
//!
//! An [`AuthLayer`] asks its [`Authenticator`]s in turn, holds each method to its
//! rule, and puts the [`Identity`] it found into the request's extensions. There is
//! one for [API keys](ApiKeyValidator), [JSON Web Tokens](JwtValidator),
//! [opaque tokens](TokenValidator), [Basic](BasicValidator) and
//! [certificates](CertificateValidator); a trait for any other.
//!
//! Rules go by the path a method is registered under, not by what a caller wrote:
//! a path in any other spelling is no method, and is refused before.

mod api_key;
mod authenticator;
mod basic;
mod certificate;
mod credentials;
mod identity;
mod jwt;
mod layer;
mod rules;
mod secrets;
mod service;
mod token;

pub use api_key::ApiKeyValidator;
pub use authenticator::{Asking, Authenticator, Verdict};
pub use basic::BasicValidator;
pub use certificate::CertificateValidator;
pub use identity::Identity;
pub use jwt::{Algorithm, JwtBuilder, JwtError, JwtValidator};
#[cfg(feature = "config")]
pub(crate) use jwt::{COOLDOWN_DEFAULT, REFRESH_DEFAULT};
pub use layer::AuthLayer;
pub use service::AuthService;
pub use token::TokenValidator;
