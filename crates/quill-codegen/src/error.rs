//! What can go wrong between a `.proto` and Rust.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::diagnostic::Diagnostic;

/// Why no code could be generated.
///
/// Printed with `{}` it names file, line and column where there are any, says
/// what is wrong, and shows the line:
///
/// ```text
/// proto/echo/v1/echo.proto:9:12: name 'EchoReqest' is not defined
///    |
///  9 |   rpc Echo(EchoReqest) returns (EchoResponse);
///    |            ^^^^^^^^^^
/// ```
pub struct Error(Box<Kind>);

enum Kind {
    Schema(Diagnostic),
    File {
        doing: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    Other(String),
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Kind::Other(message.into())))
    }

    pub(crate) fn schema(diagnostic: Diagnostic) -> Self {
        Self(Box::new(Kind::Schema(diagnostic)))
    }

    /// `doing` completes "can't ... PATH".
    pub(crate) fn file(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self(Box::new(Kind::File {
            doing,
            path: path.to_owned(),
            source,
        }))
    }

    /// The file at fault, when it is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &*self.0 {
            Kind::Schema(diagnostic) => diagnostic.path.as_deref(),
            Kind::File { path, .. } => Some(path),
            Kind::Other(_) => None,
        }
    }

    /// The line at fault, counted from 1, when there is one.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match &*self.0 {
            Kind::Schema(diagnostic) => diagnostic.line(),
            Kind::File { .. } | Kind::Other(_) => None,
        }
    }

    /// Prints the error to stderr and ends the process with status 1: for
    /// `build.rs`, whose stderr cargo shows when it fails.
    #[allow(clippy::print_stderr, reason = "this is what the method is for")]
    pub fn exit(&self) -> ! {
        eprintln!("error: {self}");
        std::process::exit(1)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Schema(diagnostic) => diagnostic.fmt(f),
            Kind::File {
                doing,
                path,
                source,
            } => write!(f, "can't {doing} {}: {source}", path.display()),
            Kind::Other(message) => f.write_str(message),
        }
    }
}

/// As `Display`: `unwrap` in a `build.rs` then shows the same text.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &*self.0 {
            Kind::File { source, .. } => Some(source),
            Kind::Schema(_) | Kind::Other(_) => None,
        }
    }
}
