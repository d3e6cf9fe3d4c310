//! What `quill gen` takes.

use std::path::PathBuf;

use crate::generate::Language;

const EXAMPLES: &str = "\
Examples:
  quill gen                                      what quill.yaml says
  quill gen --check                              whether it is there, for CI
  quill gen proto --out src/gen                  Rust
  quill gen proto --lang ts --out web/src/gen    with protoc-gen-es
  quill gen --descriptor-set api.binpb --out src/gen --option emit=client

quill.yaml (paths are from its folder):
  protos: [proto]
  generate:
    - {lang: rust, out: src/gen}
    - {lang: ts, out: web/src/gen}

Exit codes:
  0  the code is there
  1  with --check: it is not, or not the same
  2  bad input: arguments, schema, or a plugin that is missing";

/// Generates messages, servers and clients.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GenerateArgs {
    /// .proto files, or folders of them [default: what quill.yaml says]
    #[arg(value_name = "FILE|FOLDER", requires = "out")]
    pub(crate) protos: Vec<PathBuf>,
    /// A descriptor set, of buf build or protoc --include_imports
    #[arg(long, value_name = "FILE", conflicts_with = "protos", requires = "out")]
    pub(crate) descriptor_set: Option<PathBuf>,
    /// A folder in which files and their imports are looked for; may be given
    /// several times [default: the folders given, and those of the files]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) import_path: Vec<PathBuf>,
    /// Where the code goes
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// The language; others than Rust drive plugins that are installed
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value_t = Language::Rust)]
    pub(crate) lang: Language,
    /// An option of the generator, in place of its usual ones; may be given
    /// several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) option: Vec<String>,
    /// Write nothing, and fail when something is not as it would be written
    #[arg(long)]
    pub(crate) check: bool,
    /// The file that says what is generated
    #[arg(long, value_name = "FILE", default_value = "quill.yaml")]
    pub(crate) config: PathBuf,
}
