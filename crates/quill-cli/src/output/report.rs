//! What benchmarks measured, on standard output: one form a file.

mod csv;
mod html;
mod json;
mod markdown;
mod plot;
mod text;

use std::io::{self, Write, stdout};

use crate::args::ReportFormat;
use crate::bench::Measurement;

/// One form of a report.
pub(crate) trait Report {
    /// A benchmark has ended: forms of a line or a paragraph each show it at once.
    ///
    /// # Errors
    /// It can't be written.
    fn measured(&mut self, measurement: &Measurement) -> io::Result<()>;

    /// All have: documents show them together.
    ///
    /// # Errors
    /// They can't be written.
    fn end(&mut self, all: &[Measurement]) -> io::Result<()>;
}

/// The report of this form on standard output.
pub(crate) fn report(format: ReportFormat) -> Box<dyn Report> {
    let out = Lines(stdout());
    match format {
        ReportFormat::Text => Box::new(text::Text(out)),
        ReportFormat::Json => Box::new(json::Json(out)),
        ReportFormat::Csv => Box::new(csv::Csv::new(out)),
        ReportFormat::Markdown => Box::new(markdown::Markdown::new(out)),
        ReportFormat::Html => Box::new(html::Html(out)),
    }
}

/// Where reports are written, a piece at a time. A reader that has enough is no
/// error.
struct Lines<W>(W);

impl<W: Write> Lines<W> {
    fn write(&mut self, piece: &str) -> io::Result<()> {
        let written = self.0.write_all(piece.as_bytes());
        match written.and_then(|()| self.0.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }
}

/// How it was asked for, in a few words: `grpc, 50 at a time on 2 connections for 10 s`.
fn conditions(measurement: &Measurement) -> String {
    let load = &measurement.load;
    let protocol = measurement.protocol.name();
    let format = match measurement.format {
        quill::Format::Json => " in JSON",
        _ => "",
    };
    let connections = match (measurement.http1, load.connections) {
        (true, _) => ", HTTP/1.1".to_owned(),
        (false, 1) => " on 1 connection".to_owned(),
        (false, connections) => format!(" on {connections} connections"),
    };
    let rate = match load.rate {
        Some(rate) => format!(", {rate} requests/s asked for"),
        None => String::new(),
    };
    let (concurrency, seconds) = (load.concurrency, measurement.elapsed.as_secs_f64());
    let interrupted = if measurement.is_interrupted {
        ", interrupted"
    } else {
        ""
    };
    format!(
        "{protocol}{format}, {concurrency} at a time{connections} for {seconds:.1} s{rate}{interrupted}"
    )
}
