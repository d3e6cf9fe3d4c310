//! `quill.yaml`: what is generated from what.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_saphyr::UserMessageFormatter;

use super::language::Language;
use crate::failure::Failure;

/// What is generated. Paths are from the folder of the file that says so.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// `.proto` files and folders of them.
    #[serde(default)]
    pub(crate) protos: Vec<PathBuf>,
    /// A descriptor set in their place.
    pub(crate) descriptor_set: Option<PathBuf>,
    /// Folders in which imports are looked for too.
    #[serde(default)]
    pub(crate) import_paths: Vec<PathBuf>,
    /// What to make of them.
    pub(crate) generate: Vec<Target>,
}

/// Code in one language, in a folder of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    pub(crate) lang: Language,
    pub(crate) out: PathBuf,
    /// Options of the generator, in place of its usual ones.
    #[serde(default)]
    pub(crate) options: Vec<String>,
}

impl Config {
    /// Reads the file. The error says where it is wrong.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let wrong = |error: String| Failure::input(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| {
            wrong(error.to_string())
                .with_hint("give .proto files or folders, and --out FOLDER; or write a quill.yaml")
        })?;
        let mut config: Self = serde_saphyr::from_str(&text)
            .map_err(|error| wrong(error.render_with_formatter(&UserMessageFormatter)))?;
        if config.generate.is_empty() {
            return Err(wrong(
                "it generates nothing: `generate` lists lang and out".to_owned(),
            ));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let below = |path: &mut PathBuf| *path = folder.join(&*path);
        config.protos.iter_mut().for_each(below);
        config.import_paths.iter_mut().for_each(below);
        config.descriptor_set.iter_mut().for_each(below);
        config
            .generate
            .iter_mut()
            .for_each(|target| below(&mut target.out));
        Ok(config)
    }
}
