//! The table, the JSON rows, and the exit code.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;

/// What a comparison is told on its command line: `[--json FILE]`.
#[derive(Debug, Default)]
pub struct Arguments {
    /// Where the rows go as JSON.
    pub json: Option<PathBuf>,
}

impl Arguments {
    /// Reads the arguments after the program's name.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--json" => {
                    let file = arguments.next().ok_or("--json needs a FILE")?;
                    parsed.json = Some(file.into());
                }
                other => return Err(format!("unknown argument {other:?}; allowed: --json FILE")),
            }
        }
        Ok(parsed)
    }
}

/// What a row's value has to reach.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    /// Not more than this.
    AtMost(f64),
    /// Not less than this.
    AtLeast(f64),
    /// Nothing: the row informs.
    None,
}

impl Goal {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(bound) => value <= bound,
            Self::AtLeast(bound) => value >= bound,
            Self::None => true,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bound) => write!(f, "<= {bound}"),
            Self::AtLeast(bound) => write!(f, ">= {bound}"),
            Self::None => f.write_str(""),
        }
    }
}

#[derive(Debug, Serialize)]
struct Row {
    id: &'static str,
    work: &'static str,
    subject: &'static str,
    metric: &'static str,
    value: f64,
    unit: &'static str,
    goal: String,
    met: bool,
}

/// What one comparison found: one row for each of the ids it owes, and lines of
/// figures that decide nothing.
#[derive(Debug)]
pub struct Report {
    work: &'static str,
    owed: Vec<&'static str>,
    rows: Vec<Row>,
    details: Vec<(&'static str, String)>,
}

impl Report {
    /// A report that owes a row for each of these ids.
    pub fn new(work: &'static str, owed: &[&'static str]) -> Self {
        Self {
            work,
            owed: owed.to_vec(),
            rows: Vec::new(),
            details: Vec::new(),
        }
    }

    /// Adds the row of an id: a ratio of `subject`, and, for the table alone,
    /// the figures behind it.
    pub fn ratio(
        &mut self,
        id: &'static str,
        subject: &'static str,
        metric: &'static str,
        value: f64,
        goal: Goal,
        detail: String,
    ) {
        self.figure(id, subject, (metric, "ratio"), value, goal, detail);
    }

    /// Adds the row of an id whose goal is a figure of its own, with no peer:
    /// what is measured, and in which unit.
    pub fn figure(
        &mut self,
        id: &'static str,
        subject: &'static str,
        (metric, unit): (&'static str, &'static str),
        value: f64,
        goal: Goal,
        detail: String,
    ) {
        let (goal, met) = (goal.to_string(), goal.is_met(value));
        let work = self.work;
        self.rows.push(Row {
            id,
            work,
            subject,
            metric,
            value,
            unit,
            goal,
            met,
        });
        self.details.push((id, detail));
    }

    /// Prints the table, writes the JSON, and fails when a row is missing. A
    /// goal that is missed is shown, and is no failure of the comparison.
    pub fn finish(&self, arguments: &Arguments) -> ExitCode {
        println!("{self}");
        if let Some(file) = &arguments.json {
            let rows = serde_json::to_string_pretty(&self.rows).expect("rows are plain data");
            if let Err(error) = fs::write(file, rows + "\n") {
                eprintln!("compare: cannot write {}: {error}", file.display());
                return ExitCode::FAILURE;
            }
        }
        let measured = |id: &&str| {
            self.rows
                .iter()
                .any(|row| row.id == *id && row.value.is_finite())
        };
        let missing: Vec<&str> = self
            .owed
            .iter()
            .copied()
            .filter(|id| !measured(id))
            .collect();
        if missing.is_empty() {
            return ExitCode::SUCCESS;
        }
        eprintln!("compare: no figure for {}", missing.join(", "));
        ExitCode::FAILURE
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| {} | subject | metric | value | goal | met | figures |",
            self.work
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        for (row, (_, detail)) in self.rows.iter().zip(&self.details) {
            let Row {
                id,
                subject,
                metric,
                value,
                unit,
                goal,
                ..
            } = row;
            let unit = if *unit == "ratio" { "" } else { unit };
            let met = match (goal.is_empty(), row.met) {
                (true, _) => "",
                (_, true) => "yes",
                (_, false) => "NO",
            };
            writeln!(
                f,
                "| {id} | {subject} | {metric} | {value:.3} {unit} | {goal} | {met} | {detail} |"
            )?;
        }
        Ok(())
    }
}
