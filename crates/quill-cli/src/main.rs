//! The `quill` command.

mod args;
mod command;
mod demo;
mod exit;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return exit::report(&exit::Failure::network(format!("no runtime: {error}"))),
    };
    let outcome = runtime.block_on(async {
        match args.command {
            Command::Demo(demo) => command::demo::run(demo).await,
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => exit::report(&failure),
    }
}
