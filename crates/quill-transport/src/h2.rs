//! What both ends of an HTTP/2 connection have around the engine of quill-h2.

mod arrival;
mod buffers;
mod exchanges;
mod inbox;
mod link;
mod sending;
mod wakes;

pub(crate) use arrival::{Arrival, Split};
pub(crate) use exchanges::{Exchange, Exchanges};
pub(crate) use inbox::{Inbox, InboxBody};
pub(crate) use link::{ALIVE_PING, EVENTS_MAX, GOODBYE_TIMEOUT, Link, ROUNDS_MAX, reset_error};
pub(crate) use sending::{Progress, Sending, StreamTask};
use wakes::StreamWaker;
pub(crate) use wakes::Wakes;
