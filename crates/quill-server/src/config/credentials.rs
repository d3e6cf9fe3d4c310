//! Files of callers' credentials, hashed.

use std::path::Path;

use quill_config::{ConfigError, Sources};
use serde::Deserialize;

use crate::middleware::auth::Identity;

/// A file of credentials.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    keys: Vec<Entry>,
}

/// Who has credentials of this hash.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    sha256: String,
    subject: String,
    #[serde(default)]
    scopes: Vec<String>,
}

/// The SHA-256 of each credential in the file, and whose it is.
pub(super) fn read(path: &Path) -> Result<Vec<([u8; 32], Identity)>, ConfigError> {
    let read = Sources::file(path)?.read::<File>()?;
    let entries = read.value.keys.iter().enumerate();
    entries
        .map(|(index, entry)| {
            let hash = hash(&entry.sha256).ok_or_else(|| {
                let wrong = "allowed are the 64 hexadecimal digits of a SHA-256";
                read.error(&format!("keys[{index}].sha256"), wrong)
            })?;
            let identity = Identity::new(&entry.subject).with_scopes(entry.scopes.iter().cloned());
            Ok((hash, identity))
        })
        .collect()
}

fn hash(digits: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    let pairs = digits.as_bytes().chunks(2);
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}
