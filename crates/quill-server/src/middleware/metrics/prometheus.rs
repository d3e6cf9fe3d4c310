//! The counters in Prometheus' text format.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>, version 0.0.4.

use std::fmt::{self, Write};
use std::sync::Arc;

use quill_core::Code;
use quill_transport::ConnectionCounts;

use super::concurrency::{self, ConcurrencyCounts};
use super::limiter::LimiterCounts;
use super::method::{BOUNDS, BUCKETS, MethodCounts, MethodName, MethodSums};

/// The media type of the text.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All there is to write.
pub(super) struct All<'a> {
    pub(super) methods: Vec<&'a Arc<MethodCounts>>,
    pub(super) limiters: &'a [Arc<LimiterCounts>],
    pub(super) concurrency: &'a [Arc<ConcurrencyCounts>],
    pub(super) queue: ([u64; BUCKETS], u64),
    pub(super) connections: &'a ConnectionCounts,
}

impl All<'_> {
    pub(super) fn text(&self) -> String {
        let mut text = String::with_capacity(4096 + 4096 * self.methods.len());
        // Writing to a string does not fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let methods: Vec<(Labels<'_>, MethodSums)> = self
            .methods
            .iter()
            .map(|method| (Labels(&method.name), method.sums()))
            .collect();
        write_counts(out, &methods)?;
        write_handled(out, &methods)?;
        write_latency(out, &methods)?;
        self.write_queue(out)?;
        self.write_connections(out)?;
        self.write_limiters(out)?;
        concurrency::write(out, self.concurrency)
    }

    fn write_queue(&self, out: &mut String) -> fmt::Result {
        let name = "quill_server_queue_seconds";
        let help = "Time for which calls waited until the layers were ready for them.";
        head(out, name, "histogram", help)?;
        let (took, nanos) = &self.queue;
        histogram(out, name, "", took, *nanos)
    }

    fn write_connections(&self, out: &mut String) -> fmt::Result {
        let name = "quill_server_connections_total";
        head(out, name, "counter", "Connections accepted.")?;
        writeln!(out, "{name} {}", self.connections.accepted())?;
        let name = "quill_server_open_connections";
        head(out, name, "gauge", "Connections that are open.")?;
        writeln!(out, "{name} {}", self.connections.open())?;
        let name = "quill_server_refused_connections_total";
        let help = "Connections closed at once: their address had as many as it may.";
        head(out, name, "counter", help)?;
        writeln!(out, "{name} {}", self.connections.refused())?;
        let name = "quill_server_displaced_connections_total";
        let help = "Connections at rest that were cut to make room for others.";
        head(out, name, "counter", help)?;
        writeln!(out, "{name} {}", self.connections.displaced())?;
        let name = "quill_server_aged_connections_total";
        let help = "Connections whose peer was told to go for their age.";
        head(out, name, "counter", help)?;
        writeln!(out, "{name} {}", self.connections.aged())
    }

    fn write_limiters(&self, out: &mut String) -> fmt::Result {
        if self.limiters.is_empty() {
            return Ok(());
        }
        let name = "quill_server_rate_limit_decisions_total";
        head(out, name, "counter", "What rate limits decided.")?;
        for limiter in self.limiters {
            let (allowed, refused, _) = limiter.sums();
            let limiter = Escaped(&limiter.name);
            for (outcome, count) in [("allowed", allowed), ("refused", refused)] {
                writeln!(
                    out,
                    "{name}{{limiter=\"{limiter}\",outcome=\"{outcome}\"}} {count}"
                )?;
            }
        }
        let name = "quill_server_rate_limit_degraded_total";
        let help = "Decisions made by the policy for a store that could not be asked.";
        head(out, name, "counter", help)?;
        for limiter in self.limiters {
            let (_, _, degraded) = limiter.sums();
            let limiter = Escaped(&limiter.name);
            writeln!(out, "{name}{{limiter=\"{limiter}\"}} {degraded}")?;
        }
        Ok(())
    }
}

type Methods<'a> = [(Labels<'a>, MethodSums)];
/// A figure of a method.
type Figure = fn(&MethodSums) -> u64;

