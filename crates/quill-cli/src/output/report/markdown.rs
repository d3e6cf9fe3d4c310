//! Results as a table for pull requests and wikis.

use std::io::{self, Write};

use quill_explain::harmless;

use super::{Lines, Report};
use crate::bench::{Latency, Measurement};
use crate::output::{count, micros};

pub(super) struct Markdown<W> {
    out: Lines<W>,
    has_head: bool,
}

impl<W> Markdown<W> {
    pub(super) fn new(out: Lines<W>) -> Self {
        Self {
            out,
            has_head: false,
        }
    }
}

impl<W: Write> Report for Markdown<W> {
    fn measured(&mut self, measurement: &Measurement) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_head, true) {
            let names = Latency::NAMES.map(|name| format!(" {name} |")).concat();
            let rule = Latency::NAMES.map(|_| "---:|").concat();
            self.out.write(&format!(
                "| benchmark | requests/s | requests | errors |{names}\n|:---|---:|---:|---:|{rule}\n"
            ))?;
        }
        let name = cell(&measurement.name);
        let (requests, errors) = (count(measurement.requests()), count(measurement.errors()));
        let rps = measurement.rps();
        let latencies = measurement.latency().figures();
        let latencies = latencies
            .map(|figure| format!(" {} |", micros(figure)))
            .concat();
        self.out.write(&format!(
            "| {name} | {rps:.1} | {requests} | {errors} |{latencies}\n"
        ))
    }

    fn end(&mut self, _: &[Measurement]) -> io::Result<()> {
        Ok(())
    }
}

/// A text that stays in its cell.
fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for c in harmless(&text.replace(['\n', '\r'], " ")).chars() {
        match c {
            '|' | '\\' | '<' | '`' | '*' | '_' | '[' => {
                cell.push('\\');
                cell.push(c);
            }
            c => cell.push(c),
        }
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_cell() {
        assert_eq!(cell("Echo - Unary"), "Echo - Unary");
        assert_eq!(cell("a|b\n<c>"), "a\\|b \\<c>");
        assert!(!cell("\u{1b}]0;a\u{7}\u{202e}").contains(char::is_control));
    }
}
