//! Answers on standard output: JSON, one message a line.

use std::io::{self, StdoutLock, Write};

use buffa_descriptor::DynamicMessage;
use quill_explain::harmless_json;

use super::colour;
use super::with_defaults::WithDefaults;

/// Writes each message as a line, at once.
pub(crate) struct JsonLines<W = StdoutLock<'static>> {
    out: W,
    emit_defaults: bool,
    is_coloured: bool,
}

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
    /// On standard output, in colour on a terminal, with fields that are at their defaults or without.
    pub(crate) fn stdout(emit_defaults: bool) -> Self {
        Self {
            out: io::stdout().lock(),
            emit_defaults,
            is_coloured: colour::is_wanted(),
        }
    }
}

impl<W: Write> JsonLines<W> {
    pub(crate) fn print(&mut self, message: &DynamicMessage) -> Result<(), PrintError> {
        let mut line = if self.emit_defaults {
            let json = serde_json::to_value(message).map_err(PrintError::Json)?;
            serde_json::to_string(&WithDefaults::of(message, &json))
        } else {
            serde_json::to_string(message)
        }
        .map_err(PrintError::Json)?;
        line = harmless_json(line);
        if self.is_coloured {
            line = colour::coloured(&line);
        }
        line.push('\n');
        let written = self.out.write_all(line.as_bytes());
        let written = written.and_then(|()| self.out.flush());
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => PrintError::Closed,
            _ => PrintError::Io(error),
        })
    }
}
