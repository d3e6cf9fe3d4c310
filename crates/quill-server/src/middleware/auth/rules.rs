//! What each method asks of its callers.

use std::collections::HashMap;

use quill_core::{Error, Method};

use super::identity::Identity;
use crate::middleware::naming::{self, Named};

/// What a method asks of its callers.
#[derive(Clone, Debug, Default)]
pub(super) struct Rule {
    /// Nobody is looked at.
    pub(super) is_public: bool,
    /// All that a caller must be allowed to do.
    scopes: Vec<String>,
}

impl Rule {
    pub(super) fn public() -> Self {
        Self {
            is_public: true,
            scopes: Vec::new(),
        }
    }

    pub(super) fn scopes(scopes: Vec<String>) -> Self {
        Self {
            is_public: false,
            scopes,
        }
    }

    /// Whether a caller may, who is known or not.
    pub(super) fn admit(&self, identity: Option<&Identity>) -> Result<(), Error> {
        let lacks = |scope: &&String| !identity.is_some_and(|identity| identity.has_scope(scope));
        match (self.scopes.iter().find(lacks), identity) {
            (None, _) => Ok(()),
            (Some(_), None) => Err(Error::unauthenticated("this call needs credentials")),
            (Some(scope), Some(_)) => Err(Error::permission_denied(format!(
                "this call needs the scope {scope:?}"
            ))),
        }
    }
}

/// The rules by the paths that methods are registered under.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    methods: HashMap<String, Rule>,
    services: HashMap<String, Rule>,
    other: Rule,
}

impl Rules {
    /// Sets the rule of `/package.Service/Method`, of `/package.Service/*`, or of
    /// `/*`, which are the methods that have none.
    pub(super) fn set(&mut self, path: &str, rule: Rule) {
        match Named::read(path) {
            Named::Method(path) => drop(self.methods.insert(path, rule)),
            Named::Service(service) => drop(self.services.insert(service, rule)),
            Named::Others => self.set_other(rule),
        }
    }

    /// Has the server that is being built refuse a rule that would hold for nothing.
    pub(super) fn check(&self) {
        let methods = self.methods.keys().cloned().map(Named::Method);
        let services = self.services.keys().cloned().map(Named::Service);
        naming::check("AuthLayer", methods.chain(services));
    }

    /// Sets the rule of methods that have none.
    pub(super) fn set_other(&mut self, rule: Rule) {
        self.other = rule;
    }

    /// The rule of a method: its own, else its service's, else that of all others.
    pub(super) fn of(&self, method: Option<&Method>) -> &Rule {
        let Some(method) = method else {
            return &self.other;
        };
        if self.methods.is_empty() && self.services.is_empty() {
            return &self.other;
        }
        let own = self.methods.get(method.path());
        own.or_else(|| self.services.get(method.service()))
            .unwrap_or(&self.other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quill_core::{Code, MethodKind};

    fn code(rules: &Rules, path: &'static str, identity: Option<&Identity>) -> Option<Code> {
        let method = Method::new(path, MethodKind::Unary);
        let admitted = rules.of(Some(&method)).admit(identity);
        admitted.err().map(|error| error.code())
    }

    #[test]
    fn the_closest_rule_counts() {
        let mut rules = Rules::default();
        let scopes = |scope: &str| Rule::scopes(vec![scope.to_owned()]);
        rules.set("/a.B/*", scopes("service"));
        rules.set("/a.B/C", scopes("method"));
        rules.set("/a.B/D", Rule::public());
        let of = |scope: &str| Identity::new("ann").with_scopes([scope]);
        let (method, service) = (of("method"), of("service"));
        assert_eq!(code(&rules, "/a.B/C", Some(&method)), None);
        let denied = Some(Code::PermissionDenied);
        assert_eq!(code(&rules, "/a.B/C", Some(&service)), denied);
        assert_eq!(code(&rules, "/a.B/E", Some(&method)), denied);
        assert_eq!(code(&rules, "/a.B/E", Some(&service)), None);
        assert_eq!(code(&rules, "/a.B/E", None), Some(Code::Unauthenticated));
        assert_eq!(code(&rules, "/a.B/D", None), None);
        assert_eq!(code(&rules, "/a.Bx/E", Some(&method)), None);
    }

    #[test]
    fn no_spelling_of_a_rule_leaves_a_method_open() {
        let scopes = || Rule::scopes(vec!["a".to_owned()]);
        for path in ["/a.B/C", "a.B/C", "/a.B/*", "a.B/*", "/*", "*"] {
            let mut rules = Rules::default();
            rules.set(path, scopes());
            let nobody = code(&rules, "/a.B/C", None);
            assert_eq!(nobody, Some(Code::Unauthenticated), "{path}");
        }
    }

    #[test]
    fn all_scopes_are_needed() {
        let both = Rule::scopes(vec!["a".to_owned(), "b".to_owned()]);
        let ann = Identity::new("ann");
        assert!(both.admit(Some(&ann.clone().with_scopes(["a"]))).is_err());
        assert!(both.admit(Some(&ann.with_scopes(["b", "a"]))).is_ok());
    }
}
