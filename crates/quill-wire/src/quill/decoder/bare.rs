//! A body that is one message.

use bytes::Bytes;
use quill_core::compression::Encoding;
use quill_core::{Error, Metadata};

use super::at_fault;
use crate::chunks::Chunks;
use crate::message;
use crate::protocol::{Call, Event, Side};

/// Gathers the one message of a body, up to the limit.
#[derive(Debug)]
pub(super) struct Bare {
    pub(super) encoding: Encoding,
    /// The body has ended.
    pub(super) is_whole: bool,
    chunks: Chunks,
    bytes_max: usize,
    at_fault: fn(String) -> Error,
    progress: Progress,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Gathering,
    /// The bytes are over the limit, whatever still comes.
    TooLarge,
    Delivered,
    Ended,
}

impl Bare {
    pub(super) fn of(call: &Call, side: Side) -> Self {
        let mut chunks = Chunks::whole(call.options.receive_bytes_max);
        if let Some(message) = &call.inline_body {
            chunks.push(message.clone());
        }
        Self {
            encoding: call.receive,
            is_whole: call.inline_body.is_some(),
            chunks,
            bytes_max: call.options.receive_bytes_max,
            at_fault: at_fault(side),
            progress: Progress::Gathering,
        }
    }

    pub(super) fn feed(&mut self, bytes: Bytes) {
        if self.progress != Progress::Gathering || self.is_whole {
            return;
        }
        // Compressed or not, what is over the limit already never gets under it.
        if bytes.len() > self.bytes_max.saturating_sub(self.chunks.len()) {
            self.progress = Progress::TooLarge;
            self.chunks = Chunks::default();
            return;
        }
        self.chunks.push(bytes);
    }

    pub(super) fn next(&mut self, trailers: &mut Metadata) -> Result<Option<Event>, Error> {
        match self.progress {
            Progress::TooLarge => Err(Error::resource_exhausted(format!(
                "a message is over the receive limit of {} bytes",
                self.bytes_max
            ))),
            Progress::Gathering if self.is_whole => {
                self.progress = Progress::Delivered;
                let bytes = self.chunks.take_all();
                let message = match self.encoding {
                    Encoding::Identity => bytes,
                    encoding => message::unpack(encoding, &bytes, self.bytes_max, self.at_fault)?,
                };
                Ok(Some(Event::Message(message)))
            }
            Progress::Delivered => {
                self.progress = Progress::Ended;
                Ok(Some(Event::End(Ok(std::mem::take(trailers)))))
            }
            Progress::Gathering | Progress::Ended => Ok(None),
        }
    }

    pub(super) fn hold(&mut self) {
        self.chunks.hold();
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.chunks.held_bytes()
    }
}
