//! What is asked of an explanation.

use buffa_descriptor::{DescriptorPool, MessageIndex};
use quill_core::compression::Encoding;
use std::sync::Arc;

use crate::container::Container;

/// What is known of the bytes, and how they are shown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What the messages travel in; `None` recognises it.
    pub container: Option<Container>,
    /// What compressed messages are compressed with; `None` recognises gzip and zstd.
    pub encoding: Option<Encoding>,
    /// The type of the messages; `None` guesses at fields.
    pub schema: Option<Schema>,
    /// How messages are shown.
    pub view: View,
    /// Most bytes of a message that has to be held as a whole: one that is
    /// compressed, or to be shown as JSON.
    pub message_bytes_max: usize,
}

/// A type of a schema.
#[derive(Clone, Debug)]
pub struct Schema {
    /// All types.
    pub pool: Arc<DescriptorPool>,
    /// That of the messages.
    pub message: MessageIndex,
}

/// How messages are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// A line for each field, and for what is around the messages.
    Dump,
    /// The messages alone, each in a line of JSON. Needs a schema.
    Json,
}

impl Default for Options {
    /// All is recognised and dumped; messages that are held have 64 MiB at most.
    fn default() -> Self {
        Self {
            container: None,
            encoding: None,
            schema: None,
            view: View::Dump,
            message_bytes_max: 64 * 1024 * 1024,
        }
    }
}
