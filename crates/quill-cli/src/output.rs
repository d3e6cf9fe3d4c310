//! What the command prints.

mod breaks;
mod json_lines;
mod problem;
mod with_defaults;

pub(crate) use breaks::Breaks;
pub(crate) use json_lines::{JsonLines, PrintError};
pub(crate) use problem::{call_failure, describe, metadata_line};
