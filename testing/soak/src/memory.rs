//! What is resident of this process.

/// How often memory is looked at, in all.
const LOOKS: u64 = 200;

/// Memory over the time of a load.
pub(crate) struct Memory {
    calls: u64,
    /// How many calls were made at the next look.
    next: u64,
    /// In MiB.
    resident: Vec<f64>,
}

impl Memory {
    pub(crate) fn new(calls: u64) -> Self {
        Self {
            calls,
            next: 0,
            resident: Vec::new(),
        }
    }

    /// Looks, if it is time to.
    pub(crate) fn look(&mut self, made: u64) {
        if made >= self.next {
            self.next += (self.calls / LOOKS).max(1);
            self.resident.extend(resident());
        }
    }

    /// The medians of the first and of the last quarter, in MiB.
    ///
    /// # Errors
    /// The system does not say what is resident.
    pub(crate) fn quarters(&self) -> Result<(f64, f64), String> {
        let quarter = self.resident.len() / 4;
        let first = self.resident.get(..quarter);
        let last = self.resident.get(self.resident.len() - quarter..);
        let medians = first.and_then(median).zip(last.and_then(median));
        medians.ok_or_else(|| "what is resident is not known: /proc is needed".to_owned())
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// In MiB.
fn resident() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024.0)
}
