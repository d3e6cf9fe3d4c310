//! Results for programs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use quill_explain::harmless_json;
use serde::Serialize;

use super::{Lines, Report};
use crate::bench::{Latency, Measurement};

pub(super) struct Json<W>(pub(super) Lines<W>);

#[derive(Serialize)]
struct Document<'a> {
    benchmarks: Vec<Row<'a>>,
}

/// Latencies are in microseconds.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    url: &'a str,
    method: &'a str,
    protocol: &'static str,
    format: &'static str,
    concurrency: usize,
    connections: usize,
    seconds: f64,
    requests: u64,
    errors: u64,
    rps: f64,
    target_rps: Option<f64>,
    latency: Latency,
    by_status: BTreeMap<&'static str, OfStatus<'a>>,
    bytes_sent: u64,
    bytes_received: u64,
    messages_received: u64,
    interrupted: bool,
}

#[derive(Serialize)]
struct OfStatus<'a> {
    requests: u64,
    latency: Latency,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

impl<W: Write> Report for Json<W> {
    fn measured(&mut self, _: &Measurement) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, all: &[Measurement]) -> io::Result<()> {
        let benchmarks = all.iter().map(row).collect();
        let mut text = harmless_json(serde_json::to_string_pretty(&Document { benchmarks })?);
        text.push('\n');
        self.0.write(&text)
    }
}

fn row(measurement: &Measurement) -> Row<'_> {
    let by_status = measurement.tallies.iter().map(|(status, tally)| {
        let of_status = OfStatus {
            requests: tally.latencies.len(),
            latency: Latency::of(&tally.latencies),
            message: tally.message.as_deref(),
        };
        (status.name(), of_status)
    });
    let load = &measurement.load;
    Row {
        name: &measurement.name,
        url: &measurement.url,
        method: &measurement.method,
        protocol: measurement.protocol.name(),
        format: match measurement.format {
            quill::Format::Json => "json",
            _ => "proto",
        },
        concurrency: load.concurrency,
        connections: if measurement.http1 {
            load.concurrency
        } else {
            load.connections
        },
        seconds: rounded(measurement.elapsed.as_secs_f64()),
        requests: measurement.requests(),
        errors: measurement.errors(),
        rps: rounded(measurement.rps()),
        target_rps: load.rate,
        latency: measurement.latency(),
        by_status: by_status.collect(),
        bytes_sent: measurement.traffic.bytes_sent,
        bytes_received: measurement.traffic.bytes_received,
        messages_received: measurement.traffic.messages_received,
        interrupted: measurement.is_interrupted,
    }
}

/// Three decimals: there is no more to a measurement.
fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}
