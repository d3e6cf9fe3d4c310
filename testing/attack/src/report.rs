//! What is printed.

use std::fmt::Write as _;

use crate::attack::{Attack, Pace};
use crate::trial::Row;

/// The attacks by name.
pub(crate) fn list(attacks: &[Attack]) -> String {
    let mut text = String::new();
    for attack in attacks {
        let pace = match attack.pace {
            Pace::Busy => String::new(),
            Pace::Patient(seconds) => format!(" ({seconds} s a round)"),
        };
        let _ = writeln!(text, "{:<22} {}{pace}", attack.name, attack.sends);
    }
    text
}

/// The rows as a table, then every finding.
pub(crate) fn table(rows: &[Row], known_failing: &[String]) -> String {
    let mut text = String::from(
        "| attack | what was sent (last round) | peak MiB | after each round MiB | a round added MiB \
         | descriptors | good calls, slowest | verdict |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let verdict = match row.findings.is_empty() {
            true => "borne",
            false if known_failing.iter().any(|name| name == row.name) => "failed, as known",
            false => "FAILED",
        };
        let after: Vec<String> = row
            .after
            .iter()
            .map(|kib| format!("{:.1}", mib(*kib)))
            .collect();
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} | {} | {:+.1} | {} → {} | {}, {} ms | {verdict} |",
            row.name,
            row.sent,
            mib(row.peak),
            after.join(", "),
            row.growth() as f64 / 1024.0,
            row.descriptors_before,
            row.descriptors_after,
            row.calls,
            row.slowest.as_millis(),
        );
    }
    for row in rows {
        for finding in &row.findings {
            let _ = writeln!(text, "{}: {finding}", row.name);
        }
    }
    let failed = rows.iter().filter(|row| !row.findings.is_empty()).count();
    let _ = writeln!(text, "{} attacks, {failed} failed", rows.len());
    text
}

fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
