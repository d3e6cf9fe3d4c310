//! Why an explanation could not go on.

use std::fmt;
use std::io;

/// Neither end is at fault for what the bytes hold: that is part of the text.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failed {
    /// The input can't be read.
    Read(io::Error),
    /// The text can't be written.
    Write(io::Error),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "the input can't be read: {error}"),
            Self::Write(error) => write!(f, "the text can't be written: {error}"),
        }
    }
}

impl std::error::Error for Failed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) | Self::Write(error) => Some(error),
        }
    }
}
