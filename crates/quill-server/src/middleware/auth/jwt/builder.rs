//! A validator's settings.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use quill_transport::tls::ClientTls;
use quill_transport::{Channel, ClientOptions, Endpoint};

use super::algorithm::Algorithm;
use super::claims::Expected;
use super::error::JwtError;
use super::key_set::KeySet;
use super::source::{Keys, Pace, Source};
use super::validator::{JwtValidator, Shared};

const LEEWAY_DEFAULT: Duration = Duration::from_secs(30);
const LEEWAY_MAX: Duration = Duration::from_secs(600);
pub(crate) const REFRESH_DEFAULT: Duration = Duration::from_secs(300);
pub(crate) const COOLDOWN_DEFAULT: Duration = Duration::from_secs(30);

/// The settings of a [`JwtValidator`]: who issues tokens, for whom, and the keys
/// are to be said; for the rest there are defaults.
#[must_use = "nothing is built before `build`"]
pub struct JwtBuilder {
    issuers: Names,
    audiences: Names,
    keys: Option<From>,
    algorithms: Vec<Algorithm>,
    leeway: Duration,
    pace: Pace,
    tls: Option<ClientTls>,
}

/// Of which one is to be in a token.
#[derive(Debug, Default)]
struct Names {
    named: Vec<String>,
    is_any: bool,
}

enum From {
    Json(Vec<u8>),
    Secret(Vec<u8>),
    File(PathBuf),
    Url(String),
}

impl JwtBuilder {
    pub(super) fn new() -> Self {
        Self {
            issuers: Names::default(),
            audiences: Names::default(),
            keys: None,
            algorithms: Algorithm::ASYMMETRIC.to_vec(),
            leeway: LEEWAY_DEFAULT,
            pace: Pace {
                refresh: REFRESH_DEFAULT,
                cooldown: COOLDOWN_DEFAULT,
            },
            tls: None,
        }
    }

    /// Takes tokens of this issuer (`iss`); said again, of that one too.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuers.named.push(issuer.into());
        self
    }

    /// Takes tokens whoever they say issued them: their keys are what counts.
    pub fn any_issuer(mut self) -> Self {
        self.issuers.is_any = true;
        self
    }

    /// Takes tokens for this audience (`aud`); said again, for that one too.
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.named.push(audience.into());
        self
    }

    /// Takes tokens that the issuer made for others too: whoever has one of those
    /// can call here in its owner's name.
    pub fn any_audience(mut self) -> Self {
        self.audiences.is_any = true;
        self
    }

    /// The issuer's keys: a JWK set, as text.
    pub fn jwks(mut self, json: impl Into<Vec<u8>>) -> Self {
        self.keys = Some(From::Json(json.into()));
        self
    }

    /// A file with the issuer's keys, a JWK set. It is read at the first token, and
    /// again as [`refresh`](Self::refresh) says.
    pub fn jwks_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.keys = Some(From::File(path.into()));
        self
    }

    /// The URL of the issuer's keys, a JWK set; over `https` with the authorities
    /// of [`tls`](Self::tls). Keys are fetched at the first token, and again as
    /// [`refresh`](Self::refresh) says.
    pub fn jwks_url(mut self, url: impl Into<String>) -> Self {
        self.keys = Some(From::Url(url.into()));
        self
    }

    /// One shared secret in place of keys, for tokens signed by HMAC. It has as many
    /// bytes as the hash at least: 32 for HS256.
    pub fn secret(mut self, secret: impl AsRef<[u8]>) -> Self {
        self.keys = Some(From::Secret(secret.as_ref().to_owned()));
        self
    }

    /// How tokens may be signed: by any of [`Algorithm::ASYMMETRIC`] unless set.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// How far the issuer's clock and ours may be apart: 30 s unless set, at most
    /// 10 minutes.
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway = leeway;
        self
    }

    /// How old keys from a file or a URL may become before they are fetched again,
    /// which no call waits for: 5 minutes unless set. A token that names a key that
    /// is not there has them fetched too, but no more often than every `cooldown`,
    /// 30 s unless set.
    pub fn refresh(mut self, every: Duration, cooldown: Duration) -> Self {
        self.pace = Pace {
            refresh: every,
            cooldown,
        };
        self
    }

    /// What TLS is to trust at the keys' URL; the public authorities unless set.
    pub fn tls(mut self, tls: ClientTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// The validator.
    ///
    /// # Errors
    /// No issuer, audience or keys; keys that can't be read, or of another kind
    /// than the algorithms; a URL that is none.
    pub fn build(self) -> Result<JwtValidator, JwtError> {
        if self.algorithms.is_empty() {
            return Err(JwtError::new("no algorithm is allowed: name one at least"));
        }
        if self.leeway > LEEWAY_MAX {
            return Err(JwtError::new("the leeway can't be over 10 minutes"));
        }
        let expected = Expected {
            issuers: self.issuers.expected("issuer")?,
            audiences: self.audiences.expected("audience")?,
            leeway: self.leeway,
        };
        let Some(from) = self.keys else {
            return Err(JwtError::new(
                "no keys: set jwks, jwks_file, jwks_url or secret",
            ));
        };
        let keys = match from {
            From::Json(json) => fixed(KeySet::read(&json)?, &self.algorithms)?,
            From::Secret(secret) => fixed(KeySet::of_secret(&secret), &self.algorithms)?,
            From::File(path) => Keys::new(Source::File(path), self.pace),
            From::Url(url) => Keys::new(source(&url, self.tls)?, self.pace),
        };
        Ok(JwtValidator::new(Shared {
            algorithms: self.algorithms,
            expected,
            keys: Arc::new(keys),
        }))
    }
}

