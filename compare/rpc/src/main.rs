//! `compare/run rpc`: Quill's servers and clients beside others.

mod clients;
mod figures;
mod generated;
mod informing;
mod load;
mod measure;
mod peer;
mod plot;
mod process;
mod servers;
mod table;

use std::process::ExitCode;

use compare_report::Arguments;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // All but the last are this program run again by itself.
    let done = match words[..] {
        ["serve", subject, runtime] => servers::serve(subject, runtime).map(|()| ExitCode::SUCCESS),
        ["call", subject, address, calls] => match calls.parse() {
            Ok(calls) => clients::call(subject, address, calls).map(|()| ExitCode::SUCCESS),
            Err(_) => Err(format!("{calls:?} is no number")),
        },
        _ => {
            Arguments::parse(arguments.into_iter()).and_then(|arguments| table::compare(&arguments))
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("compare: {error}");
        ExitCode::from(2)
    })
}
