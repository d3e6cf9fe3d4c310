//! How the command ends when something failed.

use std::fmt;
use std::process::ExitCode;

/// What failed, and with which exit code: 2 bad input, 3 network, 4 server error.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The user's input can't be used.
    pub(crate) fn input(message: impl Into<String>) -> Self {
        Self {
            code: 2,
            message: message.into(),
        }
    }

    /// The network, or this machine's, is in the way.
    pub(crate) fn network(message: impl Into<String>) -> Self {
        Self {
            code: 3,
            message: message.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Tells the user, and gives the exit code.
#[expect(clippy::print_stderr, reason = "this is the command's own output")]
pub(crate) fn report(failure: &Failure) -> ExitCode {
    eprintln!("quill: {failure}");
    ExitCode::from(failure.code)
}
