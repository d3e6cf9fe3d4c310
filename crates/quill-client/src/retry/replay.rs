//! The messages of a request, kept for another attempt.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use quill_core::{Error, Format, MessageSink, Outbound, Outgoing};

use crate::messages::{Messages, encoded, raw};

/// A request's messages, as often as attempts need them.
pub(super) enum Replay {
    One(Bytes),
    Many(Arc<Mutex<Tape>>),
}

/// What of a stream was sent, and where more comes from.
pub(super) struct Tape {
    source: Option<Pin<Box<dyn Outbound>>>,
    format: Format,
    sent: Vec<Bytes>,
    bytes_left: usize,
    /// Messages are kept: another attempt is possible.
    is_kept: bool,
    /// The attempt that the messages are for; those before get no more.
    attempt: u32,
}

impl Replay {
    /// # Errors
    /// The message can't be encoded.
    pub(super) fn new(messages: Messages, format: Format, bytes_max: usize) -> Result<Self, Error> {
        Ok(match messages {
            Messages::One(message) => Self::One(encoded(&*message, format)?),
            Messages::Many(source) => Self::Many(Arc::new(Mutex::new(Tape {
                source: Some(source),
                format,
                sent: Vec::new(),
                bytes_left: bytes_max,
                is_kept: true,
                attempt: 0,
            }))),
        })
    }

    /// The messages from the first on, for the next attempt.
    pub(super) fn messages(&self) -> Messages {
        match self {
            Self::One(message) => Messages::One(Box::new(raw(message.clone()))),
            Self::Many(tape) => {
                let mut state = lock(tape);
                state.attempt += 1;
                let attempt = state.attempt;
                drop(state);
                let tape = Arc::clone(tape);
                let at = 0;
                Messages::Many(Box::pin(Playing { tape, attempt, at }))
            }
        }
    }

    /// Whether all messages are there yet.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Self::One(_) => true,
            Self::Many(tape) => lock(tape).is_kept,
        }
    }

    /// No further attempt will be made: nothing is kept from now on.
    pub(super) fn commit(&self) {
        if let Self::Many(tape) = self {
            lock(tape).is_kept = false;
        }
    }
}

/// The messages for one attempt: what was sent before, then what is new.
struct Playing {
    tape: Arc<Mutex<Tape>>,
    attempt: u32,
    /// How many of those on the tape this attempt has had.
    at: usize,
}

impl Outbound for Playing {
    fn poll_messages(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        sink: &mut dyn MessageSink,
    ) -> Poll<Option<Result<(), Error>>> {
        let this = &mut *self;
        let mut state = lock(&this.tape);
        let tape = &mut *state;
        if tape.attempt != this.attempt {
            let error = Error::canceled("another attempt of the call has taken over");
            return Poll::Ready(Some(Err(error)));
        }
        if let Some(message) = tape.sent.get(this.at) {
            this.at += 1;
            return Poll::Ready(Some(sink.message(&raw(message.clone())).map(drop)));
        }
        if !tape.is_kept && this.at > 0 {
            tape.sent = Vec::new();
            this.at = 0;
        }
        let Some(mut source) = tape.source.take() else {
            return Poll::Ready(None);
        };
        let polled = source
            .as_mut()
            .poll_messages(cx, &mut Recorder { tape, sink });
        this.at = tape.sent.len();
        if !matches!(polled, Poll::Ready(None)) {
            tape.source = Some(source);
        }
        polled
    }
}

/// Keeps what passes, as long as there is room.
struct Recorder<'a> {
    tape: &'a mut Tape,
    sink: &'a mut dyn MessageSink,
}

impl MessageSink for Recorder<'_> {
    fn message(&mut self, message: &dyn Outgoing) -> Result<bool, Error> {
        if !self.tape.is_kept {
            return self.sink.message(message);
        }
        let bytes = encoded(message, self.tape.format)?;
        match self.tape.bytes_left.checked_sub(bytes.len()) {
            Some(left) => {
                self.tape.bytes_left = left;
                self.tape.sent.push(bytes.clone());
            }
            None => {
                self.tape.is_kept = false;
                self.tape.sent = Vec::new();
            }
        }
        self.sink.message(&raw(bytes))
    }
}

fn lock(tape: &Mutex<Tape>) -> MutexGuard<'_, Tape> {
    tape.lock().unwrap_or_else(PoisonError::into_inner)
}
