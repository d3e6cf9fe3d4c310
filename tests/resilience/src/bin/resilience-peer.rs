//! A server in a process of its own, to be killed: `resilience-peer ADDRESS LOG`
//! serves the flaky service, appends the id of each run to LOG before it runs,
//! and writes `ready` to standard output once it listens.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::ExitCode;

use quill_tests_resilience::Flaky;

#[tokio::main]
async fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let (Some(address), Some(log)) = (args.next(), args.next()) else {
        return ExitCode::from(2);
    };
    let file = OpenOptions::new().create(true).append(true).open(log);
    let file = file.expect("a file to log to");
    // One write a line: what is written is with the system, whatever becomes of
    // this process.
    let flaky = Flaky::logging(move |id| {
        let line = format!("{id}\n");
        (&file).write_all(line.as_bytes()).expect("it is logged");
    });
    let server = flaky.serve(&address).await.expect("it listens");
    let mut out = std::io::stdout();
    out.write_all(b"ready\n")
        .and_then(|()| out.flush())
        .expect("it is told");
    // Whoever has started it ends it, or ends itself.
    let _ = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await;
    server.shutdown().await;
    ExitCode::SUCCESS
}
