//! Results for people.

use std::fmt::Write as _;
use std::io::{self, Write};

use quill_explain::harmless;

use super::{Lines, Report, conditions};
use crate::bench::{Latency, Measurement};
use crate::output::{bytes, count, micros};

pub(super) struct Text<W>(pub(super) Lines<W>);

impl<W: Write> Report for Text<W> {
    fn measured(&mut self, measurement: &Measurement) -> io::Result<()> {
        self.0.write(&paragraph(measurement))
    }

    fn end(&mut self, _: &[Measurement]) -> io::Result<()> {
        Ok(())
    }
}

fn paragraph(measurement: &Measurement) -> String {
    let Measurement {
        name, url, method, ..
    } = measurement;
    let (name, url) = (harmless(name), harmless(url));
    let conditions = conditions(measurement);
    let (requests, rps) = (count(measurement.requests()), measurement.rps());
    let mut text =
        format!("{name}\n  {url}/{method}\n  {conditions}\n\n  requests  {requests}, {rps:.1}/s\n");
    let traffic = &measurement.traffic;
    let (sent, received) = (bytes(traffic.bytes_sent), bytes(traffic.bytes_received));
    let _ = writeln!(text, "  bytes     {sent} sent, {received} received");
    let ok = measurement.requests() - measurement.errors();
    if traffic.messages_received != ok {
        let messages = count(traffic.messages_received);
        let _ = writeln!(text, "  messages  {messages} received");
    }
    let latency = measurement.latency();
    text.push_str("  latency ");
    for (name, figure) in Latency::NAMES.iter().zip(latency.figures()) {
        let name = if *name == "p999" { "p99.9" } else { name };
        let _ = write!(text, "  {name} {}", micros(figure));
    }
    text.push('\n');
    for (status, tally) in &measurement.tallies {
        let requests = count(tally.latencies.len());
        let p99 = micros(Latency::of(&tally.latencies).p99 as f64);
        let _ = write!(text, "  {:<18} {requests}, p99 {p99}", status.name());
        if let Some(message) = &tally.message {
            // What a server said must not drive the terminal.
            let _ = write!(text, ": {}", harmless(message));
        }
        text.push('\n');
    }
    text.push('\n');
    text
}
