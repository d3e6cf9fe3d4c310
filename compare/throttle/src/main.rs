//! throttle-kit beside other limiters, in one run: `compare/run throttle`.

mod fill;
mod identity;
mod keyed;
mod layers;
mod redis;
mod table;
mod threads;
mod works;

use std::process::ExitCode;

use compare_report::{Arguments, counted};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // All but the last are this program run again by itself.
    let done = match words[..] {
        ["count", name, turns] => count(name, turns).map(|()| ExitCode::SUCCESS),
        ["fill", subject, keys] => number(keys)
            .and_then(|keys| fill::fill(subject, keys))
            .map(|()| ExitCode::SUCCESS),
        ["flood"] => fill::flood().map(|()| ExitCode::SUCCESS),
        _ => Arguments::parse(arguments.into_iter()).map(|arguments| table::compare(&arguments)),
    };
    done.unwrap_or_else(|error| {
        eprintln!("compare: {error}");
        ExitCode::from(2)
    })
}

/// What valgrind runs.
fn count(name: &str, turns: &str) -> Result<(), String> {
    let mut work = works::work(name).ok_or(format!("no work {name:?}"))?;
    counted(&mut work, number(turns)?);
    Ok(())
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}
