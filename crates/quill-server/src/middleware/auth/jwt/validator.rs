//! The path of a token.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use quill_core::{Error, RequestParts};
use serde_json::{Map, Value};

use super::algorithm::Algorithm;
use super::builder::JwtBuilder;
use super::claims::Expected;
use super::decode;
use super::key_set::KeySet;
use super::source::Keys;
use crate::middleware::auth::authenticator::{Authenticator, Verdict};
use crate::middleware::auth::credentials::{Brought, authorization};
use crate::middleware::auth::identity::Identity;

/// Knows callers by JSON Web Tokens that an issuer signed.
///
/// The signature is checked with one of the issuer's keys, which come from a file
/// or a URL and are fetched again as they age, and when a token names one that is
/// not there; by an algorithm that is allowed and that the key is for. The token
/// must say until when it is valid, whose it is, who issued it and for whom; its
/// `scope` is what the caller may do.
///
/// ```
/// use quill_server::auth::{AuthLayer, JwtValidator};
///
/// # fn example() -> Result<AuthLayer, quill_server::auth::JwtError> {
/// let tokens = JwtValidator::builder()
///     .issuer("https://issuer.example")
///     .audience("orders")
///     .jwks_file("issuer-keys.json")
///     .build()?;
/// Ok(AuthLayer::new(tokens))
/// # }
/// ```
pub struct JwtValidator(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) expected: Expected,
    pub(super) keys: Arc<Keys>,
}

impl JwtValidator {
    /// A validator to be set up.
    pub fn builder() -> JwtBuilder {
        JwtBuilder::new()
    }

    pub(super) fn new(shared: Shared) -> Self {
        Self(Arc::new(shared))
    }
}

impl Authenticator for JwtValidator {
    fn authenticate(&self, request: &RequestParts) -> Verdict {
        let token = match authorization(request, "Bearer") {
            Brought::Nothing => return Verdict::NoCredentials,
            Brought::Malformed(error) => return Verdict::Refused(error),
            Brought::Credentials(token) => token,
        };
        let token = match Token::read(token, &self.0.algorithms) {
            Ok(token) => token,
            Err(why) => return Verdict::Refused(Error::unauthenticated(why)),
        };
        let (keys, is_old) = self.0.keys.at_hand();
        let Some(keys) = keys else {
            return self.ask(token);
        };
        if keys
            .find(token.key_id.as_deref(), token.algorithm)
            .is_none()
            && self.0.keys.may_fetch()
        {
            return self.ask(token);
        }
        if is_old {
            // Those at hand serve until the new ones are there.
            let _ = self.0.keys.begin_fetch();
        }
        match self.0.check(&token, &keys) {
            Ok(identity) => Verdict::Known(identity),
            Err(error) => Verdict::Refused(error),
        }
    }

    fn challenge(&self) -> Option<&str> {
        Some("Bearer")
    }
}

impl JwtValidator {
    fn ask(&self, token: Token) -> Verdict {
        let shared = Arc::clone(&self.0);
        Verdict::Asking(Box::pin(async move {
            let keys = shared.keys.fetched().await?;
            shared.check(&token, &keys)
        }))
    }
}

impl Shared {
    fn check(&self, token: &Token, keys: &KeySet) -> Result<Identity, Error> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0.0, |now| now.as_secs_f64());
        self.check_at(token, keys, now)
    }

    /// The same at so many seconds since 1970.
    pub(super) fn check_at(
        &self,
        token: &Token,
        keys: &KeySet,
        now: f64,
    ) -> Result<Identity, Error> {
        let refused = Error::unauthenticated;
        let Some(key) = keys.find(token.key_id.as_deref(), token.algorithm) else {
            return Err(refused("this token is signed with a key that is not known"));
        };
        if !key.verifies(token.algorithm, token.signed.as_bytes(), &token.signature) {
            return Err(refused("this token's signature is not right"));
        }
        // Nothing of what it says is looked at before.
        let claims = token.claims().ok_or_else(|| refused(MALFORMED))?;
        self.expected.check(claims, now).map_err(refused)
    }
}

const MALFORMED: &str = "this token is malformed";

/// A token whose signature was not checked yet.
pub(super) struct Token {
    algorithm: Algorithm,
    key_id: Option<String>,
    /// Header and claims, as they were signed.
    signed: String,
    signature: Vec<u8>,
}

impl Token {
    /// Reads `header.claims.signature` (RFC 7515, section 3.1).
    pub(super) fn read(token: &str, allowed: &[Algorithm]) -> Result<Self, &'static str> {
        let (signed, signature) = token.rsplit_once('.').ok_or(MALFORMED)?;
        let (header, claims) = signed.split_once('.').ok_or(MALFORMED)?;
        if claims.contains('.') {
            return Err(MALFORMED);
        }
        let header = object(header).ok_or(MALFORMED)?;
        // What must be understood, and is not (RFC 7515, section 4.1.11).
        if header.contains_key("crit") {
            return Err("this token has extensions that are not understood");
        }
        let algorithm = header.get("alg").and_then(Value::as_str).ok_or(MALFORMED)?;
        let algorithm = Algorithm::from_name(algorithm).filter(|one| allowed.contains(one));
        let key_id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err(MALFORMED),
        };
        Ok(Self {
            algorithm: algorithm.ok_or("this token is signed in a way that is not allowed")?,
            key_id,
            signed: signed.to_owned(),
            signature: decode(signature).ok_or(MALFORMED)?,
        })
    }

    fn claims(&self) -> Option<Map<String, Value>> {
        let (_, claims) = self.signed.split_once('.')?;
        object(claims)
    }
}

fn object(encoded: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&decode(encoded)?).ok()
}

impl fmt::Debug for JwtValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtValidator")
            .field("algorithms", &self.0.algorithms)
            .field("expected", &self.0.expected)
            .field("keys", &self.0.keys)
            .finish()
    }
}
