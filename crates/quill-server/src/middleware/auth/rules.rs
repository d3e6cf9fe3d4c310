//! What each method asks of its callers.

use std::collections::HashMap;

use quill_core::{Error, Method};

use super::identity::Identity;

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
    /// Sets the rule of `/package.Service/Method`, or of `/package.Service/*`.
    pub(super) fn set(&mut self, path: &str, rule: Rule) {
        match path.strip_suffix("/*") {
            Some(service) => {
                let service = service.strip_prefix('/').unwrap_or(service);
                self.services.insert(service.to_owned(), rule);
            }
            None => {
                self.methods.insert(path.to_owned(), rule);
            }
        }
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
    fn all_scopes_are_needed() {
        let both = Rule::scopes(vec!["a".to_owned(), "b".to_owned()]);
        let ann = Identity::new("ann");
        assert!(both.admit(Some(&ann.clone().with_scopes(["a"]))).is_err());
        assert!(both.admit(Some(&ann.with_scopes(["b", "a"]))).is_ok());
    }
}
