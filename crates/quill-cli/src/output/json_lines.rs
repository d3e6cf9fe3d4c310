//! Answers on standard output: JSON, one message a line.

use std::io::{self, StdoutLock, Write};

use buffa_descriptor::DynamicMessage;

/// Writes each message as a line, at once.
pub(crate) struct JsonLines<W = StdoutLock<'static>>(W);

/// Why a message was not printed.
#[derive(Debug)]
pub(crate) enum PrintError {
    /// Nobody reads any more: a reason to end, not to complain.
    Closed,
    /// The output can't be written.
    Io(io::Error),
    /// The message has no JSON form.
    Json(serde_json::Error),
}

impl JsonLines {
    pub(crate) fn stdout() -> Self {
        Self(io::stdout().lock())
    }
}

impl<W: Write> JsonLines<W> {
    pub(crate) fn print(&mut self, message: &DynamicMessage) -> Result<(), PrintError> {
        let mut line = serde_json::to_vec(message).map_err(PrintError::Json)?;
        line.push(b'\n');
        let written = self.0.write_all(&line).and_then(|()| self.0.flush());
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => PrintError::Closed,
            _ => PrintError::Io(error),
        })
    }
}
