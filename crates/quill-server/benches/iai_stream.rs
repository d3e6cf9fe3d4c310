//! Instructions that a message of a stream takes its server, each with a limit: a gRPC
//! message of 100 bytes, one of 300 of its stream, of which 16 are under way.
//!
//! `cargo bench -p quill-server --bench iai_stream`

#[path = "../tests/support/caller.rs"]
mod caller;

use std::process::ExitCode;

use caller::{Calls, Echo, Measured, STREAMED, TOGETHER};
use callgrind_gate::{Case, counted, gate};
use quill_server::Server;

/// Messages of the shorter run.
const N: u64 = 4 * (TOGETHER * STREAMED) as u64;

const CASES: &[Case] = &[
    Case {
        name: "server_stream_100b",
        limit: 950,
        run: |n| stream(Calls::SERVER_STREAM, n),
    },
    Case {
        name: "client_stream_100b",
        limit: 1_250,
        run: |n| stream(Calls::CLIENT_STREAM, n),
    },
];

fn main() -> ExitCode {
    gate("iai_stream", N, CASES)
}

/// Streams of `n` messages together, counted.
fn stream(calls: Calls, n: u64) {
    let server = async || {
        let server = Server::builder().service(Echo).bind("127.0.0.1:0").await;
        server.expect("a server")
    };
    let mut measured = Measured::start(server, calls);
    let times = u32::try_from(n / u64::from(TOGETHER * STREAMED)).expect("few streams");
    counted(|| measured.run(times));
}
