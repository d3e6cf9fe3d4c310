//! What layers have in common that watch calls from their beginning to their end.

mod ending;
mod future;
mod streams;

use quill_core::{Code, Error};

pub(crate) use ending::{Ending, unfinished};
pub(crate) use future::WatchedFuture;
pub(crate) use streams::WatchedInbound;

/// Watches one call. Dropped before the call's end, it has seen it given up.
pub(crate) trait CallWatch: Send + Unpin + 'static {
    /// Runs what may panic, and belongs to the call.
    fn run<T>(&mut self, f: impl FnOnce() -> T) -> T;

    /// Messages go out, of so many bytes together before they are compressed.
    fn sent(&mut self, messages: u64, bytes: u64);

    /// Most bytes of a message: a larger one is not sent.
    fn send_bytes_max(&self) -> usize;

    /// Whether it has seen the end.
    fn has_ended(&self) -> bool;

    /// The call has ended: well, or with this code. Only the first end counts.
    fn end(&mut self, failure: Option<Code>);

    /// The call has ended with this error, which the caller is told.
    fn fail(&mut self, error: &Error) {
        self.end(Some(error.code()));
    }
}

/// Is told of the messages of a call that come in.
pub(crate) trait Arrivals: Send + Unpin + 'static {
    /// A message came, of so many bytes before it was compressed.
    fn received(&self, bytes: usize);
}
