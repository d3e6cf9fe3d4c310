//! A call that is under way on a lane.

use std::time::Instant;

use bytes::Bytes;
use quill::{Error, MethodKind};
use quill_core::{Headers, ResponseHead};
use quill_wire::{Decode, Decoder, Event};

use super::call::Traffic;

/// A call that was begun, and what has come of its answer.
pub(super) struct UnderWay {
    pub(super) number: u64,
    /// When it was due, from which its latency counts.
    pub(super) since: Instant,
    /// When it was made, from which its time limit counts.
    pub(super) made: Instant,
    /// It was sent before, on a connection that did not take it.
    pub(super) is_again: bool,
    decoder: Decoder,
    kind: MethodKind,
    traffic: Traffic,
    /// What came is none of its protocol, or too much: there is no sense in more of it.
    pub(super) is_broken: bool,
    /// Bytes that the body of an answer may have yet whose status says that it failed.
    error_bytes_left: Option<usize>,
}

/// How a call ended, if it did.
pub(super) type Outcome = Option<Result<Traffic, Error>>;

impl UnderWay {
    pub(super) fn new(
        number: u64,
        since: Instant,
        made: Instant,
        (decoder, kind): (Decoder, MethodKind),
        bytes_sent: u64,
    ) -> Self {
        Self {
            number,
            since,
            made,
            is_again: false,
            decoder,
            kind,
            traffic: Traffic {
                bytes_sent,
                ..Traffic::default()
            },
            is_broken: false,
            error_bytes_left: None,
        }
    }

    /// The answer's head came.
    pub(super) fn head(&mut self, head: &ResponseHead, error_bytes_max: usize) -> Outcome {
        if head.status != 200 {
            self.error_bytes_left = Some(error_bytes_max);
        }
        let error = self.decoder.head(head).err()?;
        self.is_broken = true;
        Some(Err(error))
    }

    /// Bytes of its body came.
    pub(super) fn feed(&mut self, bytes: Bytes) -> Outcome {
        if let Some(left) = self.error_bytes_left {
            match left.checked_sub(bytes.len()) {
                Some(left) => self.error_bytes_left = Some(left),
                None => {
                    // What is there has to do.
                    self.is_broken = true;
                    return self.end(None);
                }
            }
        }
        self.decoder.feed(bytes);
        let outcome = self.read();
        if outcome.is_none() {
            self.decoder.hold();
        }
        outcome
    }

    /// Its body ended.
    pub(super) fn end(&mut self, trailers: Option<Headers>) -> Outcome {
        self.decoder.finish(trailers);
        let no_end = || Err(Error::internal("the answer ended before the call did"));
        self.read().or_else(|| Some(no_end()))
    }

    fn read(&mut self) -> Outcome {
        loop {
            match self.decoder.next() {
                Ok(None) => return None,
                Ok(Some(Event::Message(message))) => {
                    self.traffic.bytes_received += message.len() as u64;
                    self.traffic.messages_received += 1;
                }
                Ok(Some(Event::Credit(_))) => {}
                Ok(Some(Event::End(Ok(_)))) => return Some(self.answered()),
                Ok(Some(Event::End(Err(error)))) => return Some(Err(error)),
                Err(error) => {
                    self.is_broken = true;
                    return Some(Err(error));
                }
                Ok(Some(Event::Cancel)) => {
                    return Some(Err(Error::canceled("the server gave the call up")));
                }
            }
        }
    }

    fn answered(&self) -> Result<Traffic, Error> {
        let messages = self.traffic.messages_received;
        if self.kind.server_streams() || messages == 1 {
            return Ok(self.traffic);
        }
        Err(Error::unimplemented(format!(
            "the server answered with {messages} messages where the method has one"
        )))
    }
}
