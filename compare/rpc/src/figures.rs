//! Figures of several subjects for one work.

use std::fmt::Write;

/// One figure a subject, the least of several rounds.
#[derive(Debug, Clone, Default)]
pub struct Figures(Vec<(&'static str, f64)>);

impl Figures {
    /// Keeps the lesser one, where a subject has a figure: noise only adds.
    pub fn add(&mut self, subject: &'static str, value: f64) {
        match self.0.iter_mut().find(|(name, _)| *name == subject) {
            Some((_, least)) => *least = least.min(value),
            None => self.0.push((subject, value)),
        }
    }

    /// The subject's figure; NaN if there is none.
    pub fn of(&self, subject: &str) -> f64 {
        let found = self.0.iter().find(|(name, _)| *name == subject);
        found.map_or(f64::NAN, |(_, value)| *value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, f64)> {
        self.0.iter().copied()
    }

    /// The figure of one as a multiple of another's.
    pub fn ratio(&self, subject: &str, other: &str) -> f64 {
        self.of(subject) / self.of(other)
    }

    /// All of them, divided so that `unit` is right.
    pub fn text(&self, divisor: f64, unit: &str) -> String {
        let mut text = String::new();
        for (subject, value) in self.iter() {
            let separator = if text.is_empty() { "" } else { "; " };
            let value = value / divisor;
            let digits = match value {
                _ if value < 1.0 => 3,
                _ if value < 100.0 => 2,
                _ => 0,
            };
            let _ = write!(text, "{separator}{subject} {value:.digits$} {unit}");
        }
        text
    }
}
