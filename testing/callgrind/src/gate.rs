//! Runs of a bench under callgrind, and the limits on what they took.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::process::{Command, ExitCode};

/// A hot path.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// What it is called, on the command line too.
    pub name: &'static str,
    /// The most instructions that one turn may take.
    pub limit: u64,
    /// Prepares it, and then does so many turns within [`counted`](crate::counted).
    pub run: fn(u64),
}

/// The `main` of the bench that is called `bench`: each case does `turns` turns in the
/// shorter of its runs. Fails when one is above its limit, or could not be counted.
pub fn gate(bench: &str, turns: u64, cases: &[Case]) -> ExitCode {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        [] => measure(bench, turns, cases),
        ["--run", name, n] => run(bench, cases, name, n),
        _ => {
            println!("{bench}: takes no flags (given {args:?}), so nothing is measured");
            ExitCode::SUCCESS
        }
    }
}

/// One run, for callgrind to count.
fn run(bench: &str, cases: &[Case], name: &str, n: &str) -> ExitCode {
    let case = cases.iter().find(|case| case.name == name);
    let (Some(case), Ok(n)) = (case, n.parse()) else {
        eprintln!("{bench}: no case {name:?}, or {n:?} is no number");
        return ExitCode::FAILURE;
    };
    (case.run)(n);
    ExitCode::SUCCESS
}

fn measure(bench: &str, turns: u64, cases: &[Case]) -> ExitCode {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("{bench}: valgrind is not installed, so nothing is measured");
        return ExitCode::SUCCESS;
    }
    let width = cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
    let mut failed = false;
    for Case { name, limit, .. } in cases {
        match instructions(name, turns) {
            Ok(count) => {
                let above = count > *limit;
                let verdict = if above { "ABOVE ITS LIMIT" } else { "ok" };
                println!("{name:width$} {count:6} of {limit:6}  {verdict}");
                failed |= above;
            }
            Err(error) => {
                println!("{name:width$} could not be measured: {error}");
                failed = true;
            }
        }
    }
    match failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Instructions of one turn.
fn instructions(name: &str, turns: u64) -> Result<u64, String> {
    let once = collected(name, turns)?;
    let twice = collected(name, 2 * turns)?;
    Ok(twice.saturating_sub(once) / turns.max(1))
}

/// All instructions of a run of `n` turns.
fn collected(name: &str, n: u64) -> Result<u64, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .args([
            "--collect-atstart=no",
            "--toggle-collect=*callgrind_gate*counted*",
        ])
        .arg(this)
        .args(["--run", name, &n.to_string()])
        .output()
        .map_err(|error| error.to_string())?;
    let report = String::from_utf8_lossy(&output.stderr);
    report
        .lines()
        .find_map(|line| line.split_once("Collected : "))
        .and_then(|(_, count)| count.trim().parse().ok())
        .ok_or_else(|| format!("callgrind said: {report}"))
}
