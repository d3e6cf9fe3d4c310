//! Calls two servers by clients with all their layers, in every protocol, kind
//! and end, for a long time, and watches what stays in memory.
//!
//! Servers and clients are in this process, so that what either side keeps
//! shows. It fails when the resident memory of the last quarter of the calls is
//! over that of the first by more than a twentieth, or when a call ends as it
//! must not.

mod callers;
mod memory;
mod servers;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;

use crate::callers::Load;
use crate::memory::Memory;
use crate::servers::Servers;

/// Makes many calls, and fails when memory grows by them.
#[derive(Clone, Debug, Parser)]
#[command(name = "quill-soak")]
struct Args {
    /// How many calls to make
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    calls: u64,
    /// How many are under way at a time
    #[arg(long, value_name = "N", default_value_t = 32)]
    callers: usize,
    /// How much more than in the first quarter may be resident in the last, in
    /// hundredths
    #[arg(long, value_name = "N", default_value_t = 5.0)]
    percent_max: f64,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let outcome = runtime
        .map_err(|error| format!("no runtime: {error}"))
        .and_then(|runtime| runtime.block_on(run(&args)));
    let (text, code) = match outcome {
        Ok(text) => (text, ExitCode::SUCCESS),
        Err(text) => (text, ExitCode::FAILURE),
    };
    // Whoever does not read it has the exit code.
    let _ = writeln!(std::io::stdout(), "{text}");
    code
}

async fn run(args: &Args) -> Result<String, String> {
    let servers = Arc::new(Servers::start().await?);
    // What is made once is there before the first of the calls that count.
    let warm = Load::new(args.calls / 20, &servers)?;
    warm.run(args.callers, |_| {}).await?;
    let mut memory = Memory::new(args.calls);
    let load = Load::new(args.calls, &servers)?;
    let begun = std::time::Instant::now();
    load.run(args.callers, |made| memory.look(made)).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let (first, last) = memory.quarters()?;
    let percent = (last / first - 1.0) * 100.0;
    let text = format!(
        "{} calls in {seconds:.1} s; resident: {first:.1} MiB in the first quarter, {last:.1} MiB in the last ({percent:+.1} %)",
        args.calls
    );
    if percent > args.percent_max {
        return Err(format!("{text}: more than {} % over it", args.percent_max));
    }
    Ok(text)
}
