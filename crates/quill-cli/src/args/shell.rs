//! What `quill completions` and `quill man` take.

use std::path::PathBuf;

use clap_complete::Shell;

const COMPLETIONS: &str = "\
Examples:
  quill completions bash > ~/.local/share/bash-completion/completions/quill
  quill completions zsh > ~/.zfunc/_quill            with fpath+=~/.zfunc before compinit
  quill completions fish > ~/.config/fish/completions/quill.fish";

const MAN: &str = "\
Examples:
  quill man ~/.local/share/man/man1
  man quill-bench";

/// Prints completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Writes a manual page for the command and one for each of its subcommands.
#[derive(Debug, clap::Args)]
#[command(after_help = MAN)]
pub(crate) struct ManArgs {
    /// The folder to write them to; it is made if need be
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}
