//! The `quill` command.

mod args;
mod bench;
mod client;
mod command;
mod demo;
mod failure;
mod generate;
mod input;
mod json_check;
mod message_type;
mod output;
mod schema;
mod subject;
mod target;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};
use crate::failure::Failure;

/// Memory that was let go of goes back to the system within seconds, by threads of the
/// allocator's own. Others keep it for as long as nothing happens: 250 MiB of unfinished
/// messages were still resident after they had gone with mimalloc, and 200 MiB after
/// 10,000 connections with glibc's own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return Failure::network(format!("no runtime: {error}")).report(),
    };
    let outcome = runtime.block_on(async {
        match args.command {
            Command::Demo(demo) => command::demo::run(demo).await,
            Command::Call(call) => command::call::run(*call).await,
            Command::Bench(bench) => command::bench::run(*bench).await,
            Command::Compat(compat) => command::compat::run(*compat).await,
            Command::Completions(shell) => command::shell::completions(&shell),
            Command::Man(man) => command::shell::man(&man),
            Command::Explain(explain) => command::explain::run(*explain).await,
            Command::Generate(generate) => command::generate::run(*generate),
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
