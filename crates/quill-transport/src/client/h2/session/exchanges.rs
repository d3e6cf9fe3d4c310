//! The exchanges of a client's connection.

use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use quill_core::{Headers, ResponseHead};
use quill_h2::{ErrorCode, Key};
use tokio::io::{AsyncRead, AsyncWrite};

use super::super::shared::Answer;
use super::Session;
use crate::client::request_body::RequestBody;
use crate::error::{TransportError, TransportErrorKind};
use crate::h2::{Arrival, Inbox, Progress, Sending, Split, StreamTask, Wakes};

/// A stream of a connection, as long as it is open.
pub(super) struct Exchange {
    stream: StreamTask,
    sending: Option<Sending<RequestBody>>,
    answer: Received,
    /// Its stream is gone, though its head is still to be handed over.
    is_broken: bool,
}

/// Where an answer has got to.
enum Received {
    /// Its head is awaited.
    Awaited(Arc<Answer>),
    /// Its head came in this turn, and what more comes in it is gathered in the arrival
    /// with this index.
    Arriving(Arc<Answer>, usize),
    /// The rest goes to its reader, unless its end has.
    Read(Arc<Inbox>, bool),
    /// All of it was handed over at once.
    Done,
}

impl crate::h2::Exchange for Exchange {
    fn stream(&self) -> &StreamTask {
        &self.stream
    }

    fn stream_mut(&mut self) -> &mut StreamTask {
        &mut self.stream
    }

    fn is_sending(&self) -> bool {
        self.sending.is_some()
    }
}

impl Exchange {
    pub(super) fn new(
        stream: Key,
        wakes: Arc<Wakes>,
        answer: Arc<Answer>,
        sending: Option<Sending<RequestBody>>,
    ) -> Self {
        Self {
            stream: StreamTask::new(stream, wakes),
            sending,
            answer: Received::Awaited(answer),
            is_broken: false,
        }
    }

    /// Tells whoever waits or reads that it broke.
    fn fail(self, error: TransportError) {
        // Whoever waits may want the body back to send it again.
        drop(self.sending);
        match self.answer {
            Received::Awaited(answer) | Received::Arriving(answer, _) => answer.give(Err(error)),
            Received::Read(inbox, _) => inbox.fail(error),
            Received::Done => {}
        }
    }
}

