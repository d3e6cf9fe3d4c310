//! Metrics as OTLP has them.

use std::time::SystemTime;

use quill_server::metrics::{Family, Kind, MetricsCollector, Series, Times, Value};

use crate::proto::opentelemetry::proto::common::v1::KeyValue;
use crate::proto::opentelemetry::proto::metrics::v1 as wire;
use crate::resource::text;
use crate::span::nanos;

/// What a collector has counted so far, under the names of the Prometheus page.
pub(crate) fn to_wire(collector: &MetricsCollector, now: SystemTime) -> Vec<wire::Metric> {
    let times = Period {
        begun: nanos(collector.since()),
        now: nanos(now),
    };
    let families = collector.families();
    families.iter().map(|family| times.metric(family)).collect()
}

/// How many data points a metric has.
pub(crate) fn points(metric: &wire::Metric) -> usize {
    match &metric.data {
        Some(wire::metric::Data::Sum(sum)) => sum.data_points.len(),
        Some(wire::metric::Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(wire::metric::Data::Histogram(histogram)) => histogram.data_points.len(),
        None => 0,
    }
}

/// Since when and until when was counted.
struct Period {
    begun: u64,
    now: u64,
}

impl Period {
    fn metric(&self, family: &Family) -> wire::Metric {
        let cumulative = wire::AggregationTemporality::AGGREGATION_TEMPORALITY_CUMULATIVE;
        let data = match family.kind {
            Kind::Counter => wire::metric::Data::Sum(Box::new(wire::Sum {
                data_points: self.numbers(family),
                aggregation_temporality: cumulative.into(),
                is_monotonic: true,
                ..Default::default()
            })),
            Kind::Gauge => wire::metric::Data::Gauge(Box::new(wire::Gauge {
                data_points: self.numbers(family),
                ..Default::default()
            })),
            Kind::Histogram => wire::metric::Data::Histogram(Box::new(wire::Histogram {
                data_points: self.histograms(family),
                aggregation_temporality: cumulative.into(),
                ..Default::default()
            })),
        };
        wire::Metric {
            name: family.name.to_owned(),
            description: family.help.to_owned(),
            unit: unit(family.name).to_owned(),
            data: Some(data),
            ..Default::default()
        }
    }

    fn numbers(&self, family: &Family) -> Vec<wire::NumberDataPoint> {
        let points = family.series.iter().filter_map(|series| {
            let Value::Number(number) = series.value else {
                return None;
            };
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            Some(wire::NumberDataPoint {
                start_time_unix_nano: self.begun,
                time_unix_nano: self.now,
                value: Some(wire::number_data_point::Value::AsInt(number)),
                attributes: labels(series),
                ..Default::default()
            })
        });
        points.collect()
    }

    fn histograms(&self, family: &Family) -> Vec<wire::HistogramDataPoint> {
        let points = family.series.iter().filter_map(|series| {
            let Value::Times(times) = &series.value else {
                return None;
            };
            Some(wire::HistogramDataPoint {
                start_time_unix_nano: self.begun,
                time_unix_nano: self.now,
                count: times.count(),
                sum: Some(times.seconds()),
                bucket_counts: times.buckets().to_vec(),
                explicit_bounds: Times::bounds().collect(),
                attributes: labels(series),
                ..Default::default()
            })
        });
        points.collect()
    }
}

fn labels(series: &Series) -> Vec<KeyValue> {
    let labels = series.labels.iter();
    labels.map(|(name, value)| text(name, value)).collect()
}

/// The unit that a name tells, as OTLP writes it (UCUM).
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    if name.ends_with("_seconds") {
        "s"
    } else if name.ends_with("_bytes") {
        "By"
    } else {
        "1"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_of_the_page_is_sent_with_all_its_series() {
        let collector = MetricsCollector::new();
        collector.record_request();
        collector.record_success();
        let sent = to_wire(&collector, SystemTime::now());
        let families = collector.families();
        assert_eq!(sent.len(), families.len());
        for (metric, family) in sent.iter().zip(&families) {
            assert_eq!(metric.name, family.name);
            if let Some(wire::metric::Data::Histogram(histogram)) = &metric.data {
                for point in &histogram.data_points {
                    let bounds = point.explicit_bounds.len();
                    assert_eq!(point.bucket_counts.len(), bounds + 1);
                    assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
                }
            }
            assert!(metric.data.is_some(), "{}", family.name);
            assert_eq!(points(metric), family.series.len(), "{}", family.name);
        }
    }

    #[test]
    fn names_tell_their_unit() {
        assert_eq!(unit("quill_server_handling_seconds"), "s");
        assert_eq!(unit("quill_server_sent_bytes_total"), "By");
        assert_eq!(unit("quill_server_started_total"), "1");
    }
}
