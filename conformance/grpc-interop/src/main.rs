//! The interop cases of gRPC: `quill-grpc-interop server` serves
//! `grpc.testing.TestService` with ORCA's load reports, on a free port that it
//! prints; `quill-grpc-interop client URL [CASE...]` makes the cases' calls.
//! `interop` beside this package starts them against grpc-go's own programs.

mod case;
mod client;
mod load;
mod server;
mod service;

use std::process::ExitCode;

/// Generated from `proto/`.
#[allow(
    unreachable_pub,
    reason = "generated for a library that others import from"
)]
mod proto {
    quill::include_proto!();
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.as_slice() {
        [mode] if mode == "server" => server::run().await,
        [mode, url, cases @ ..] if mode == "client" => client::run(url, cases).await,
        _ => Err("the arguments must be `server` or `client URL [CASE...]`".into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quill-grpc-interop: {error}");
            ExitCode::FAILURE
        }
    }
}