impl<T> Session<T> {
    pub(super) fn fail_all(&mut self, error: &TransportError) {
        for exchange in self.exchanges.drain() {
            exchange.fail(error.clone());
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> Session<T> {
    /// An answer's head came; it is handed over at the end of this turn's reading.
    pub(super) fn arrive(&mut self, arrival: Arrival<ResponseHead>) {
        let index = self.arrivals.len();
        let Some(exchange) = self.exchanges.at(arrival.stream) else {
            return;
        };
        if let Received::Awaited(answer) = &exchange.answer {
            exchange.answer = Received::Arriving(answer.clone(), index);
            self.arrivals.push(arrival);
        }
    }

    pub(super) fn take_data(&mut self, stream: Key, data: Bytes, end: bool) {
        let Some(exchange) = self.exchanges.at(stream) else {
            return;
        };
        match &exchange.answer {
            Received::Arriving(_, index) => {
                let index = *index;
                if let Some(arrival) = self.arrivals.get_mut(index) {
                    arrival.put(data, end);
                }
            }
            Received::Read(inbox, _) => {
                inbox.put(data, end);
                if end {
                    self.answer_ended(stream);
                }
            }
            Received::Awaited(_) | Received::Done => {}
        }
    }

    pub(super) fn take_trailers(&mut self, stream: Key, trailers: Headers) {
        let Some(exchange) = self.exchanges.at(stream) else {
            return;
        };
        match &exchange.answer {
            Received::Arriving(_, index) => {
                let index = *index;
                if let Some(arrival) = self.arrivals.get_mut(index) {
                    arrival.put_trailers(trailers);
                }
            }
            Received::Read(inbox, _) => {
                inbox.put_trailers(trailers);
                self.answer_ended(stream);
            }
            Received::Awaited(_) | Received::Done => {}
        }
    }

    /// The last of an answer was handed over. What is left of the request goes on.
    fn answer_ended(&mut self, stream: Key) {
        if let Some(exchange) = self.exchanges.at(stream)
            && let Received::Read(_, has_ended) = &mut exchange.answer
        {
            *has_ended = true;
            self.remove_if_ended(stream);
        }
    }

    fn remove_if_ended(&mut self, stream: Key) {
        let exchange = self.exchanges.at(stream);
        let ended = exchange.is_some_and(|exchange| {
            let has_answer = exchange.is_broken
                || matches!(exchange.answer, Received::Done | Received::Read(_, true));
            has_answer && exchange.sending.is_none()
        });
        if ended {
            self.exchanges.remove(stream);
        }
    }

    /// Hands the answers over that came.
    pub(super) fn hand_over(&mut self) {
        if self.arrivals.is_empty() {
            return;
        }
        let mut arrivals = std::mem::take(&mut self.arrivals);
        for arrival in arrivals.drain(..) {
            let stream = arrival.stream;
            let wakes = self.shared.wakes.clone();
            let Some(exchange) = self.exchanges.at(stream) else {
                continue;
            };
            let Split {
                head,
                body,
                inbox,
                bytes,
            } = arrival.split(&wakes);
            let next = inbox.map_or(Received::Done, |inbox| Received::Read(inbox, false));
            let before = std::mem::replace(&mut exchange.answer, next);
            if let Received::Arriving(answer, _) = before {
                answer.give(Ok((head, body)));
            }
            self.link.engine.release(stream, bytes);
            self.remove_if_ended(stream);
        }
        self.arrivals = arrivals;
    }

    /// Looks at the streams that were woken; whether there were any, or a call.
    pub(super) fn look(&mut self, cx: &mut Context<'_>) -> bool {
        let mut woken = std::mem::take(&mut self.woken);
        let taken = self.shared.wakes.take(&mut woken, cx.waker());
        let any = taken.all || taken.called || !woken.is_empty();
        if taken.all {
            for stream in self.exchanges.streams() {
                self.settle(stream);
            }
        }
        for stream in woken.drain(..) {
            self.settle(stream);
            self.exchanges.enqueue(stream);
        }
        self.woken = woken;
        any
    }

    /// Takes note of what an answer's reader has done, or that nobody waits for it.
    fn settle(&mut self, stream: Key) {
        let Some(exchange) = self.exchanges.at(stream) else {
            return;
        };
        let is_left = match &exchange.answer {
            Received::Awaited(answer) => answer.is_left(),
            Received::Read(inbox, has_ended) => {
                let (reading, has_ended) = (inbox.look(), *has_ended);
                self.link.engine.release(stream, reading.bytes);
                self.link.engine.discard(stream, reading.left.unwrap_or(0));
                reading.left.is_some() && !has_ended
            }
            Received::Arriving(..) | Received::Done => false,
        };
        if is_left {
            self.reset(stream, ErrorCode::CANCEL);
        }
    }

    fn reset(&mut self, stream: Key, code: ErrorCode) {
        self.link.engine.reset(stream, code);
        let message = "this side gave the exchange up";
        let error = TransportError::new(TransportErrorKind::Canceled, message);
        self.forget(stream, error);
    }

    /// Lets go of an exchange that broke. An answer whose head came in this turn is
    /// handed over still, and what came whole stays so: a server may reset the rest of
    /// a request that it has answered (RFC 9113, section 8.1).
    pub(super) fn forget(&mut self, stream: Key, error: TransportError) {
        let Some(exchange) = self.exchanges.at(stream) else {
            return;
        };
        if let Received::Arriving(_, index) = exchange.answer {
            exchange.sending = None;
            exchange.is_broken = true;
            if let Some(arrival) = self.arrivals.get_mut(index) {
                arrival.fail(error);
            }
        } else if let Some(exchange) = self.exchanges.remove(stream) {
            exchange.fail(error);
        }
    }

    /// Sends what waits for its turn, while there is room for it.
    pub(super) fn send(&mut self, cx: &mut Context<'_>) {
        for _ in 0..self.exchanges.queued() {
            if self.link.room() == 0 {
                return;
            }
            if let Some(stream) = self.exchanges.dequeue() {
                self.pump(stream, cx);
            }
        }
    }

    /// Moves a request from its body to the engine, as far as windows and room allow.
    pub(super) fn pump(&mut self, stream: Key, cx: &mut Context<'_>) {
        let room = self.link.room();
        let Some(exchange) = self.exchanges.at(stream) else {
            return;
        };
        let Some(sending) = &mut exchange.sending else {
            return;
        };
        let engine = &mut self.link.engine;
        match sending.pump(engine, &mut exchange.stream, room, cx) {
            Progress::Ended => {
                exchange.sending = None;
                self.remove_if_ended(stream);
            }
            Progress::Queued => self.exchanges.enqueue(stream),
            Progress::Waiting | Progress::Blocked => {}
            Progress::Broken(code) => self.reset(stream, code),
        }
    }
}
