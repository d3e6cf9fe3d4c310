//! What both ends of an HTTP/2 connection have around the engine of quill-h2.

mod buffers;
mod inbox;
mod wakes;

pub(crate) use buffers::{READ_BYTES, Spare};
pub(crate) use inbox::{Inbox, InboxBody};
pub(crate) use wakes::{StreamWaker, Wakes};
