//! What the command prints.

mod breaks;
mod figures;
mod json_lines;
mod problem;
mod report;
mod with_defaults;

pub(crate) use breaks::Breaks;
pub(crate) use figures::{bytes, count, micros};
pub(crate) use json_lines::{JsonLines, PrintError};
pub(crate) use problem::{call_failure, describe, metadata_line};
pub(crate) use report::report;
