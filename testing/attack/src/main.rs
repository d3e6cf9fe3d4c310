//! Attacks a live `quill` from outside, and says how it bore that.
//!
//! `quill-attack --list` names the attacks; each starts its own `quill demo`
//! (or a server with TLS), is run twice, and is judged by what can be seen from
//! outside: memory and descriptors in `/proc`, and a good client's calls.

mod arena;
mod args;
mod attack;
mod attacks;
mod dice;
mod good_client;
mod own_server;
mod report;
mod tls;
mod trial;
mod victim;
mod wire;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser;

use crate::args::Args;

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let outcome = runtime
        .map_err(|error| format!("no runtime: {error}"))
        .and_then(|runtime| runtime.block_on(run(args)));
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            print(&format!("quill-attack: {error}\n"));
            ExitCode::from(2)
        }
    }
}

/// Whether every attack was borne, but for those that are known to fail.
async fn run(args: Args) -> Result<bool, String> {
    if let Some(folder) = &args.serve_tls {
        own_server::with_tls(folder).await?;
        return Ok(true);
    }
    if let Some(folder) = &args.serve_addresses {
        own_server::of_addresses(folder).await?;
        return Ok(true);
    }
    if args.list {
        print(&report::list(attacks::ALL));
        return Ok(true);
    }
    let known_failing = args.known_failing()?;
    let rows = trial::run_all(&args).await?;
    print(&report::table(&rows, &known_failing));
    let is_known = |name: &str| known_failing.iter().any(|known| known == name);
    Ok(rows
        .iter()
        .all(|row| row.findings.is_empty() || is_known(row.name)))
}

pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
