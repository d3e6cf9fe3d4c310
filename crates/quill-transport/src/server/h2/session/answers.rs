//! Answers: from the service to the engine.

use std::pin::Pin;
use std::task::{Context, Poll};

use quill_core::ResponseHead;
use quill_h2::{ErrorCode, Key};

use super::Session;
use crate::body::{Body, Whole};
use crate::exchange::{HttpResponse, Service};
use crate::fields;
use crate::h2::{Progress, Sending};
use crate::server::h2::date;
use crate::server::h2::exchange::{Answer, Request};

impl<S: Service> Session<S> {
    /// Looks at the streams that were woken; whether there were any.
    pub(super) fn look(&mut self, cx: &mut Context<'_>) -> bool {
        let mut woken = std::mem::take(&mut self.woken);
        let all = self.wakes.take(&mut woken, cx.waker()).all;
        let any = all || !woken.is_empty();
        if all {
            for stream in self.exchanges.streams() {
                self.settle(stream);
            }
        }
        for stream in woken.drain(..) {
            self.look_at(stream, cx);
        }
        self.woken = woken;
        any
    }

    /// Looks at a stream: its request's reader, and its answer.
    pub(super) fn look_at(&mut self, stream: Key, cx: &mut Context<'_>) {
        self.settle(stream);
        let Some(exchange) = self.exchanges.at(stream) else {
            return;
        };
        if exchange.is_answered {
            return self.linger(stream);
        }
        let making = match &mut exchange.answer {
            Answer::Made(making) => making,
            Answer::Sent(_) => return self.exchanges.enqueue(stream),
            Answer::None => return,
        };
        let mut own = Context::from_waker(exchange.stream.waker());
        match Pin::new(&mut making.0).poll(&mut own) {
            Poll::Pending => {}
            Poll::Ready(Ok(response)) => self.answer(stream, response, cx),
            Poll::Ready(Err(error)) => {
                if error.is_panic() {
                    tracing::error!(%error, "a service panicked");
                }
                self.reset(stream, ErrorCode::INTERNAL_ERROR);
            }
        }
    }

    /// Sends an answer, as far as that goes now.
    pub(super) fn answer(
        &mut self,
        stream: Key,
        response: HttpResponse<S::Body>,
        cx: &mut Context<'_>,
    ) {
        let rest = self.begin_answer(stream, response);
        self.go_on(stream, rest, cx);
    }

    /// Sends the head of an answer, and the body if all of it can leave at once; what is
    /// left is given back.
    pub(super) fn begin_answer(
        &mut self,
        stream: Key,
        response: HttpResponse<S::Body>,
    ) -> Option<S::Body> {
        let HttpResponse { head, mut body } = response;
        let may_have_body = !self.link.engine.is_head_request(stream) && has_body(head.status);
        let end = !may_have_body || body.is_ended();
        self.send_head(stream, &head, &body, end);
        if end {
            return None;
        }
        let room = self.link.room();
        let engine = &mut self.link.engine;
        let Some(whole) = body.take_whole(room.min(engine.may_send(stream))) else {
            return Some(body);
        };
        let Whole { mut data, trailers } = whole;
        engine.send_data(stream, &mut data, trailers.is_none(), room);
        if let Some(trailers) = &trailers {
            engine.send_trailers(stream, trailers);
        }
        None
    }

    /// Goes on with an answer whose head was sent, with the rest of its body.
    pub(super) fn go_on(&mut self, stream: Key, rest: Option<S::Body>, cx: &mut Context<'_>) {
        let Some(body) = rest else {
            return self.answered(stream);
        };
        if let Some(exchange) = self.exchanges.at(stream) {
            exchange.answer = Answer::Sent(Sending::new(body));
            self.pump(stream, cx);
        }
    }

    /// Sends a head, with `date` and, where it is known, `content-length`.
    fn send_head(&mut self, stream: Key, head: &ResponseHead, body: &S::Body, end: bool) {
        let date = self.date.or_else(date::now);
        self.date = date;
        let mut digits = [0; 20];
        let length = body.bytes_left().filter(|_| has_body(head.status));
        let mut more: [(&str, &[u8]); 2] = [("", &[]); 2];
        let mut count = 0;
        let mut put = |name: &'static str, value| {
            if head.headers.first(name).is_none()
                && let Some(place) = more.get_mut(count)
            {
                *place = (name, value);
                count += 1;
            }
        };
        if let Some(date) = &date {
            put("date", date);
        }
        if let Some(length) = length {
            put("content-length", fields::decimal(length, &mut digits));
        }
        let more = more.get(..count).unwrap_or_default();
        self.link.engine.send_head(stream, head, more, end);
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

    /// Moves an answer from its body to the engine, as far as windows and room allow.
    fn pump(&mut self, stream: Key, cx: &mut Context<'_>) {
        let room = self.link.room();
        let Some(exchange) = self.exchanges.at(stream) else {
            return;
        };
        let Answer::Sent(sending) = &mut exchange.answer else {
            return;
        };
        let engine = &mut self.link.engine;
        let before = engine.output().len();
        let progress = sending.pump(engine, &mut exchange.stream, room, cx);
        let has_moved = engine.output().len() > before;
        let blocked_since = exchange.blocked_since.take().filter(|_| !has_moved);
        match progress {
            Progress::Ended => self.answered(stream),
            Progress::Queued => self.exchanges.enqueue(stream),
            Progress::Waiting => {}
            Progress::Blocked => {
                exchange.blocked_since = blocked_since.or(Some(self.clock.now()));
                self.clock.note_blocked(self.options.write_timeout);
            }
            Progress::Broken(code) => self.reset(stream, code),
        }
    }

    /// Resets the streams whose peer has given no room for too long; others on the
    /// connection go on.
    pub(super) fn reset_blocked(&mut self) {
        let Some(timeout) = self.options.write_timeout else {
            return;
        };
        let now = self.clock.now();
        let mut earliest = None;
        let mut late = Vec::new();
        for exchange in self.exchanges.iter() {
            match exchange.blocked_since.map(|since| since + timeout) {
                Some(due) if due <= now => late.push(exchange.stream.key),
                Some(due) => earliest = earliest.into_iter().chain([due]).min(),
                None => {}
            }
        }
        for stream in late {
            self.reset(stream, ErrorCode::CANCEL);
        }
        self.clock.look_at_blocked(earliest);
    }

    /// The end of an answer was queued.
    fn answered(&mut self, stream: Key) {
        let Some(exchange) = self.exchanges.at(stream) else {
            return;
        };
        exchange.answer = Answer::None;
        exchange.is_answered = true;
        if matches!(exchange.request, Request::Done) || !self.link.engine.is_open(stream) {
            self.exchanges.remove(stream);
            return;
        }
        self.settle(stream);
        self.linger(stream);
    }

    /// A request that was answered and that nobody reads may come in for a while yet:
    /// some clients lose the answer when the body that they send is stopped.
    fn linger(&mut self, stream: Key) {
        let Some(exchange) = self.exchanges.at(stream) else {
            return;
        };
        if let Request::Left(left) = exchange.request {
            if left == 0 {
                self.stop(stream);
            } else {
                let open_max = self.options.http2_streams_max as usize;
                let engine = &self.link.engine;
                self.clock
                    .linger(stream, open_max, |stream| engine.is_open(stream));
            }
        }
    }
}

/// RFC 9110, section 6.4.1.
fn has_body(status: u16) -> bool {
    !matches!(status, 204 | 304)
}
