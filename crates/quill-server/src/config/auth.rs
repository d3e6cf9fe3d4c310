//! Who may call.

use std::collections::BTreeMap;
use std::path::PathBuf;

use quill_config::{ConfigError, Read, Time};
use quill_core::Metadata;
use quill_transport::tls::ClientTls;
use serde::Deserialize;

use super::{Settings, credentials};
use crate::middleware::auth::{
    Algorithm, ApiKeyValidator, AuthLayer, Authenticator, BasicValidator, COOLDOWN_DEFAULT,
    CertificateValidator, Identity, JwtValidator, REFRESH_DEFAULT,
};

/// Kinds of credentials, in the order in which they are asked, and rules.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Auth {
    api_keys: Option<ApiKeys>,
    basic: Option<Basic>,
    jwt: Option<Jwt>,
    certificates: Option<Certificates>,
    optional: bool,
    public: Vec<String>,
    scopes: BTreeMap<String, Vec<String>>,
    all_scopes: Vec<String>,
}

impl Auth {
    /// Refuses an address with a password.
    pub(super) fn check_logins(&self, read: &Read<Settings>) -> Result<(), ConfigError> {
        match self.jwt.as_ref().and_then(|jwt| jwt.jwks_url.as_ref()) {
            Some(url) => read.without_login("auth.jwt.jwks_url", url),
            None => Ok(()),
        }
    }

    pub(super) fn layer(&self, read: &Read<Settings>) -> Result<AuthLayer, ConfigError> {
        let mut layer = None;
        if let Some(keys) = &self.api_keys {
            layer = asking(layer, keys.validator(read)?);
        }
        if let Some(basic) = &self.basic {
            layer = asking(layer, basic.validator(read)?);
        }
        if let Some(jwt) = &self.jwt {
            layer = asking(layer, jwt.validator(read)?);
        }
        if let Some(certificates) = &self.certificates {
            layer = asking(layer, certificates.validator());
        }
        let Some(mut layer) = layer else {
            let wrong = "it knows no credentials: there are api_keys, basic, jwt, certificates";
            return Err(read.error("auth", wrong));
        };
        if self.optional {
            layer = layer.optional();
        }
        for path in &self.public {
            layer = layer.public(path);
        }
        for (path, scopes) in &self.scopes {
            layer = layer.scopes(path, scopes.iter().cloned());
        }
        if !self.all_scopes.is_empty() {
            layer = layer.all_scopes(self.all_scopes.iter().cloned());
        }
        Ok(layer)
    }

    /// The header in which API keys come, where it is one of the deployer's own.
    pub(super) fn key_header(&self) -> Option<&str> {
        self.api_keys.as_ref()?.header.as_deref()
    }
}

/// Asks one more kind of credentials.
fn asking(layer: Option<AuthLayer>, authenticator: impl Authenticator) -> Option<AuthLayer> {
    Some(match layer {
        None => AuthLayer::new(authenticator),
        Some(layer) => layer.or(authenticator),
    })
}

/// API keys, in a header or as Bearer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApiKeys {
    file: PathBuf,
    header: Option<String>,
    #[serde(default)]
    bearer: bool,
}

impl ApiKeys {
    fn validator(&self, read: &Read<Settings>) -> Result<ApiKeyValidator, ConfigError> {
        let mut keys = ApiKeyValidator::new();
        match &self.header {
            Some(_) if self.bearer => {
                let wrong = "keys come in this header, or as bearer: one of them";
                return Err(read.error("auth.api_keys.header", wrong));
            }
            Some(name) => {
                let sent = Metadata::new().insert(&name.to_ascii_lowercase(), "key");
                sent.map_err(|error| read.error("auth.api_keys.header", error))?;
                keys = keys.in_header(name);
            }
            None if self.bearer => keys = keys.as_bearer(),
            None => {}
        }
        let known = credentials::read(&read.path(&self.file))?;
        let known = known.into_iter();
        Ok(known.fold(keys, |keys, (hash, identity)| {
            keys.hashed_key(hash, identity)
        }))
    }
}

/// Names and passwords.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Basic {
    file: PathBuf,
    realm: String,
}

