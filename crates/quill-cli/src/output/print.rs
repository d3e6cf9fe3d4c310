//! Text on standard output.

use std::io::{ErrorKind, Write, stdout};

use crate::failure::Failure;

/// Prints a text as it is. A reader that has enough is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::input(format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}
