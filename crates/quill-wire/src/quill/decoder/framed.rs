//! A body of frames.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use quill_core::compression::Encoding;
use quill_core::frame::{Flags, Frame, FrameDecoder, FrameError, FrameErrorKind, FrameKind};
use quill_core::{Error, Metadata};

use super::super::credits::Ledger;
use super::super::{metadata, problem};
use super::{Bare, at_fault};
use crate::message;
use crate::protocol::{Call, Event, Side};

/// A message is copied out of what it came in when it is under one part in this
/// many of it, so that a small message that is kept keeps no read buffer.
const COPY_RATIO: usize = 4;

/// Reads frames and keeps the rules of a stream.
#[derive(Debug)]
pub(super) struct Framed {
    frames: FrameDecoder,
    /// What is read now, how long it was when it came, and what came after it.
    chunk: Bytes,
    chunk_bytes: usize,
    queue: VecDeque<Bytes>,
    /// Messages are not copied out of it.
    is_shared: bool,
    encoding: Encoding,
    bytes_max: usize,
    side: Side,
    /// Client: leading metadata, which a failure carries too.
    leading: Metadata,
    ledger: Option<Arc<Ledger>>,
    progress_seen: u32,
    /// A message was given out since; whoever asks for the next one took it.
    delivered: bool,
    /// The dialect may compress a whole body of frames: it is gathered here
    /// until it can be read.
    whole: Option<Bare>,
    /// The last message was given out, its end not yet.
    is_ending: bool,
    has_ended: bool,
    is_finished: bool,
}

impl Framed {
    pub(super) fn of(call: &Call, side: Side) -> Self {
        let is_compressed = call.marks.is_dialect && call.receive != Encoding::Identity;
        let bytes_max = call.options.receive_bytes_max;
        Self {
            frames: FrameDecoder::new(bytes_max),
            chunk: Bytes::new(),
            chunk_bytes: 0,
            queue: VecDeque::new(),
            is_shared: false,
            encoding: if is_compressed {
                Encoding::Identity
            } else {
                call.receive
            },
            bytes_max,
            side,
            leading: Metadata::new(),
            ledger: call
                .credits
                .as_ref()
                .and_then(crate::quill::Credits::ledger),
            progress_seen: 0,
            delivered: false,
            whole: is_compressed.then(|| Bare::of(call, side)),
            is_ending: false,
            has_ended: false,
            is_finished: false,
        }
    }

    /// Client: what the answer's head said.
    pub(super) fn answered(
        &mut self,
        encoding: Encoding,
        granted: Option<u32>,
        leading: &Metadata,
    ) {
        self.encoding = encoding;
        self.leading.clone_from(leading);
        if let Some(ledger) = &self.ledger {
            ledger.answered(granted);
        }
    }

    pub(super) fn feed(&mut self, bytes: Bytes) {
        match &mut self.whole {
            Some(whole) => whole.feed(bytes),
            None => self.push(bytes),
        }
    }

    fn push(&mut self, bytes: Bytes) {
        if self.chunk.is_empty() && self.queue.is_empty() {
            self.chunk_bytes = bytes.len();
            self.chunk = bytes;
        } else {
            self.queue.push_back(bytes);
        }
    }

    pub(super) fn share_memory(&mut self) {
        self.is_shared = true;
    }

    pub(super) fn finish(&mut self) {
        self.is_finished = true;
        if let Some(whole) = &mut self.whole {
            whole.is_whole = true;
        }
    }

    /// Frames hold nothing but memory of their own, once no whole one is left.
    pub(super) fn hold(&mut self) {
        self.whole.as_mut().into_iter().for_each(Bare::hold);
    }

    pub(super) fn held_bytes(&self) -> usize {
        let whole = self.whole.as_ref().map_or(0, Bare::held_bytes);
        let waiting = self.queue.iter().map(Bytes::len);
        waiting
            .chain([self.chunk.len(), self.frames.held_bytes(), whole])
            .fold(0, usize::saturating_add)
    }

