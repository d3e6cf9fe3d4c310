//! A whole schema, wherever it lies.

use std::path::{Path, PathBuf};

use buffa_descriptor::generated::descriptor::FileDescriptorProto;

use super::{Reflection, descriptor_set, git, proto_files};
use crate::failure::Failure;

/// Where a schema is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A `.proto` file, a folder of them, or a descriptor set.
    Path(PathBuf),
    /// A path of a revision.
    Git { revision: String, path: String },
    /// A server that describes itself.
    Server(String),
}

/// A schema with the names of its files as the user knows them.
pub(crate) struct Loaded {
    pub(crate) files: Vec<FileDescriptorProto>,
    source: Source,
}

impl Source {
    /// Reads `git:REVISION#PATH`, a URL or a path; a revision without a path
    /// takes that of `other`, which it is compared with.
    pub(crate) fn parse(text: &str, other: Option<&str>) -> Self {
        if let Some(git) = text.strip_prefix("git:") {
            let (revision, path) = git.split_once('#').unwrap_or((git, ""));
            let is_path = |other: &&str| matches!(Self::parse(other, None), Self::Path(_));
            let same = other.filter(is_path).unwrap_or(".");
            return Self::Git {
                revision: revision.to_owned(),
                path: if path.is_empty() { same } else { path }.to_owned(),
            };
        }
        if text.contains("://") || text.starts_with("unix:") {
            return Self::Server(text.to_owned());
        }
        Self::Path(PathBuf::from(text))
    }

    /// Reads it all; `reflection` makes the client that asks a server.
    pub(crate) async fn load(
        self,
        import_path: &[PathBuf],
        reflection: impl FnOnce(&str) -> Result<Reflection, Failure>,
    ) -> Result<Loaded, Failure> {
        let files = match &self {
            Self::Path(path) if is_proto(path) => {
                let mut includes = import_path.to_vec();
                includes.insert(0, proto_files::folder_of(path));
                proto_files::compile(std::slice::from_ref(path), &includes)?
            }
            Self::Path(path) => descriptor_set::read(std::slice::from_ref(path))?,
            Self::Git { revision, path } => git::compile(revision, path, import_path)?,
            Self::Server(url) => reflection(url)?.all_files().await?,
        };
        Ok(Loaded {
            files,
            source: self,
        })
    }
}

/// Whether a path has texts, and no descriptors. One that does not exist is
/// taken for what its name says.
fn is_proto(path: &Path) -> bool {
    path.is_dir()
        || path
            .extension()
            .is_some_and(|extension| extension == "proto")
}

impl Loaded {
    /// A file of it as the user can open or find it.
    pub(crate) fn shown(&self, name: &str) -> String {
        match &self.source {
            Source::Path(path) if is_proto(path) => {
                let folder = proto_files::folder_of(path);
                let file = folder.join(name);
                if file.is_file() {
                    let shown = file.strip_prefix(".").unwrap_or(&file);
                    return shown.display().to_string();
                }
                name.to_owned()
            }
            Source::Path(_) => name.to_owned(),
            Source::Git { revision, path } => {
                let folder = git::folder_of(path);
                let slash = if folder.is_empty() { "" } else { "/" };
                format!("git:{revision}#{folder}{slash}{name}")
            }
            Source::Server(url) => format!("{url}#{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_known_by_its_form() {
        let git = |revision: &str, path: &str| Source::Git {
            revision: revision.to_owned(),
            path: path.to_owned(),
        };
        for (text, other, source) in [
            ("proto", None, Source::Path("proto".into())),
            ("git:main#api", Some("proto"), git("main", "api")),
            ("git:main", Some("proto"), git("main", "proto")),
            ("git:HEAD~1#", Some("git:main"), git("HEAD~1", ".")),
            ("git:main", Some("http://a"), git("main", ".")),
            ("http://a:1", None, Source::Server("http://a:1".to_owned())),
            ("unix:/a", None, Source::Server("unix:/a".to_owned())),
        ] {
            assert_eq!(Source::parse(text, other), source, "{text}");
        }
    }
}
