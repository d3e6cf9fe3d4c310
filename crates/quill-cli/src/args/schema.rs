//! Where a schema comes from.

use std::path::PathBuf;

/// Where the schema comes from.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Schema")]
pub(crate) struct SchemaArgs {
    /// A descriptor set that protoc (with --include_imports) or buf build
    /// wrote; may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "proto")]
    pub(crate) descriptor_set: Vec<PathBuf>,
    /// A .proto file, or a folder of them; may be given several times
    #[arg(long, value_name = "FILE|FOLDER")]
    pub(crate) proto: Vec<PathBuf>,
    /// A folder in which --proto files and their imports are looked for; may
    /// be given several times [default: the folders given as --proto, and
    /// those of the files]
    #[arg(long, value_name = "FOLDER", requires = "proto")]
    pub(crate) import_path: Vec<PathBuf>,
}

impl SchemaArgs {
    /// Whether files give the schema, so that no server is asked.
    pub(crate) fn names_files(&self) -> bool {
        !self.proto.is_empty() || !self.descriptor_set.is_empty()
    }
}