impl Basic {
    fn validator(&self, read: &Read<Settings>) -> Result<BasicValidator, ConfigError> {
        let users = credentials::read(&read.path(&self.file))?.into_iter();
        let none = BasicValidator::new(&self.realm);
        Ok(users.fold(none, |known, (hash, identity)| {
            known.hashed_user(hash, identity)
        }))
    }
}

/// Signed tokens.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Jwt {
    issuers: Vec<String>,
    any_issuer: bool,
    audiences: Vec<String>,
    any_audience: bool,
    jwks_url: Option<String>,
    jwks_file: Option<PathBuf>,
    secret_file: Option<PathBuf>,
    ca: Option<PathBuf>,
    algorithms: Vec<String>,
    leeway: Option<Time>,
    refresh: Option<Time>,
    refresh_cooldown: Option<Time>,
}

impl Jwt {
    fn validator(&self, read: &Read<Settings>) -> Result<JwtValidator, ConfigError> {
        let wrong = |key: &str, error: &dyn std::fmt::Display| {
            read.error(&format!("auth.jwt.{key}"), error)
        };
        let mut builder = JwtValidator::builder();
        for issuer in &self.issuers {
            builder = builder.issuer(issuer);
        }
        if self.any_issuer {
            builder = builder.any_issuer();
        }
        for audience in &self.audiences {
            builder = builder.audience(audience);
        }
        if self.any_audience {
            builder = builder.any_audience();
        }
        builder = match (&self.jwks_url, &self.jwks_file, &self.secret_file) {
            (Some(url), None, None) => builder.jwks_url(url),
            (None, Some(file), None) => builder.jwks_file(read.path(file)),
            (None, None, Some(file)) => {
                let secret = super::secret(&read.path(file));
                builder.secret(secret.map_err(|error| wrong("secret_file", &error))?)
            }
            _ => return Err(read.error("auth.jwt", "set one of jwks_url, jwks_file, secret_file")),
        };
        if let Some(authorities) = &self.ca {
            let tls = ClientTls::builder().ca_file(read.path(authorities)).build();
            builder = builder.tls(tls.map_err(|error| wrong("ca", &error))?);
        }
        if !self.algorithms.is_empty() {
            let named = self.algorithms.iter().map(|name| algorithm(name));
            let named = named.collect::<Result<Vec<_>, _>>();
            builder = builder.algorithms(named.map_err(|error| wrong("algorithms", &error))?);
        }
        if let Some(leeway) = self.leeway {
            builder = builder.leeway(leeway.duration());
        }
        if self.refresh.is_some() || self.refresh_cooldown.is_some() {
            let or = |said: Option<Time>, default| said.map_or(default, Time::duration);
            let every = or(self.refresh, REFRESH_DEFAULT);
            builder = builder.refresh(every, or(self.refresh_cooldown, COOLDOWN_DEFAULT));
        }
        builder
            .build()
            .map_err(|error| read.error("auth.jwt", error))
    }
}

fn algorithm(name: &str) -> Result<Algorithm, String> {
    Algorithm::from_name(name).ok_or_else(|| {
        let all = Algorithm::ASYMMETRIC.iter().chain(&Algorithm::SYMMETRIC);
        let all: Vec<_> = all.map(|algorithm| algorithm.name()).collect();
        format!("{name:?} is no algorithm: allowed are {}", all.join(", "))
    })
}

/// Certificates of connections, which `tls.client_ca` checks.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Certificates {
    names: BTreeMap<String, Named>,
    only_named: bool,
}

/// Who the holder of a name is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Named {
    subject: Option<String>,
    scopes: Vec<String>,
}

impl Certificates {
    fn validator(&self) -> CertificateValidator {
        let mut validator = CertificateValidator::any();
        for (name, named) in &self.names {
            let subject = named.subject.as_ref().unwrap_or(name);
            let identity = Identity::new(subject).with_scopes(named.scopes.iter().cloned());
            validator = validator.named(name, identity);
        }
        match self.only_named {
            true => validator.only_named(),
            false => validator,
        }
    }
}
