//! `quill bench`: load, and what comes of it.

use std::io::{Write, stderr};
use std::path::Path;

use quill::shutdown_signal;
use quill_explain::harmless;
use tokio::sync::watch;

use crate::args::{BaselineArgs, BenchArgs};
use crate::bench::{
    Baseline, Benchmark, BenchmarkFile, Budget, GivenPayload, Load, Measurement, Progress, Status,
    run as measure,
};
use crate::failure::Failure;
use crate::output::report;
use crate::target::Target;

pub(crate) async fn run(args: BenchArgs) -> Result<(), Failure> {
    let server = args.client.url.as_deref();
    let benchmarks = match &args.target {
        Some(target) => vec![ad_hoc(target, server, args.input.as_deref())?],
        None => {
            if is_pipe(&args.file) {
                let file = args.file.display();
                say(&format!("{file} is a pipe: waiting for who writes to it"));
            }
            BenchmarkFile::read(&args.file, server)?
        }
    };
    let baseline = match &args.baseline.baseline {
        Some(path) => Some(Baseline::read(path)?),
        None => None,
    };
    // All that can be wrong is found before the first minute of load.
    let mut prepared = Vec::new();
    for benchmark in &benchmarks {
        if benchmark.keeps_token(&args.client) {
            let (name, url) = (&benchmark.name, &benchmark.target.base_url);
            say(&format!(
                "{name}: the token is not sent to {url}, which only the file names: --url {url} \
                 or metadata of the benchmark says who calls"
            ));
        }
        prepared.push(benchmark.prepare(&args.client, &args.schema).await?);
    }
    let load = Load::new(&args.load);
    let mut interrupted = interruption();
    let mut progress = Progress::new(prepared.len());
    let mut report = report(args.output);
    let mut measured = Vec::new();
    for prepared in &prepared {
        progress.begin(&prepared.name, &load);
        let measurement = measure(prepared, &load, &mut progress, &mut interrupted).await?;
        let Some(measurement) = measurement else {
            let name = &prepared.name;
            say(&format!(
                "interrupted as it warmed up: nothing was measured of {name}"
            ));
            return report.end(&measured).map_err(|error| unprinted(&error));
        };
        let is_interrupted = measurement.is_interrupted;
        report
            .measured(&measurement)
            .map_err(|error| unprinted(&error))?;
        measured.push(measurement);
        if is_interrupted {
            break;
        }
    }
    report.end(&measured).map_err(|error| unprinted(&error))?;
    if measured.iter().any(|measured| measured.is_interrupted) {
        say("interrupted: this is what was measured so far");
        return Ok(());
    }
    let budgets: Vec<_> = benchmarks
        .iter()
        .map(|benchmark| &benchmark.budget)
        .collect();
    judge(&measured, &budgets, baseline.as_ref(), &args.baseline)
}

/// The benchmark of a command line.
fn ad_hoc(target: &str, server: Option<&str>, input: Option<&str>) -> Result<Benchmark, Failure> {
    let target = Target::parse(target, server)?;
    let payload = input.map_or(GivenPayload::Empty, |input| {
        GivenPayload::Input(input.to_owned())
    });
    Ok(Benchmark {
        name: format!("{}/{}", target.service, target.method),
        target,
        payload,
        protocol: None,
        metadata: quill::Metadata::new(),
        takes_token: true,
        timeout: None,
        budget: Budget::default(),
    })
}

#[cfg(unix)]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe(_: &Path) -> bool {
    false
}

/// Turns true when the user wants no more.
fn interruption() -> watch::Receiver<bool> {
    let (tell, interrupted) = watch::channel(false);
    tokio::spawn(async move {
        shutdown_signal().await;
        // The command may have ended.
        let _ = tell.send(true);
    });
    interrupted
}

/// Whether all went as it should.
fn judge(
    measured: &[Measurement],
    budgets: &[&Budget],
    baseline: Option<&Baseline>,
    args: &BaselineArgs,
) -> Result<(), Failure> {
    let mut found = Vec::new();
    for (measured, budget) in measured.iter().zip(budgets) {
        found.extend(budget.exceeded_by(measured));
    }
    for measured in measured {
        let Some(baseline) = baseline else { break };
        let name = &measured.name;
        let Some(changes) = baseline.compare(measured, args.regression_max) else {
            say(&format!("{name}: not in the baseline"));
            continue;
        };
        say(&format!("{name}, since the baseline"));
        for change in changes {
            say(&format!("  {}", change.text));
            if change.is_regression {
                found.push(format!("{name}: {}", change.text));
            }
        }
    }
    if let Some(failure) = measured.iter().find_map(all_failed) {
        return Err(failure);
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::beyond_limits(found.join("\n  ")))
}

/// A benchmark without a single answer measured nothing.
fn all_failed(measured: &Measurement) -> Option<Failure> {
    if measured.errors() < measured.requests() || measured.requests() == 0 {
        return None;
    }
    let (status, message) = measured.common_failure()?;
    let name = &measured.name;
    let status = match status {
        Status::UNFINISHED => "the server did not answer in time".to_owned(),
        status => format!("{}: {}", status.name(), harmless(message)),
    };
    Some(Failure::server(format!(
        "every request of {name:?} failed: {status}"
    )))
}

fn unprinted(error: &std::io::Error) -> Failure {
    Failure::input(format!("standard output: {error}"))
}

/// A line for whoever watches; nobody is missed when standard error is closed.
fn say(line: &str) {
    let _ = writeln!(stderr().lock(), "{}", harmless(line));
}
