//! Files that the compiler finds in memory.

use std::collections::BTreeMap;
use std::path::Path;

use protox::Error;
use protox::file::{File, FileResolver};

use crate::builtin::BUILTIN_PROTOS;

/// Finds texts by their import names.
#[derive(Debug)]
pub(crate) struct TextResolver(BTreeMap<String, String>);

impl TextResolver {
    pub(crate) fn new(texts: BTreeMap<String, String>) -> Self {
        Self(texts)
    }

    /// Finds [`BUILTIN_PROTOS`].
    pub(crate) fn builtin() -> Self {
        let texts = BUILTIN_PROTOS.iter();
        let texts = texts.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Self(texts.collect())
    }
}

impl FileResolver for TextResolver {
    fn resolve_path(&self, path: &Path) -> Option<String> {
        let name = path.to_str()?;
        self.0.contains_key(name).then(|| name.to_owned())
    }

    fn open_file(&self, name: &str) -> Result<File, Error> {
        match self.0.get(name) {
            Some(text) => File::from_source(name, text),
            None => Err(Error::file_not_found(name)),
        }
    }
}
