//! How the command ends when something failed.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use quill_explain::harmless;

/// What failed, and with which exit code: 1 beyond limits, 2 bad input, 3 network,
/// 4 server error.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// All went well, and what was found is beyond the limits that were set.
    pub(crate) fn beyond_limits(message: impl Into<String>) -> Self {
        Self {
            code: 1,
            message: message.into(),
        }
    }

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

    /// The server answered with an error, or with what is no answer.
    pub(crate) fn server(message: impl Into<String>) -> Self {
        Self {
            code: 4,
            message: message.into(),
        }
    }

    /// The same failure with what to do about it.
    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.message.push_str("\n  ");
        self.message.push_str(hint);
        self
    }

    /// Tells the user, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        // Nobody is left to tell when stderr is closed.
        let _ = writeln!(std::io::stderr(), "quill: {self}");
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a server or a file said must not drive the terminal.
        for (index, line) in self.message.split('\n').enumerate() {
            let end = if index > 0 { "\n" } else { "" };
            write!(f, "{end}{}", harmless(line))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_said_does_not_drive_the_terminal() {
        let failure = Failure::server("a\u{1b}[2J\u{9b}b\r\n::error::d").with_hint("c ü");
        let shown = r"a\u{1b}[2J\u{9b}b\r".to_owned() + "\n\\u{3a}:error::d\n  c ü";
        assert_eq!(failure.to_string(), shown);
    }
}