    pub(super) fn next(&mut self, trailers: &mut Metadata) -> Result<Option<Event>, Error> {
        if std::mem::take(&mut self.is_ending) {
            return Ok(Some(self.end(Ok(()), trailers)));
        }
        if !self.unpack_whole()? {
            return Ok(None);
        }
        self.note_progress();
        loop {
            let Some(frame) = self.next_frame()? else {
                return self.at_rest();
            };
            if let Some(event) = self.read(frame, trailers)? {
                return Ok(Some(event));
            }
        }
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, Error> {
        loop {
            match self.frames.decode(&mut self.chunk) {
                Ok(None) => {
                    let Some(chunk) = self.queue.pop_front() else {
                        return Ok(None);
                    };
                    self.chunk_bytes = chunk.len();
                    self.chunk = chunk;
                }
                Ok(frame) => return Ok(frame),
                Err(error) => {
                    // Nobody reads what follows.
                    self.chunk = Bytes::new();
                    self.queue = VecDeque::new();
                    return Err(self.fault(&error));
                }
            }
        }
    }

    /// Decompresses a body that is compressed as a whole, once it is whole; says
    /// whether frames can be read.
    fn unpack_whole(&mut self) -> Result<bool, Error> {
        let Some(whole) = &mut self.whole else {
            return Ok(true);
        };
        match whole.next(&mut Metadata::new())? {
            Some(Event::Message(bytes)) => {
                self.push(bytes);
                self.whole = None;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Tells the flood guard what it can't see: that messages went the other
    /// way, that we granted more, that the application took what came.
    fn note_progress(&mut self) {
        let progress = self.ledger.as_ref().map_or(0, |ledger| ledger.progress());
        if progress != self.progress_seen || self.delivered {
            self.progress_seen = progress;
            self.delivered = false;
            self.frames.progressed();
        }
    }

    /// What a frame means; `None` where it is nothing to the call.
    fn read(&mut self, frame: Frame, trailers: &mut Metadata) -> Result<Option<Event>, Error> {
        let flags = frame.flags();
        match flags.kind() {
            FrameKind::Data => {
                self.is_ending = flags.ends_stream();
                self.message(flags, frame.into_payload()).map(Some)
            }
            FrameKind::EndStream => Ok(Some(self.end(Ok(()), trailers))),
            FrameKind::Problem => {
                let error = self.problem(frame.payload())?;
                Ok(Some(self.end(Err(error), trailers)))
            }
            FrameKind::Cancel => {
                self.has_ended = true;
                Ok(Some(Event::Cancel))
            }
            FrameKind::Credit => {
                let works = self.ledger.as_ref().is_some_and(|l| !l.is_off());
                let credits = frame.credits().filter(|_| works);
                Ok(credits.map(|messages| Event::Credit(messages.get())))
            }
            FrameKind::Metadata => {
                metadata::take_block(frame.payload(), trailers).map_err(|e| self.fault(&e))?;
                Ok(None)
            }
        }
    }

    fn message(&mut self, flags: Flags, payload: Bytes) -> Result<Event, Error> {
        if self
            .ledger
            .as_ref()
            .is_some_and(|ledger| !ledger.received())
        {
            return Err(Error::resource_exhausted(
                "more messages came than were granted; wait for CREDIT",
            ));
        }
        self.delivered = true;
        if !flags.is_compressed() {
            let is_small_part = payload.len().saturating_mul(COPY_RATIO) < self.chunk_bytes;
            return Ok(Event::Message(if is_small_part && !self.is_shared {
                Bytes::copy_from_slice(&payload)
            } else {
                payload
            }));
        }
        if self.encoding == Encoding::Identity {
            return Err(self.fault("a COMPRESSED frame in a stream without quill-encoding"));
        }
        let fault = at_fault(self.side);
        message::unpack(self.encoding, &payload, self.bytes_max, fault).map(Event::Message)
    }

    fn problem(&self, document: &[u8]) -> Result<Error, Error> {
        if self.side == Side::Server {
            return Err(self.fault("a PROBLEM frame in a request; only a server fails a stream"));
        }
        problem::decode(document, None)
            .ok_or_else(|| self.fault("the payload of a PROBLEM frame is no JSON object"))
    }

    /// The event of the end, with all metadata there is where it is a failure.
    fn end(&mut self, result: Result<(), Error>, trailers: &mut Metadata) -> Event {
        self.has_ended = true;
        let trailers = std::mem::take(trailers);
        Event::End(match result {
            Ok(()) => Ok(trailers),
            Err(mut error) => {
                error.received_metadata_mut().extend(&self.leading);
                error.received_metadata_mut().extend(&trailers);
                Err(error)
            }
        })
    }

    /// No whole frame is left.
    fn at_rest(&self) -> Result<Option<Event>, Error> {
        if self.is_finished && !self.has_ended {
            self.frames.finish().map_err(|error| self.fault(&error))?;
        }
        Ok(None)
    }

    fn fault(&self, error: impl Into<Fault>) -> Error {
        match error.into() {
            Fault::TooMuch(text) => Error::resource_exhausted(text),
            Fault::Malformed(text) => at_fault(self.side)(text),
        }
    }
}

/// What is wrong with a stream.
enum Fault {
    Malformed(String),
    TooMuch(String),
}

impl From<&FrameError> for Fault {
    fn from(error: &FrameError) -> Self {
        match error.kind() {
            FrameErrorKind::TooMuch => Fault::TooMuch(error.to_string()),
            FrameErrorKind::Malformed | FrameErrorKind::Incomplete => {
                Fault::Malformed(error.to_string())
            }
        }
    }
}

impl From<&str> for Fault {
    fn from(text: &str) -> Self {
        Fault::Malformed(text.to_owned())
    }
}
