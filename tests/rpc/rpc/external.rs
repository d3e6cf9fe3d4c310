//! Programs of others, which a machine may lack.

use std::process::{Child, Command};

/// Starts a program; `None`, and a line that says so, where it is not installed.
/// `REQUIRE_EXTERNAL=1` makes that a failure.
#[allow(clippy::print_stdout, reason = "says why a test is skipped")]
pub(crate) fn start(command: &mut Command) -> Option<Child> {
    match command.spawn() {
        Ok(child) => Some(child),
        Err(error) => {
            let program = command.get_program().to_string_lossy().into_owned();
            let required = std::env::var_os("REQUIRE_EXTERNAL").is_some_and(|value| value == "1");
            assert!(
                !required,
                "{program} can't be run, and REQUIRE_EXTERNAL=1: {error}"
            );
            println!("skipped: {program} can't be run: {error}");
            None
        }
    }
}
