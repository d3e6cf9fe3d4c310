//! What the command prints.

mod breaks;
mod colour;
mod figures;
mod json_lines;
mod narration;
mod print;
mod problem;
mod proto_source;
mod report;
mod template;
mod with_defaults;

pub(crate) use breaks::Breaks;
pub(crate) use figures::{bytes, count, micros};
pub(crate) use json_lines::{JsonLines, PrintError};
pub(crate) use narration::Narration;
pub(crate) use print::print;
pub(crate) use problem::{call_failure, describe, metadata_line};
pub(crate) use proto_source::declaration;
pub(crate) use report::report;
pub(crate) use template::template;
