//! What `quill bench` takes.

use std::path::PathBuf;
use std::time::Duration;

use super::client::ClientArgs;
use super::schema::SchemaArgs;
use super::time::seconds;

const EXAMPLES: &str = "\
Examples:
  quill bench                                     what benchmarks.yaml lists, 50 calls at a time for 10 s each
  quill bench -c 100 -d 60 -r 1000                1,000 requests/s in all
  quill bench -o json > results.json              for programs, and for --baseline
  quill bench --baseline results.json             fails when it got slower
  quill bench -o html > report.html               with plots
  quill bench http://127.0.0.1:8080/echo.v1.EchoService/Echo --input '{\"message\":\"hi\"}'

benchmarks.yaml:
  benchmarks:
    - name: \"Echo\"
      url: \"http://localhost:8080\"
      service: \"echo.v1.EchoService\"
      method: \"Echo\"
      payload:
        message: \"Hello, World!\"
      budgets:
        p99: 40ms

A payload is a message, a list of them, or \"@file\" with JSON messages. A method
that takes a stream is sent them all in each call, any other one a call. Types
come by reflection, or from --proto or --descriptor-set; where there are none the
payload is sent as JSON.

With --rate a call's latency counts from the moment it was due, whether or not
the server let it begin then. Without, each of the concurrent calls follows the
one before it.

Exit codes:
  0  it was measured, within budgets and close to the baseline
  1  it was measured: beyond a budget, or slower than the baseline allows
  2  bad input: arguments, file, schema or payload
  3  network: a server can't be reached
  4  every call of a benchmark failed";

/// Loads servers, and measures rate and latency.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// One method to load, in place of what a file lists:
    /// http://host:port/package.Service/Method
    #[arg(value_name = "URL/package.Service/Method", conflicts_with = "file")]
    pub(crate) target: Option<String>,
    /// The message or messages for that method: JSON, @file, or - for standard
    /// input [default: one empty message]
    #[arg(long, short, value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    #[arg(requires = "target")]
    pub(crate) input: Option<String>,
    /// The benchmarks to run, in the file's order; - for standard input
    #[arg(long, short, value_name = "FILE", default_value = "benchmarks.yaml")]
    pub(crate) file: PathBuf,
    /// What is printed to standard output
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: ReportFormat,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    #[command(flatten)]
    pub(crate) baseline: BaselineArgs,
    #[command(flatten)]
    pub(crate) client: ClientArgs,
    #[command(flatten)]
    pub(crate) schema: SchemaArgs,
}

/// The load of each benchmark.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Calls at a time
    #[arg(long, short, value_name = "CALLS", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) concurrency: u32,
    /// How long, in seconds or with a unit (90s, 5m)
    #[arg(long, short, value_name = "TIME", default_value = "10", value_parser = seconds)]
    pub(crate) duration: Duration,
    /// Requests per second, all together; as fast as it goes unless given
    #[arg(long, short, value_name = "REQUESTS/S", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Time under load before the measurement begins
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) warm_up: Option<Duration>,
    /// How long calls that are due by the end may take to end after it; those
    /// that have not by then count as unfinished
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = seconds)]
    pub(crate) grace: Duration,
    /// HTTP/2 connections that share the calls; with --http1 each call has its
    /// own [default: one for each thread, and for every 100 calls]
    #[arg(long, value_name = "CONNECTIONS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) connections: Option<u32>,
    /// Threads that make the calls [default: one for each processor]
    #[arg(long, value_name = "THREADS")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
}

/// What a run is held against.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Baseline")]
pub(crate) struct BaselineArgs {
    /// Compare with an earlier run's JSON (-o json), and fail on a regression
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// How much worse rate, p50 and p99 may be than the baseline's
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 10.0,
        requires = "baseline"
    )]
    #[arg(value_parser = percent)]
    pub(crate) regression_max: f64,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people, as each benchmark ends
    Text,
    /// One document
    Json,
    /// A line a benchmark
    Csv,
    /// A table
    Markdown,
    /// One page with plots, complete in itself
    Html,
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.001..=10_000_000.0).contains(&rate) => Ok(rate),
        _ => Err("write requests per second, 0.001 to 10000000".to_owned()),
    }
}

/// A share in percent, with or without the sign.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim_end().parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("write a percentage, such as 10 or 2.5%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_percentages_are_numbers() {
        assert_eq!(rate("1000"), Ok(1000.0));
        assert_eq!(rate("0.5"), Ok(0.5));
        for bad in ["0", "-1", "inf", "NaN", "x", ""] {
            assert!(rate(bad).is_err(), "{bad}");
        }
        assert_eq!(percent("10"), Ok(10.0));
        assert_eq!(percent("2.5 %"), Ok(2.5));
        for bad in ["-1", "inf", "%", "x"] {
            assert!(percent(bad).is_err(), "{bad}");
        }
    }
}
