//! Results for spreadsheets (RFC 4180).

use std::io::{self, Write};

use quill_explain::harmless;

use super::{Lines, Report};
use crate::bench::{Latency, Measurement};

pub(super) struct Csv<W> {
    out: Lines<W>,
    has_head: bool,
}

impl<W> Csv<W> {
    pub(super) fn new(out: Lines<W>) -> Self {
        Self {
            out,
            has_head: false,
        }
    }
}

impl<W: Write> Report for Csv<W> {
    fn measured(&mut self, measurement: &Measurement) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_head, true) {
            let latencies = Latency::NAMES.map(|name| format!(",{name}_us")).concat();
            self.out.write(&format!(
                "name,url,method,protocol,requests,errors,rps,target_rps{latencies},bytes_sent,bytes_received\r\n"
            ))?;
        }
        let Measurement {
            name,
            url,
            method,
            protocol,
            traffic,
            ..
        } = measurement;
        let (name, url, protocol) = (field(name), field(url), protocol.name());
        let (requests, errors) = (measurement.requests(), measurement.errors());
        let rps = measurement.rps();
        let target = measurement.load.rate.map(|rate| rate.to_string());
        let target = target.unwrap_or_default();
        let latencies = measurement.latency().figures();
        let latencies = latencies.map(|figure| format!(",{figure}")).concat();
        let (sent, received) = (traffic.bytes_sent, traffic.bytes_received);
        self.out.write(&format!(
            "{name},{url},{method},{protocol},{requests},{errors},{rps:.1},{target}{latencies},{sent},{received}\r\n"
        ))
    }

    fn end(&mut self, _: &[Measurement]) -> io::Result<()> {
        Ok(())
    }
}

/// A field, in quotes where it needs them. A spreadsheet would take one that
/// begins like a formula for one.
fn field(text: &str) -> String {
    let text = &harmless(text);
    let quoted = text.replace('"', "\"\"");
    match text.chars().next() {
        Some('=' | '+' | '-' | '@') => format!("\"'{quoted}\""),
        _ if text.contains(['"', ',']) => format!("\"{quoted}\""),
        _ => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_need_it() {
        assert_eq!(field("Echo Service - Unary"), "Echo Service - Unary");
        assert_eq!(field("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(field("=1+1"), "\"'=1+1\"");
        assert_eq!(field("a\n\u{1b}[2J"), "a\\n\\u{1b}[2J");
    }
}
