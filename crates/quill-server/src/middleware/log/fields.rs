//! What of a call's metadata a line shows.

use std::collections::HashSet;

use quill_core::Metadata;

/// Most fields in a line, and what is shown of each.
const FIELDS_MAX: usize = 32;
const REDACTED: &str = "[redacted]";

/// What the names of secrets have in them.
const SECRET_PARTS: [&str; 11] = [
    "-key",
    "apikey",
    "auth",
    "cookie",
    "credential",
    "passwd",
    "password",
    "secret",
    "session",
    "signature",
    "token",
];

/// Which metadata a line shows, and of which the value.
#[derive(Clone, Debug, Default)]
pub(super) struct ShownFields {
    shows_all: bool,
    shown: HashSet<String>,
    redacted: HashSet<String>,
}

impl ShownFields {
    pub(super) fn all(&mut self) {
        self.shows_all = true;
    }

    pub(super) fn show(&mut self, name: &str) {
        self.shown.insert(name.to_ascii_lowercase());
    }

    pub(super) fn redact(&mut self, name: &str) {
        self.redacted.insert(name.to_ascii_lowercase());
    }

    /// Whether any is shown.
    pub(super) fn is_empty(&self) -> bool {
        !self.shows_all && self.shown.is_empty()
    }

    /// The fields of a call that are shown, with what is shown of them.
    pub(super) fn of<'a>(&self, metadata: &'a Metadata) -> Vec<(&'a str, &'a str)> {
        if self.is_empty() {
            return Vec::new();
        }
        let fields = metadata.iter();
        let shown = fields.filter(|(name, _)| self.shows_all || self.shown.contains(*name));
        let seen = shown.map(|(name, value)| {
            let value = match std::str::from_utf8(value) {
                Ok(value) if !self.hides(name) => value,
                _ => REDACTED,
            };
            (name, value)
        });
        seen.take(FIELDS_MAX).collect()
    }

    fn hides(&self, name: &str) -> bool {
        name.ends_with("-bin")
            || SECRET_PARTS.iter().any(|part| name.contains(part))
            || self.redacted.contains(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        let mut metadata = Metadata::new();
        for (name, value) in [
            ("user-agent", "a"),
            ("authorization", "Bearer b"),
            ("x-csrf-token", "c"),
            ("cookie", "d=e"),
            ("set-cookie", "d=e"),
            ("proxy-authorization", "Basic d"),
            ("www-authenticate", "Basic"),
            ("x-api-key", "k"),
            ("x-partner-key", "k"),
            ("x-auth", "k"),
            ("x-passwd", "k"),
            ("x-hub-signature-256", "k"),
            ("x-tenant", "f"),
        ] {
            metadata.append(name, value).unwrap();
        }
        metadata.append_bin("x-bin", [1]).unwrap();
        metadata.receive("x-odd", b"\xff");
        metadata
    }

    #[test]
    fn nothing_is_shown_unless_asked_for_and_secrets_not_even_then() {
        let metadata = metadata();
        let mut fields = ShownFields::default();
        assert!(fields.is_empty() && fields.of(&metadata).is_empty());
        fields.show("X-Tenant");
        fields.show("authorization");
        let expected = [("authorization", REDACTED), ("x-tenant", "f")];
        assert_eq!(fields.of(&metadata), expected);
        fields.redact("X-TENANT");
        fields.all();
        let shown = fields.of(&metadata);
        assert_eq!(shown.len(), 15);
        for (name, value) in shown {
            let expected = if name == "user-agent" { "a" } else { REDACTED };
            assert_eq!(value, expected, "{name}");
        }
    }

    #[test]
    fn their_number_is_bounded() {
        let mut metadata = Metadata::new();
        for n in 0..100 {
            metadata.append("x-many", &n.to_string()).unwrap();
        }
        let mut fields = ShownFields::default();
        fields.all();
        assert_eq!(fields.of(&metadata).len(), FIELDS_MAX);
    }
}
