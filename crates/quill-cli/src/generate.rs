//! What `quill gen` generates, and where it goes.

mod config;
mod files;
mod language;
mod plugin;

pub(crate) use config::{Config, Target};
pub(crate) use files::{Generated, stale, write};
pub(crate) use language::Language;
pub(crate) use plugin::generate;