/// Without what it has of keys, which may be a secret.
impl fmt::Debug for JwtBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtBuilder")
            .field("issuers", &self.issuers)
            .field("audiences", &self.audiences)
            .field("algorithms", &self.algorithms)
            .finish_non_exhaustive()
    }
}

impl Names {
    fn expected(self, what: &str) -> Result<Option<Vec<String>>, JwtError> {
        match (self.named.is_empty(), self.is_any) {
            (false, false) => Ok(Some(self.named)),
            (true, true) => Ok(None),
            (false, true) => Err(JwtError::new(format!("{what} and any_{what} are both set"))),
            (true, false) => Err(JwtError::new(format!(
                "no {what}: set {what}, or any_{what}"
            ))),
        }
    }
}

/// Keys that stay as they are, so that one that fits nothing is a mistake.
fn fixed(keys: KeySet, algorithms: &[Algorithm]) -> Result<Keys, JwtError> {
    let is_of_use = |algorithm: &Algorithm| keys.keys().iter().any(|key| key.is_for(*algorithm));
    if !algorithms.iter().any(is_of_use) {
        return Err(JwtError::new(
            "none of the keys is for an algorithm that is allowed; secrets are for HS256, HS384 and HS512, which are not unless they are named, and as long as the hash at least: 32, 48 and 64 bytes",
        ));
    }
    Ok(Keys::fixed(keys))
}

fn source(url: &str, tls: Option<ClientTls>) -> Result<Source, JwtError> {
    let wrong = |error: &dyn fmt::Display| JwtError::new(format!("{url}: {error}"));
    let scheme_end = url.find("://").map(|at| at + 3);
    let Some(authority) = scheme_end.and_then(|start| url.get(start..)) else {
        return Err(wrong(&"allowed are https://host/path and http://host/path"));
    };
    let path_at = authority.find('/').unwrap_or(authority.len());
    let (base, target) = url.split_at(url.len() - authority.len() + path_at);
    let endpoint = Endpoint::parse(base).map_err(|error| wrong(&error))?;
    let tls = match tls {
        None if endpoint.is_secure() => Some(
            ClientTls::builder()
                .build()
                .map_err(|error| wrong(&error))?,
        ),
        tls => tls,
    };
    // Which servers of keys all speak.
    let mut options = ClientOptions::default();
    options.http1 = true;
    let channel = Channel::new(endpoint, options, tls).map_err(|error| wrong(&error))?;
    let target = if target.is_empty() { "/" } else { target };
    Ok(Source::Url {
        channel,
        target: target.to_owned(),
    })
}
