//! The plugin of protoc and buf: a request on stdin, the answer on stdout.

use std::io::{Read, Write};
use std::process::ExitCode;

#[allow(clippy::print_stderr, reason = "where a plugin's errors go")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("protoc-gen-quill: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut request = Vec::new();
    std::io::stdin().read_to_end(&mut request)?;
    let response = quill_codegen::answer(&request)?;
    std::io::stdout().write_all(&response)?;
    Ok(())
}
