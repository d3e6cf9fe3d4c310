//! The layer and its settings.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use quill_core::{Error, RequestParts};
use tower_layer::Layer;

use super::authenticator::{Asking, Authenticator, Verdict};
use super::identity::Identity;
use super::rules::{Rule, Rules};
use super::service::AuthService;

/// Lets in callers that are known.
///
/// All methods ask for credentials, unless they are said to be public. A handler
/// has the [`Identity`] in `request.extensions()`. Callers without credentials get
/// `unauthenticated`, with `www-authenticate` as a header in HTTP answers, and those
/// that may not do a thing `permission_denied`.
///
/// ```
/// use quill_server::Server;
/// use quill_server::auth::{ApiKeyValidator, AuthLayer, Identity};
///
/// let keys = ApiKeyValidator::new().key("4f2c9a61b0d8", Identity::new("ann"));
/// let builder = Server::builder().layer(
///     AuthLayer::new(keys)
///         .public("/grpc.health.v1.Health/*")
///         .scopes("/orders.v1.Orders/Cancel", ["orders.write"]),
/// );
/// ```
#[derive(Clone)]
pub struct AuthLayer(Arc<Config>);

/// What a layer and its services share.
#[derive(Clone)]
pub(super) struct Config {
    authenticators: Vec<Arc<dyn Authenticator>>,
    rules: Rules,
    is_optional: bool,
}

impl AuthLayer {
    /// Lets in whom `authenticator` knows.
    #[must_use]
    pub fn new(authenticator: impl Authenticator) -> Self {
        Self(Arc::new(Config {
            authenticators: vec![Arc::new(authenticator)],
            rules: Rules::default(),
            is_optional: false,
        }))
    }

    fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Asks another too, about calls that have no credentials for those before.
    #[must_use]
    pub fn or(self, authenticator: impl Authenticator) -> Self {
        self.with(|config| config.authenticators.push(Arc::new(authenticator)))
    }

    /// Lets calls without credentials in, without an identity; those whose
    /// credentials are no good are still refused.
    #[must_use]
    pub fn optional(self) -> Self {
        self.with(|config| config.is_optional = true)
    }

    /// Opens a method (`/package.Service/Method`), a service (`/package.Service/*`) or
    /// all that has no rule of its own (`/*`) to everybody: its calls' credentials are
    /// not looked at. A server without such a method or service is not built.
    #[must_use]
    pub fn public(self, path: &str) -> Self {
        self.with(|config| config.rules.set(path, Rule::public()))
    }

    /// Asks the callers of a method or a service, written as for
    /// [`public`](Self::public), for all of these scopes. A method's own rule
    /// stands in place of its service's.
    #[must_use]
    pub fn scopes<S: Into<String>>(self, path: &str, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes = scopes.into_iter().map(Into::into).collect();
        self.with(|config| config.rules.set(path, Rule::scopes(scopes)))
    }

    /// Asks the callers of all methods without a rule of their own for these scopes.
    #[must_use]
    pub fn all_scopes<S: Into<String>>(self, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes = scopes.into_iter().map(Into::into).collect();
        self.with(|config| config.rules.set_other(Rule::scopes(scopes)))
    }
}

/// What comes of a call.
pub(super) enum Admission {
    /// It goes on, with an identity where there is one.
    Admitted(Option<Identity>),
    Refused(Error),
    Asking(Asking),
}

impl Config {
    pub(super) fn admit(&self, request: &RequestParts) -> Admission {
        let rule = self.rules.of(request.method.as_deref());
        if rule.is_public {
            return Admission::Admitted(None);
        }
        for authenticator in &self.authenticators {
            match authenticator.authenticate(request) {
                Verdict::NoCredentials => {}
                Verdict::Known(identity) => {
                    return match rule.admit(Some(&identity)) {
                        Ok(()) => Admission::Admitted(Some(identity)),
                        Err(error) => Admission::Refused(error),
                    };
                }
                Verdict::Refused(error) => return Admission::Refused(self.challenged(error)),
                Verdict::Asking(asking) => return Admission::Asking(asking),
            }
        }
        if !self.is_optional {
            let error = Error::unauthenticated("this call needs credentials");
            return Admission::Refused(self.challenged(error));
        }
        match rule.admit(None) {
            Ok(()) => Admission::Admitted(None),
            Err(error) => Admission::Refused(self.challenged(error)),
        }
    }

    /// What comes of a call of which had to be found out whose it is.
    pub(super) fn settle(
        &self,
        request: &RequestParts,
        asked: Result<Identity, Error>,
    ) -> Result<Identity, Error> {
        let identity = asked.map_err(|error| self.challenged(error))?;
        let rule = self.rules.of(request.method.as_deref());
        rule.admit(Some(&identity))?;
        Ok(identity)
    }

    /// Says how to bring credentials, where they were missing or no good.
    fn challenged(&self, error: Error) -> Error {
        if error.code() != quill_core::Code::Unauthenticated {
            return error;
        }
        let challenges = self.authenticators.iter();
        let mut challenges: Vec<&str> = challenges
            .filter_map(|authenticator| authenticator.challenge())
            .collect();
        // Several may take credentials of one kind.
        let mut told = HashSet::new();
        challenges.retain(|challenge| told.insert(*challenge));
        let mut error = error;
        if !challenges.is_empty() {
            // One that is no header's value is left out.
            let value = challenges.join(", ");
            let _ = error.metadata_mut().insert("www-authenticate", &value);
        }
        error
    }
}

impl<S> Layer<S> for AuthLayer {
    type Service = AuthService<S>;

    fn layer(&self, inner: S) -> AuthService<S> {
        self.0.rules.check();
        AuthService::new(inner, Arc::clone(&self.0))
    }
}

impl fmt::Debug for AuthLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthLayer")
            .field("rules", &self.0.rules)
            .field("is_optional", &self.0.is_optional)
            .finish_non_exhaustive()
    }
}
