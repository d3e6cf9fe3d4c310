//! What `quill-attack` takes.

use std::path::PathBuf;

/// Attacks a live `quill demo`, a server with TLS and `quill call`.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "quill-attack")]
pub(crate) struct Args {
    /// How long all of it may take; what only waits runs beside the rest and is
    /// not made shorter
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub(crate) seconds: u64,
    /// How often each attack is made, 2 or more: the others may leave little more
    /// resident than the first
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..))]
    pub(crate) rounds: u32,
    /// Only the attacks whose names contain this; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Attacks that may fail: a name a line, then `#` and the reason
    #[arg(long, value_name = "FILE")]
    pub(crate) known_failing: Option<PathBuf>,
    /// Names the attacks and ends
    #[arg(long)]
    pub(crate) list: bool,
    /// Where random bytes begin
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The program that is attacked [default: `quill` beside this one]
    #[arg(long, value_name = "FILE")]
    pub(crate) quill: Option<PathBuf>,
    /// Serves with TLS, by the certificate in this folder, to be attacked
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub(crate) serve_tls: Option<PathBuf>,
    /// Serves with a limit on the connections of an address, to be attacked; the port
    /// goes into this folder
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub(crate) serve_addresses: Option<PathBuf>,
}

impl Args {
    /// The program that is attacked.
    pub(crate) fn program(&self) -> Result<PathBuf, String> {
        let beside = || {
            let own = std::env::current_exe().ok()?;
            Some(own.with_file_name("quill"))
        };
        let program = self.quill.clone().or_else(beside).unwrap_or_default();
        if program.is_file() {
            return Ok(program);
        }
        Err(format!(
            "there is no {}: build it (cargo build -p quill-cli) or give --quill FILE",
            program.display()
        ))
    }

    /// The names of the attacks that may fail.
    pub(crate) fn known_failing(&self) -> Result<Vec<String>, String> {
        let Some(file) = &self.known_failing else {
            return Ok(Vec::new());
        };
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let names = text.lines().filter_map(|line| line.split('#').next());
        let names = names.map(str::trim).filter(|name| !name.is_empty());
        Ok(names.map(str::to_owned).collect())
    }
}