/// What each method has one figure of: its name, type, help, and the figure.
const FIGURES: [(&str, &str, &str, Figure); 6] = [
    (
        "quill_server_started_total",
        "counter",
        "Calls that began.",
        MethodSums::started,
    ),
    (
        "quill_server_in_flight_calls",
        "gauge",
        "Calls that are under way; of a streaming kind, open streams.",
        MethodSums::in_flight,
    ),
    (
        "quill_server_received_messages_total",
        "counter",
        "Messages received.",
        MethodSums::received_messages,
    ),
    (
        "quill_server_received_bytes_total",
        "counter",
        "Bytes of messages received, before compression.",
        MethodSums::received_bytes,
    ),
    (
        "quill_server_sent_messages_total",
        "counter",
        "Messages sent.",
        MethodSums::sent_messages,
    ),
    (
        "quill_server_sent_bytes_total",
        "counter",
        "Bytes of messages sent, before compression.",
        MethodSums::sent_bytes,
    ),
];

fn write_counts(out: &mut String, methods: &Methods<'_>) -> fmt::Result {
    for (name, kind, help, figure) in FIGURES {
        head(out, name, kind, help)?;
        for (labels, sums) in methods {
            writeln!(out, "{name}{{{labels}}} {}", figure(sums))?;
        }
    }
    Ok(())
}

fn write_handled(out: &mut String, methods: &Methods<'_>) -> fmt::Result {
    let name = "quill_server_handled_total";
    head(out, name, "counter", "Calls that ended, by their code.")?;
    for (labels, sums) in methods {
        let codes = Code::ALL.into_iter().map(Some);
        for failure in std::iter::once(None).chain(codes) {
            let count = sums.ended(failure);
            // A good end is always there, so that a rate has a zero to begin at.
            if count > 0 || failure.is_none() {
                let code = failure.map_or("ok", Code::name);
                writeln!(out, "{name}{{{labels},code=\"{code}\"}} {count}")?;
            }
        }
    }
    Ok(())
}

fn write_latency(out: &mut String, methods: &Methods<'_>) -> fmt::Result {
    let name = "quill_server_handling_seconds";
    let help = "Time from a call's first message, or its head if it sends a stream, to its end.";
    head(out, name, "histogram", help)?;
    for (labels, sums) in methods {
        if sums.started() > 0 {
            histogram(out, name, &labels.to_string(), sums.took(), sums.nanos())?;
        }
    }
    Ok(())
}

pub(super) fn head(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

/// A histogram, whose buckets hold what the smaller ones do.
pub(super) fn histogram(
    out: &mut String,
    name: &str,
    labels: &str,
    took: &[u64],
    nanos: u64,
) -> fmt::Result {
    let bounds = BOUNDS.iter().map(|(_, bound)| *bound).chain(["+Inf"]);
    let comma = if labels.is_empty() { "" } else { "," };
    let mut count = 0_u64;
    for (bound, calls) in bounds.zip(took) {
        count = count.wrapping_add(*calls);
        writeln!(
            out,
            "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}"
        )?;
    }
    let labels = if labels.is_empty() {
        String::new()
    } else {
        format!("{{{labels}}}")
    };
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    writeln!(out, "{name}_sum{labels} {seconds}.{rest:09}")?;
    writeln!(out, "{name}_count{labels} {count}")
}

/// A method's labels.
struct Labels<'a>(&'a MethodName);

impl fmt::Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MethodName {
            service,
            method,
            kind,
        } = self.0;
        let (service, method) = (Escaped(service), Escaped(method));
        write!(
            f,
            "service=\"{service}\",method=\"{method}\",kind=\"{kind}\""
        )
    }
}

/// A label's value, with what would end it or its line escaped.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_those_below_and_the_sum_is_in_seconds() {
        let mut took = [0; BUCKETS];
        took[0] = 2;
        took[4] = 1;
        took[BUCKETS - 1] = 1;
        let mut text = String::new();
        histogram(&mut text, "x", "a=\"b\"", &took, 12_000_000_300).unwrap();
        for line in [
            "x_bucket{a=\"b\",le=\"0.00005\"} 2\n",
            "x_bucket{a=\"b\",le=\"0.001\"} 3\n",
            "x_bucket{a=\"b\",le=\"10\"} 3\n",
            "x_bucket{a=\"b\",le=\"+Inf\"} 4\n",
            "x_sum{a=\"b\"} 12.000000300\n",
            "x_count{a=\"b\"} 4\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let mut text = String::new();
        histogram(&mut text, "x", "", &took, 0).unwrap();
        assert!(text.starts_with("x_bucket{le=\"0.00005\"} 2\n"), "{text}");
        assert!(text.contains("\nx_count 4\n"), "{text}");
    }

    #[test]
    fn labels_cannot_break_out() {
        let name = MethodName {
            service: "a\"} 1\nb".to_owned(),
            method: "\\".to_owned(),
            kind: "unary",
        };
        let expected = r#"service="a\"} 1\nb",method="\\",kind="unary""#;
        assert_eq!(Labels(&name).to_string(), expected);
    }
}
