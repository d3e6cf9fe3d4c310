//! Folders of .proto files to compile.

use std::path::{Path, PathBuf};

use quill_codegen::{Error, Schema};

/// A fresh folder of a test, below cargo's own for such things.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// `name` is the test's: folders of different tests must not be one.
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Adds a file.
    #[must_use]
    pub(crate) fn with(self, name: &str, text: &str) -> Self {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
        self
    }

    pub(crate) fn compile(&self, name: &str) -> Result<Schema, Error> {
        Schema::compile(&[self.0.join(name)], &[&self.0])
    }
}
