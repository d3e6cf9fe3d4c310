//! Requests: from the engine to the service.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use quill_core::{Headers, RequestHead};
use quill_h2::{ErrorCode, Key};

use super::Session;
use crate::error::TransportError;
use crate::exchange::{HttpRequest, Service};
use crate::h2::{Arrival, Split, reset_error};
use crate::server::h2::exchange::{Answer, Exchange, Making, Request};

impl<S: Service> Session<S> {
    /// A request's head came; it is handed over at the end of this turn's reading.
    pub(super) fn arrive(
        &mut self,
        stream: Key,
        head: Arc<RequestHead>,
        content_length: Option<u64>,
        ended: bool,
    ) {
        let exchange = Exchange::new(stream, self.wakes.clone(), self.arrivals.len());
        let arrival = Arrival::new(stream, head, content_length, ended);
        self.arrivals.push(arrival);
        self.exchanges.insert(exchange);
    }

    pub(super) fn take_data(&mut self, stream: Key, data: Bytes, end: bool) {
        let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let Some(exchange) = self.exchanges.at(stream) else {
            return;
        };
        match &mut exchange.request {
            Request::Arriving(index) => {
                let index = *index;
                if let Some(arrival) = self.arrivals.get_mut(index) {
                    arrival.put(data, end);
                }
            }
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
            return;
        };
        match &exchange.request {
            Request::Arriving(index) => {
                let index = *index;
                if let Some(arrival) = self.arrivals.get_mut(index) {
                    arrival.put_trailers(trailers);
                }
                return;
            }
            Request::Read(inbox) => inbox.put_trailers(trailers),
            Request::Left(_) | Request::Done => {}
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

    /// Asks the service, in place first: a task of its own is for what has to wait.
    fn call(&mut self, arrival: Arrival<Arc<RequestHead>>, cx: &mut Context<'_>) {
        let stream = arrival.stream;
        if self.exchanges.at(stream).is_none() {
            // It was reset meanwhile.
            return;
        }
        let Split {
            head,
            body,
            inbox,
            bytes,
        } = arrival.split(&self.wakes);
        if let Some(exchange) = self.exchanges.at(stream) {
            exchange.request = inbox.map_or(Request::Done, Request::Read);
        }
        self.link.engine.accept(stream);
        self.link.engine.release(stream, bytes);
        let request = HttpRequest {
            head,
            body,
            peer: self.peer.clone(),
            budget: self.budget.clone(),
        };
        let service = &self.service;
        let polled = catch_unwind(AssertUnwindSafe(|| {
            let mut future = service.call(request);
            match Pin::new(&mut future).poll(cx) {
                Poll::Ready(response) => Ok(response),
                Poll::Pending => Err(future),
            }
        }));
        match polled {
            Ok(Ok(response)) => self.answer(stream, response, cx),
            Ok(Err(future)) => {
                let making = Making(tokio::spawn(future));
                if let Some(exchange) = self.exchanges.at(stream) {
                    exchange.answer = Answer::Made(making);
                    self.look_at(stream, cx);
                }
            }
            Err(_) => {
                tracing::error!("a service panicked");
                self.reset(stream, ErrorCode::INTERNAL_ERROR);
            }
        }
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
        if let Some(exchange) = self.exchanges.remove(stream) {
            exchange.fail(error);
        }
    }

    pub(super) fn forget_all(&mut self, error: &TransportError) {
        for exchange in self.exchanges.drain() {
            exchange.fail(error.clone());
        }
    }
}
