//! Instructions and allocations: the same on a busy machine as on an idle one.

use std::process::{Command, Stdio};

/// Whether valgrind is here, without which nothing is counted.
pub fn can_count() -> bool {
    Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Does the work that is to be counted. Callgrind looks at nothing else: a clock
/// that calibrates itself at start-up takes a different time in every run.
#[inline(never)]
pub fn counted(work: &mut dyn FnMut(u64), turns: u64) {
    work(turns);
}

/// How many instructions one turn of `name` takes, by callgrind: this program
/// is run again with `count NAME TURNS`, for N and for 2N turns, and the
/// difference is what start-up does not explain. `None` without valgrind.
pub fn instructions_per_turn(name: &str, turns: u64) -> Option<f64> {
    // ==123== Collected : 456
    let tool = [
        "--tool=callgrind",
        "--callgrind-out-file=/dev/null",
        "--toggle-collect=compare_report::instructions::counted*",
    ];
    per_turn(&tool, "Collected :", name, turns)
}

/// How many allocations one turn of `name` makes, counted as instructions are.
pub fn allocations_per_turn(name: &str, turns: u64) -> Option<f64> {
    // ==123==   total heap usage: 1,234 allocs, 1,200 frees, 5,678 bytes allocated
    let tool = ["--tool=memcheck", "--undef-value-errors=no"];
    per_turn(&tool, "total heap usage:", name, turns)
}

fn per_turn(tool: &[&str], label: &str, name: &str, turns: u64) -> Option<f64> {
    let once = total(tool, label, name, turns)?;
    let twice = total(tool, label, name, 2 * turns)?;
    Some(twice.checked_sub(once)? as f64 / turns as f64)
}

/// The number after `label` in what valgrind reports.
fn total(tool: &[&str], label: &str, name: &str, turns: u64) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(tool)
        .arg(program)
        .args(["count", name, &turns.to_string()])
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    let report = String::from_utf8_lossy(&output.stderr);
    let number = report.split_once(label)?.1.split_whitespace().next()?;
    number.replace(',', "").parse().ok()
}
