//! Instruction counts: the same on a busy machine as on an idle one.

use std::process::Command;

/// How many instructions one turn of `name` takes, by callgrind: this program
/// is run again with `count NAME TURNS`, for N and for 2N turns, and the
/// difference is what start-up does not explain. `None` without valgrind.
pub fn instructions_per_turn(name: &str, turns: u64) -> Option<f64> {
    let once = total(name, turns)?;
    let twice = total(name, 2 * turns)?;
    Some(twice.checked_sub(once)? as f64 / turns as f64)
}

fn total(name: &str, turns: u64) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["count", name, &turns.to_string()])
        .output()
        .ok()?;
    if !output.status.success() {
        return None;
    }
    // ==123== Collected : 456
    let report = String::from_utf8_lossy(&output.stderr);
    report
        .split_once("Collected :")?
        .1
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}
