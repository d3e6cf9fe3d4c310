//! Requests: from the engine to the service.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Context;

use bytes::Bytes;
use quill_core::{Headers, SharedHead};
use quill_h2::{ErrorCode, Key};

use super::Session;
use crate::error::TransportError;
use crate::exchange::{HttpRequest, Service};
use crate::h2::{Arrival, Inbox, Split, reset_error};
use crate::server::h2::exchange::{Answer, Exchange, Making, Request};

impl<S: Service> Session<S> {
    /// A request's head came; it is handed over at the end of this turn's reading.
    pub(super) fn arrive(
        &mut self,
        stream: Key,
        head: SharedHead,
        content_length: Option<u64>,
        ended: bool,
    ) {
        let arrival = Arrival::new(stream, head, content_length, ended);
        self.arrivals.push(arrival);
    }

    /// A request that came in this turn; mostly the last.
    fn arrival(&mut self, stream: Key) -> Option<&mut Arrival<SharedHead>> {
        let mut arrivals = self.arrivals.iter_mut().rev();
        arrivals.find(|arrival| arrival.stream == stream)
    }

    pub(super) fn take_data(&mut self, stream: Key, data: Bytes, end: bool) {
        let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let Some(exchange) = self.exchanges.at(stream) else {
            if let Some(arrival) = self.arrival(stream) {
                arrival.put(data, end);
            }
            return;
        };
        match &mut exchange.request {
            Request::Read(inbox) => {
                inbox.put(data, end);
                if end {
                    self.request_ended(stream);
                }
            }
            Request::Left(left) => {
                *left = left.saturating_sub(data.len());
                let (is_enough, is_answered) = (*left == 0, exchange.is_answered);
                self.link.engine.discard(stream, bytes);
                // Who has used up its window would wait for nothing.
                let is_enough = is_answered && (is_enough || !self.link.engine.may_receive(stream));
                if end {
                    self.request_ended(stream);
                } else if is_enough {
                    self.stop(stream);
                }
            }
            Request::Done => {}
        }
    }

    pub(super) fn take_trailers(&mut self, stream: Key, trailers: Headers) {
        let Some(exchange) = self.exchanges.at(stream) else {
            if let Some(arrival) = self.arrival(stream) {
                arrival.put_trailers(trailers);
            }
            return;
        };
        if let Request::Read(inbox) = &exchange.request {
            inbox.put_trailers(trailers);
        }
        self.request_ended(stream);
    }

    /// The last part of a request came.
    fn request_ended(&mut self, stream: Key) {
        if self
            .exchanges
            .at(stream)
            .is_some_and(|exchange| exchange.is_answered)
        {
            self.exchanges.remove(stream);
        }
    }

    /// Hands the requests over that came.
    pub(super) fn hand_over(&mut self, cx: &mut Context<'_>) {
        if self.arrivals.is_empty() {
            return;
        }
        if self.mark.is_none() {
            self.mark = Some(self.activity.begin());
        }
        let mut arrivals = std::mem::take(&mut self.arrivals);
        for arrival in arrivals.drain(..) {
            self.call(arrival, cx);
        }
        self.arrivals = arrivals;
    }

    /// Asks the service, in place first: a task of its own is for what has to wait. What
    /// is whole and answered at once, as most requests are, leaves nothing behind.
    fn call(&mut self, arrival: Arrival<SharedHead>, cx: &mut Context<'_>) {
        let stream = arrival.stream;
        let Split {
            head,
            body,
            inbox,
            bytes,
        } = arrival.split(&self.wakes);
        self.link.engine.accept(stream);
        self.link.engine.release(stream, bytes);
        let request = HttpRequest {
            head,
            body,
            peer: self.peer.clone(),
            budget: self.budget.clone(),
        };
        let service = &self.service;
        let begun = catch_unwind(AssertUnwindSafe(|| service.begin(request, cx)));
        match begun {
            Ok(Ok(response)) => {
                let rest = self.begin_answer(stream, response);
                if rest.is_none() && inbox.is_none() {
                    return;
                }
                self.open(stream, inbox, Answer::None);
                self.go_on(stream, rest, cx);
            }
            Ok(Err(future)) => {
                let making = Making(tokio::spawn(future));
                self.open(stream, inbox, Answer::Made(making));
                self.look_at(stream, cx);
            }
            Err(_) => {
                tracing::error!("a service panicked");
                self.open(stream, inbox, Answer::None);
                self.reset(stream, ErrorCode::INTERNAL_ERROR);
            }
        }
    }

    /// Keeps an exchange that is not done.
    fn open(&mut self, stream: Key, inbox: Option<Arc<Inbox>>, answer: Answer<S::Body>) {
        let mut exchange = Box::new(Exchange::new(stream, self.wakes.clone(), inbox));
        exchange.answer = answer;
        self.exchanges.insert(exchange);
    }

    /// Takes note of what a request's reader has done.
    pub(super) fn settle(&mut self, stream: Key) {
        let Some(exchange) = self.exchanges.at(stream) else {
            return;
        };
        let Request::Read(inbox) = &exchange.request else {
            return;
        };
        let reading = inbox.look();
        if reading.left.is_some() {
            exchange.request = Request::left();
        }
        if reading.bytes > 0 {
            self.link.engine.release(stream, reading.bytes);
        }
        if let Some(unread) = reading.left {
            self.link.engine.discard(stream, unread);
        }
    }

    /// Ends a request that was answered and still comes in (RFC 9113, section 8.1).
    pub(super) fn stop(&mut self, stream: Key) {
        if self
            .exchanges
            .at(stream)
            .is_some_and(|exchange| exchange.is_answered)
        {
            self.reset(stream, ErrorCode::NO_ERROR);
        }
    }

    pub(super) fn reset(&mut self, stream: Key, code: ErrorCode) {
        self.link.engine.reset(stream, code);
        self.forget(stream, reset_error(code, false));
    }

    /// Lets go of an exchange that broke.
    pub(super) fn forget(&mut self, stream: Key, error: TransportError) {
        match self.exchanges.remove(stream) {
            Some(exchange) => exchange.fail(error),
            None => self.arrivals.retain(|arrival| arrival.stream != stream),
        }
    }

    pub(super) fn forget_all(&mut self, error: &TransportError) {
        self.arrivals.clear();
        for exchange in self.exchanges.drain() {
            exchange.fail(error.clone());
        }
    }
}
