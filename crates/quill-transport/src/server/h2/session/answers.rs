//! Answers: from the service to the engine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use quill_core::ResponseHead;
use quill_h2::{ErrorCode, Key, Sent};

use super::Session;
use crate::body::{Body, Chunk};
use crate::error::{TransportError, TransportErrorKind};
use crate::exchange::{HttpResponse, Service};
use crate::server::h2::date;
use crate::server::h2::exchange::{Answer, Cut, Request, poll_body};

impl<S: Service> Session<S> {
    /// Looks at the streams that were woken; whether there were any.
    pub(super) fn look(&mut self, cx: &mut Context<'_>) -> bool {
        let mut woken = std::mem::take(&mut self.woken);
        let all = self.wakes.take(&mut woken, cx.waker());
        let any = all || !woken.is_empty();
        if all {
            for slot in 0..self.exchanges.len() {
                let exchange = self.exchanges.get(slot).and_then(Option::as_ref);
                if let Some(stream) = exchange.map(|exchange| exchange.stream) {
                    self.settle(stream);
                }
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
        let wakes = self.wakes.clone();
        let Some(exchange) = self.exchange(stream) else {
            return;
        };
        if exchange.is_answered {
            self.linger(stream);
            return;
        }
        let waker = match &exchange.answer {
            Answer::Made(_) => exchange.waker(&wakes),
            Answer::Sent(..) => return self.enqueue(stream),
            Answer::None => return,
        };
        let Answer::Made(making) = &mut exchange.answer else {
            return;
        };
        match Pin::new(&mut making.0).poll(&mut Context::from_waker(&waker)) {
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

    /// Begins to send an answer.
    pub(super) fn answer(
        &mut self,
        stream: Key,
        response: HttpResponse<S::Body>,
        cx: &mut Context<'_>,
    ) {
        let HttpResponse { head, body } = response;
        let may_have_body = !self.engine.is_head_request(stream) && has_body(head.status);
        let end = !may_have_body || body.is_ended();
        self.send_head(stream, &head, &body, end);
        if end {
            self.answered(stream);
            return;
        }
        if let Some(exchange) = self.exchange(stream) {
            exchange.answer = Answer::Sent(body, Cut::default());
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
            put("content-length", decimal(length, &mut digits));
        }
        let more = more.get(..count).unwrap_or_default();
        self.engine.send_head(stream, head, more, end);
    }

    /// Sends what waits for its turn, while there is room for it.
    pub(super) fn send(&mut self, cx: &mut Context<'_>) {
        for _ in 0..self.queue.len() {
            if self.room() == 0 {
                return;
            }
            let Some(stream) = self.queue.pop_front() else {
                return;
            };
            if let Some(exchange) = self.exchange(stream) {
                exchange.is_queued = false;
                self.pump(stream, cx);
            }
        }
    }

    /// Bytes that may be queued now.
    fn room(&self) -> usize {
        let most = self.options.http2_send_buffer_bytes_max;
        most.saturating_sub(self.engine.output().len())
    }

    /// Puts an answer in the queue, once.
    pub(super) fn enqueue(&mut self, stream: Key) {
        if let Some(exchange) = self.exchange(stream)
            && !exchange.is_queued
            && matches!(exchange.answer, Answer::Sent(..))
        {
            exchange.is_queued = true;
            self.queue.push_back(stream);
        }
    }

    pub(super) fn enqueue_all(&mut self) {
        for slot in 0..self.exchanges.len() {
            let exchange = self.exchanges.get(slot).and_then(Option::as_ref);
            if let Some(stream) = exchange.map(|exchange| exchange.stream) {
                self.enqueue(stream);
            }
        }
    }

    /// Moves an answer from its body to the engine, as far as windows and room allow.
    fn pump(&mut self, stream: Key, cx: &mut Context<'_>) {
        let mut turns = 0;
        loop {
            let room = self.room();
            let Some(exchange) = self.exchanges.get_mut(stream.slot()).and_then(Option::as_mut)
            else {
                return;
            };
            if exchange.stream != stream {
                return;
            }
            let Answer::Sent(_, cut) = &mut exchange.answer else {
                return;
            };
            if !cut.bytes.is_empty() {
                let end = cut.end;
                match self.engine.send_data(stream, &mut cut.bytes, end, room) {
                    Sent::All if end => return self.answered(stream),
                    Sent::All => continue,
                    Sent::Full => return self.enqueue(stream),
                    // The engine tells when a window opens.
                    Sent::StreamBlocked | Sent::ConnectionBlocked => return,
                }
            }
            if !self.engine.may_send(stream) {
                return;
            }
            if room == 0 || turns == TURNS_MAX {
                return self.enqueue(stream);
            }
            turns += 1;
            match self.poll_answer(stream, cx) {
                Poll::Pending => return,
                Poll::Ready(true) => {}
                Poll::Ready(false) => return,
            }
        }
    }

    /// Takes the next part of a body; whether the answer goes on.
    fn poll_answer(&mut self, stream: Key, cx: &mut Context<'_>) -> Poll<bool> {
        let wakes = self.wakes.clone();
        let Some(exchange) = self.exchange(stream) else {
            return Poll::Ready(false);
        };
        let mut polled = None;
        // Most bodies have all they need: a waker is made for those that wait.
        if !exchange.has_waker()
            && let Answer::Sent(body, _) = &mut exchange.answer
        {
            polled = catch_unwind(AssertUnwindSafe(|| poll_body(body, cx))).ok();
        }
        if matches!(polled, None | Some(Poll::Pending)) {
            let waker = exchange.waker(&wakes);
            let mut cx = Context::from_waker(&waker);
            if let Answer::Sent(body, _) = &mut exchange.answer {
                polled = catch_unwind(AssertUnwindSafe(|| poll_body(body, &mut cx))).ok();
            }
        }
        let Some(polled) = polled else {
            tracing::error!("a body panicked");
            self.reset(stream, ErrorCode::INTERNAL_ERROR);
            return Poll::Ready(false);
        };
        match std::task::ready!(polled) {
            Some(Ok(Chunk::Data(bytes))) => {
                if let Answer::Sent(body, cut) = &mut exchange.answer {
                    let end = body.is_ended();
                    *cut = Cut { bytes, end };
                    if end && cut.bytes.is_empty() {
                        self.end(stream);
                        return Poll::Ready(false);
                    }
                }
                Poll::Ready(true)
            }
            Some(Ok(Chunk::Trailers(trailers))) => {
                self.engine.send_trailers(stream, &trailers);
                self.answered(stream);
                Poll::Ready(false)
            }
            None => {
                self.end(stream);
                Poll::Ready(false)
            }
            Some(Err(error)) => {
                self.reset(stream, reset_code(&error));
                Poll::Ready(false)
            }
        }
    }

    fn end(&mut self, stream: Key) {
        self.engine.send_data(stream, &mut Bytes::new(), true, 0);
        self.answered(stream);
    }

    /// The end of an answer was queued.
    fn answered(&mut self, stream: Key) {
        let Some(exchange) = self.exchange(stream) else {
            return;
        };
        exchange.answer = Answer::None;
        exchange.is_answered = true;
        if matches!(exchange.request, Request::Done) || !self.engine.is_open(stream) {
            self.remove(stream);
            return;
        }
        self.settle(stream);
        self.linger(stream);
    }

    /// A request that was answered and that nobody reads may come in for a while yet:
    /// some clients lose the answer when the body that they send is stopped.
    fn linger(&mut self, stream: Key) {
        let Some(exchange) = self.exchange(stream) else {
            return;
        };
        if let Request::Left(left) = exchange.request {
            if left == 0 {
                self.stop(stream);
            } else {
                self.clock.linger(stream);
            }
        }
    }
}

/// Parts that one answer sends before others have their turn.
const TURNS_MAX: usize = 32;

/// RFC 9110, section 6.4.1.
fn has_body(status: u16) -> bool {
    !matches!(status, 204 | 304)
}

/// The code that a body's own error resets its stream with.
fn reset_code(error: &TransportError) -> ErrorCode {
    match error.kind() {
        TransportErrorKind::Canceled => ErrorCode::CANCEL,
        TransportErrorKind::Reset(code) => ErrorCode(code),
        _ => ErrorCode::INTERNAL_ERROR,
    }
}

fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(number % 10).unwrap_or_default();
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}
