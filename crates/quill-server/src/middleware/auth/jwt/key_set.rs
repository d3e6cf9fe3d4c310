//! The keys of an issuer (RFC 7517).

use serde_json::Value;

use super::algorithm::Algorithm;
use super::error::JwtError;
use super::key::Key;

/// Keys that are looked at of a set.
const KEYS_MAX: usize = 64;

/// Largest document of keys, in bytes.
pub(super) const DOCUMENT_BYTES_MAX: usize = 256 * 1024;

/// The keys of an issuer.
pub(super) struct KeySet(Vec<Key>);

impl KeySet {
    /// Reads `{"keys": [..]}`. Keys that can't check tokens are left out.
    pub(super) fn read(document: &[u8]) -> Result<Self, JwtError> {
        if document.len() > DOCUMENT_BYTES_MAX {
            return Err(JwtError::new("the document of keys is over 256 KiB"));
        }
        let document: Value = serde_json::from_slice(document)
            .map_err(|error| JwtError::new(format!("the keys are no JSON: {error}")))?;
        let Some(keys) = document.get("keys").and_then(Value::as_array) else {
            return Err(JwtError::new(
                "the document has no keys: it is to be a JWK set, {\"keys\": [..]}",
            ));
        };
        let keys = keys.iter().take(KEYS_MAX).filter_map(Value::as_object);
        let keys: Vec<Key> = keys.filter_map(Key::of_jwk).collect();
        if keys.is_empty() {
            return Err(JwtError::new(
                "none of the document's keys can check tokens: allowed are RSA, EC (P-256, P-384), OKP (Ed25519) and oct",
            ));
        }
        Ok(Self(keys))
    }

    pub(super) fn of_secret(secret: &[u8]) -> Self {
        Self(vec![Key::of_secret(secret)])
    }

    /// The keys that a token may have been signed with. One that names its key is
    /// by that alone; one that does not, by the only key of its kind.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&Key> {
        let mut fitting = self.0.iter().filter(|key| {
            let is_named = id.is_none_or(|id| key.id.as_deref().is_none_or(|other| other == id));
            is_named && key.is_for(algorithm)
        });
        let by_name = self
            .0
            .iter()
            .find(|key| id.is_some() && key.id.as_deref() == id && key.is_for(algorithm));
        match (by_name, fitting.next(), fitting.next()) {
            (Some(key), ..) => Some(key),
            (None, Some(only), None) => Some(only),
            _ => None,
        }
    }

    pub(super) fn keys(&self) -> &[Key] {
        &self.0
    }
}
