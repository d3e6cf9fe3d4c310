//! Who makes a call.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

/// Who makes a call, as [`AuthLayer`](crate::auth::AuthLayer) found out: a handler
/// has it from `request.extensions().get::<Identity>()`. Cheap to clone.
///
/// ```
/// use quill_server::auth::Identity;
///
/// let identity = Identity::new("ann").with_scopes(["orders.read"]);
/// assert_eq!(identity.subject(), "ann");
/// assert!(identity.has_scope("orders.read"));
/// assert!(!identity.has_scope("orders.write"));
/// ```
#[derive(Clone, PartialEq)]
pub struct Identity(Arc<Inner>);

#[derive(Clone, PartialEq)]
struct Inner {
    subject: Box<str>,
    scopes: Vec<Box<str>>,
    claims: Map<String, Value>,
}

impl Identity {
    /// Whoever goes by this name: a user, a service, a key's owner.
    #[must_use]
    pub fn new(subject: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            subject: subject.into().into(),
            scopes: Vec::new(),
            claims: Map::new(),
        }))
    }

    /// Who may do this, in place of what they might do before.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        let scopes = scopes.into_iter().map(|scope| scope.into().into());
        self.inner_mut().scopes = scopes.collect();
        self
    }

    /// Of whom this is known beside, such as the claims of a token.
    #[must_use]
    pub fn with_claims(mut self, claims: Map<String, Value>) -> Self {
        self.inner_mut().claims = claims;
        self
    }

    fn inner_mut(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.0)
    }

    /// The name.
    #[must_use]
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// What it may do.
    pub fn scopes(&self) -> impl Iterator<Item = &str> {
        self.0.scopes.iter().map(|scope| &**scope)
    }

    /// Whether it may do this.
    #[must_use]
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes().any(|other| other == scope)
    }

    /// What else is known of it.
    #[must_use]
    pub fn claims(&self) -> &Map<String, Value> {
        &self.0.claims
    }
}

/// Claims may hold what no log should: only the name and the scopes are shown.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("subject", &self.0.subject)
            .field("scopes", &self.0.scopes)
            .finish_non_exhaustive()
    }
}
