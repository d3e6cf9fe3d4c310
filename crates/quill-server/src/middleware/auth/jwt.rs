//! JSON Web Tokens in `authorization: Bearer` (RFC 7519, RFC 7515, RFC 8725).

mod algorithm;
mod builder;
mod claims;
mod error;
mod key;
mod key_set;
mod source;
mod validator;

pub use algorithm::Algorithm;
pub use builder::JwtBuilder;
#[cfg(feature = "config")]
pub(crate) use builder::{COOLDOWN_DEFAULT, REFRESH_DEFAULT};
pub use error::JwtError;
pub use validator::JwtValidator;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

/// base64url without padding, as all parts of tokens and keys are written.
fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests;
