//! Results as one page, complete in itself: no script, no font and no picture
//! from elsewhere.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::plot::{Line, Plot, Scale};
use super::{Lines, Report, conditions};
use crate::bench::{Latency, Measurement};
use crate::output::{bytes, count, micros};

pub(super) struct Html<W>(pub(super) Lines<W>);

const STYLE: &str = include_str!("html.css");

/// Quantiles that the plot of latencies goes through, as how many requests
/// there are for one that took longer.
const ONE_IN: [f64; 22] = [
    1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 14.0, 20.0, 33.0, 50.0, 100.0, 200.0,
    500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 100_000.0,
];

impl<W: Write> Report for Html<W> {
    fn measured(&mut self, _: &Measurement) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, all: &[Measurement]) -> io::Result<()> {
        let sections: String = all.iter().map(section).collect();
        let summary = if all.len() > 1 {
            summary(all)
        } else {
            String::new()
        };
        self.0.write(&format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>quill bench</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
             <h1>quill bench</h1>\n{summary}{sections}</body>\n</html>\n"
        ))
    }
}

fn summary(all: &[Measurement]) -> String {
    let mut rows = String::new();
    for measurement in all {
        let name = escaped(&measurement.name);
        let (rps, errors) = (measurement.rps(), count(measurement.errors()));
        let latency = measurement.latency();
        let (p50, p99) = (micros(latency.p50 as f64), micros(latency.p99 as f64));
        let _ = writeln!(
            rows,
            "<tr><th>{name}</th><td>{rps:.1}</td><td>{errors}</td><td>{p50}</td><td>{p99}</td></tr>"
        );
    }
    format!(
        "<table>\n<tr><th>benchmark</th><th>requests/s</th><th>errors</th><th>p50</th><th>p99</th></tr>\n{rows}</table>\n"
    )
}

fn section(measurement: &Measurement) -> String {
    let name = escaped(&measurement.name);
    let target = escaped(&format!("{}/{}", measurement.url, measurement.method));
    let conditions = escaped(&conditions(measurement));
    let facts = facts(measurement);
    let statuses = statuses(measurement);
    let throughput = throughput(measurement).svg();
    let over_time = latency_over_time(measurement).svg();
    let distribution = distribution(measurement).svg();
    format!(
        "<section>\n<h2>{name}</h2>\n<p><code>{target}</code><br>{conditions}</p>\n\
         {facts}{statuses}<div class=\"plots\">\n{throughput}{over_time}{distribution}</div>\n</section>\n"
    )
}

fn facts(measurement: &Measurement) -> String {
    let (requests, errors) = (count(measurement.requests()), count(measurement.errors()));
    let rps = measurement.rps();
    let traffic = &measurement.traffic;
    let (sent, received) = (bytes(traffic.bytes_sent), bytes(traffic.bytes_received));
    format!(
        "<dl>\n<dt>requests/s</dt><dd>{rps:.1}</dd>\n<dt>requests</dt><dd>{requests}</dd>\n\
         <dt>errors</dt><dd>{errors}</dd>\n<dt>sent</dt><dd>{sent}</dd>\n<dt>received</dt><dd>{received}</dd>\n</dl>\n"
    )
}

fn statuses(measurement: &Measurement) -> String {
    let names = Latency::NAMES
        .map(|name| format!("<th>{name}</th>"))
        .concat();
    let row = |name: &str, requests: u64, latency: Latency, message: &str| {
        let figures = latency.figures();
        let figures = figures
            .map(|figure| format!("<td>{}</td>", micros(figure)))
            .concat();
        let requests = count(requests);
        format!("<tr><th>{name}</th><td>{requests}</td>{figures}<td>{message}</td></tr>\n")
    };
    let mut rows = String::new();
    if measurement.tallies.len() != 1 {
        rows.push_str(&row(
            "all",
            measurement.requests(),
            measurement.latency(),
            "",
        ));
    }
    for (status, tally) in &measurement.tallies {
        let latency = Latency::of(&tally.latencies);
        let message = escaped(tally.message.as_deref().unwrap_or_default());
        rows.push_str(&row(
            status.name(),
            tally.latencies.len(),
            latency,
            &message,
        ));
    }
    format!("<table>\n<tr><th>latency</th><th>requests</th>{names}<th></th></tr>\n{rows}</table>\n")
}

fn throughput(measurement: &Measurement) -> Plot {
    let points = measurement
        .intervals
        .iter()
        .map(|part| (part.end, part.rps));
    Plot {
        title: "Throughput (requests/s) over time (s)",
        x: Scale::linear(0.0, measurement.elapsed.as_secs_f64()),
        x_label: |seconds| format!("{seconds}"),
        y_label: |rps| count(rps.round() as u64),
        is_y_logarithmic: false,
        lines: vec![Line {
            name: "requests/s",
            points: points.collect(),
        }],
    }
}

fn latency_over_time(measurement: &Measurement) -> Plot {
    // Nothing ended in some intervals of a stall.
    let met = || measurement.intervals.iter().filter(|part| part.p50 > 0);
    Plot {
        title: "Latency over time (s)",
        x: Scale::linear(0.0, measurement.elapsed.as_secs_f64()),
        x_label: |seconds| format!("{seconds}"),
        y_label: micros,
        is_y_logarithmic: true,
        lines: vec![
            Line {
                name: "p50",
                points: met().map(|part| (part.end, part.p50 as f64)).collect(),
            },
            Line {
                name: "p99",
                points: met().map(|part| (part.end, part.p99 as f64)).collect(),
            },
        ],
    }
}

/// Latency by percentile, the more room the rarer.
fn distribution(measurement: &Measurement) -> Plot {
    let requests = measurement.requests() as f64;
    let shown = ONE_IN.iter().filter(|one_in| **one_in <= requests.max(2.0));
    let points = shown.map(|one_in| {
        let latency = measurement.latencies.value_at_quantile(1.0 - 1.0 / one_in);
        (*one_in, latency as f64)
    });
    let points: Vec<_> = points.collect();
    let last = points.last().map_or(2.0, |(one_in, _)| *one_in);
    Plot {
        title: "Latency by percentile",
        x: Scale::logarithmic(1.0, last),
        x_label: |one_in| {
            let percentile = format!("{:.3}", 100.0 - 100.0 / one_in);
            let percentile = percentile.trim_end_matches('0').trim_end_matches('.');
            format!(
                "p{}",
                if percentile.is_empty() {
                    "0"
                } else {
                    percentile
                }
            )
        },
        y_label: micros,
        is_y_logarithmic: true,
        lines: vec![Line {
            name: "latency",
            points,
        }],
    }
}

/// A text without what HTML would take for its own.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_text() {
        assert_eq!(escaped("<b>&\"\u{1b}"), "&lt;b&gt;&amp;&quot; ");
    }
}
