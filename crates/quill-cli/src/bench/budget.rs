//! What a benchmark has to keep to.

use std::time::Duration;

use serde_json::Value as Json;

use super::latency::Latency;
use super::measurement::Measurement;
use crate::args::{percent, time};
use crate::output::micros;

/// The name of the budget of failed requests.
const ERRORS: &str = "errors";

/// Latencies, and a share of failed requests, that may not be exceeded. Where
/// any is set, no request may fail unless `errors` says how many may.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Budget {
    latencies: Vec<(&'static str, Duration)>,
    errors_percent_max: Option<f64>,
}

impl Budget {
    /// Whether there is a budget of this name.
    pub(crate) fn is_known(name: &str) -> bool {
        name == ERRORS || Latency::NAMES.contains(&name)
    }

    /// The names of all budgets.
    pub(crate) fn names() -> String {
        format!("{}, {ERRORS}", Latency::NAMES.join(", "))
    }

    /// Sets the budget of this name. The error completes "`name` ...".
    pub(crate) fn set(&mut self, name: &str, value: &Json) -> Result<(), String> {
        let text = match value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        if name == ERRORS {
            let max = percent(&text).map_err(|error| format!("is {text}: {error}"))?;
            self.errors_percent_max = Some(max);
            return Ok(());
        }
        let Some(name) = Latency::NAMES.into_iter().find(|known| *known == name) else {
            return Err(format!("is no budget; there are {}", Self::names()));
        };
        let max = time(&text).map_err(|error| format!("is {text}: {error}"))?;
        self.latencies.push((name, max));
        Ok(())
    }

    /// What of it a measurement exceeds, a sentence each.
    pub(crate) fn exceeded_by(&self, measured: &Measurement) -> Vec<String> {
        let name = &measured.name;
        let mut exceeded = Vec::new();
        let latency = measured.latency();
        for (figure, max) in &self.latencies {
            let max = max.as_secs_f64() * 1e6;
            let found = latency.figure(figure).unwrap_or_default();
            if found > max {
                let (found, max) = (micros(found), micros(max));
                exceeded.push(format!(
                    "{name}: {figure} is {found}, over its budget of {max}"
                ));
            }
        }
        let is_any = !self.latencies.is_empty() || self.errors_percent_max.is_some();
        let errors_max = self.errors_percent_max.unwrap_or_default();
        let requests = measured.requests();
        let errors_percent = measured.errors() as f64 * 100.0 / requests.max(1) as f64;
        if is_any && requests == 0 {
            exceeded.push(format!("{name}: no request ended"));
        } else if is_any && errors_percent > errors_max {
            exceeded.push(format!(
                "{name}: {errors_percent:.2}% of the requests failed, over the budget of {errors_max}%"
            ));
        }
        exceeded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn budgets_are_times_and_a_share_of_errors() {
        let mut budget = Budget::default();
        budget.set("p99", &json!("40ms")).unwrap();
        budget.set("errors", &json!(0.5)).unwrap();
        assert_eq!(budget.latencies, [("p99", Duration::from_millis(40))]);
        assert_eq!(budget.errors_percent_max, Some(0.5));
        for (name, value, said) in [
            ("p99", json!(40), "500ms"),
            ("p99", json!("fast"), "500ms"),
            ("p42", json!("1s"), "p50, p90"),
            ("errors", json!("some"), "percentage"),
        ] {
            let error = budget.set(name, &value).unwrap_err();
            assert!(error.contains(said), "{name} {value}: {error}");
            assert_eq!(Budget::is_known(name), name != "p42");
        }
    }
}
