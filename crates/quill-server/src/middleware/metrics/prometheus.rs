//! Metrics in Prometheus' text format.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>, version 0.0.4.

use std::fmt::{self, Write};

use super::family::{Family, Kind, Times, Value};
use super::method::BOUNDS;

/// The media type of the text.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text of these metrics.
pub(super) fn text(families: &[Family]) -> String {
    let series: usize = families.iter().map(|family| family.series.len()).sum();
    let mut text = String::with_capacity(4096 + 128 * series);
    for family in families {
        // Writing to a string does not fail.
        let _ = write_family(&mut text, family);
    }
    text
}

fn write_family(out: &mut String, family: &Family) -> fmt::Result {
    let Family {
        name, help, kind, ..
    } = family;
    let kind = match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
    };
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
    for series in &family.series {
        let labels = Labels(&series.labels);
        match &series.value {
            Value::Number(number) => writeln!(out, "{name}{labels} {number}")?,
            Value::Times(times) => write_times(out, name, &labels, times)?,
        }
    }
    Ok(())
}

/// A histogram, whose buckets hold what the smaller ones do.
fn write_times(out: &mut String, name: &str, labels: &Labels<'_>, times: &Times) -> fmt::Result {
    let bounds = BOUNDS.iter().map(|(_, bound)| *bound).chain(["+Inf"]);
    let within = labels.within();
    let comma = if within.is_empty() { "" } else { "," };
    let mut count = 0_u64;
    for (bound, calls) in bounds.zip(&times.buckets) {
        count = count.wrapping_add(*calls);
        writeln!(
            out,
            "{name}_bucket{{{within}{comma}le=\"{bound}\"}} {count}"
        )?;
    }
    let (seconds, rest) = (times.nanos / 1_000_000_000, times.nanos % 1_000_000_000);
    writeln!(out, "{name}_sum{labels} {seconds}.{rest:09}")?;
    writeln!(out, "{name}_count{labels} {count}")
}

/// The labels of a series; nothing where it has none.
struct Labels<'a>(&'a [(&'static str, String)]);

impl Labels<'_> {
    /// What is between the braces.
    fn within(&self) -> String {
        let labels = self.0.iter();
        let labels = labels.map(|(name, value)| format!("{name}=\"{}\"", Escaped(value)));
        labels.collect::<Vec<_>>().join(",")
    }
}

impl fmt::Display for Labels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => Ok(()),
            _ => write!(f, "{{{}}}", self.within()),
        }
    }
}

/// A label's value, with what would end it or its line escaped.
struct Escaped<'a>(&'a str);

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
    use crate::middleware::metrics::method::BUCKETS;

    #[test]
    fn buckets_hold_those_below_and_the_sum_is_in_seconds() {
        let mut buckets = [0; BUCKETS];
        buckets[0] = 2;
        buckets[4] = 1;
        buckets[BUCKETS - 1] = 1;
        let mut times = Times {
            buckets,
            nanos: 12_000_000_300,
        };
        let mut text = String::new();
        let labels = [("a", "b".to_owned())];
        write_times(&mut text, "x", &Labels(&labels), &times).unwrap();
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
        times.nanos = 0;
        let mut text = String::new();
        write_times(&mut text, "x", &Labels(&[]), &times).unwrap();
        assert!(text.starts_with("x_bucket{le=\"0.00005\"} 2\n"), "{text}");
        assert!(text.contains("\nx_count 4\n"), "{text}");
    }

    #[test]
    fn labels_cannot_break_out() {
        let labels = [
            ("service", "a\"} 1\nb".to_owned()),
            ("method", "\\".to_owned()),
        ];
        let expected = r#"{service="a\"} 1\nb",method="\\"}"#;
        assert_eq!(Labels(&labels).to_string(), expected);
    }
}
