//! What the generated messages and clients name.

pub(crate) use ::{buffa, serde};
pub(crate) use quill_client::{ConnectError, QuillClient};
pub(crate) use quill_core::*;
