//! The program that the Connect conformance suite drives: `quill-conformance
//! server|client`. What to do comes in on standard input, what came of it goes
//! out on standard output; `run` beside it installs the suite and starts both.

mod call;
mod client;
mod fields;
mod pipe;
mod server;
mod service;

use std::process::ExitCode;

/// Generated from the suite's `.proto` files.
#[allow(
    unreachable_pub,
    reason = "generated for a library that others import from"
)]
mod proto {
    quill::include_proto!("connectrpc.conformance.v1");
}

fn main() -> ExitCode {
    // Requests hold messages in `Any`, and not all are sent by a generated client.
    quill::types::register_types(proto::register_types);

    let mode = std::env::args().nth(1).unwrap_or_default();
    match run(&mode) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quill-conformance {mode}: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(mode: &str) -> Result<(), Box<dyn std::error::Error>> {
    match mode {
        "server" => server::run().await,
        "client" => client::run().await,
        _ => Err("the one argument must be \"server\" or \"client\"".into()),
    }
}
