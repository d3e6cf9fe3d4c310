//! What `quill compat` takes.

use std::path::PathBuf;

use quill::{Metadata, Protocol};
use quill_compat::RuleSet;

use super::{TlsArgs, header, protocol};

const EXAMPLES: &str = "\
Examples:
  quill compat git:main proto                     the folder proto, as it was on main
  quill compat --against git:v1.2.0#api proto     the folder api of a tag
  quill compat old.binpb proto --rules WIRE       a descriptor set of buf or protoc
  quill compat https://api.example.com proto      what a server describes of itself
  quill compat git:origin/main proto --format github

A schema is a .proto file, a folder of them, a descriptor set, git:REVISION#PATH
(PATH from here; that of the other schema without #PATH), or the URL of a server
that has reflection.

Rule sets, as buf breaking has them:
  FILE       generated code, also where it depends on which file declares what
  PACKAGE    generated code that depends on packages only
  WIRE_JSON  messages in the binary format and in JSON
  WIRE       messages in the binary format

Exit codes:
  0  nothing breaks
  1  something breaks
  2  bad input: arguments, or a schema that can't be read
  3  network: the server can't be reached
  4  the server answered with an error";

/// Finds what breaks between two schemas.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompatArgs {
    /// The old schema and the new one; the new one alone with --against
    #[arg(value_name = "SCHEMA", num_args = 0..=2)]
    pub(crate) schemas: Vec<String>,
    /// The old schema
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) against: Option<String>,
    /// What must keep working: FILE, PACKAGE, WIRE_JSON or WIRE
    #[arg(long, value_name = "SET", default_value = "FILE", value_parser = rule_set)]
    pub(crate) rules: RuleSet,
    /// How breaks are shown; github makes annotations of a workflow's run
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = BreakFormat::Text)]
    pub(crate) format: BreakFormat,
    /// Show the rules, and the sets that each is in
    #[arg(long, exclusive = true)]
    pub(crate) list_rules: bool,
    /// A folder in which imports are looked for too; may be given several times
    #[arg(long, value_name = "FOLDER")]
    pub(crate) import_path: Vec<PathBuf>,
    /// The protocol to ask a server with
    #[arg(long, short, default_value = "quill", value_parser = protocol, value_name = "PROTOCOL")]
    pub(crate) protocol: Protocol,
    /// Metadata to ask a server with, as 'name: value'
    #[arg(long, short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) header: Vec<Metadata>,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}

/// How breaks are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BreakFormat {
    /// Two lines for each
    Text,
    /// One document
    Json,
    /// Annotations of GitHub's workflows
    Github,
}

fn rule_set(text: &str) -> Result<RuleSet, String> {
    RuleSet::from_name(text).ok_or_else(|| {
        let names = RuleSet::ALL.map(RuleSet::name).join(", ");
        format!("there are {names}")
    })
}
