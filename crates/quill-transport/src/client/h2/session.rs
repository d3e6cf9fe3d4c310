//! A client's HTTP/2 connection: the engine, the socket and the exchanges.

mod exchanges;

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use quill_core::{BoxError, ResponseHead};
use quill_h2::{self as h2, ErrorCode, Event, Key, OpenError};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep};

use super::keep_alive::{Due, Life};
use super::shared::{Call, Settings, Shared};
use crate::body::Body;
use crate::client::request_body::RequestBody;
use crate::error::{TransportError, TransportErrorKind};
use crate::h2::{
    ALIVE_PING, Arrival, EVENTS_MAX, Exchanges, Link, ROUNDS_MAX, Sending, reset_error,
};
use exchanges::Exchange;

/// One connection, from its preface to its end.
pub(super) struct Session<T> {
    link: Link<T>,
    shared: Arc<Shared>,
    /// Calls that wait for a stream.
    calls: VecDeque<Call>,
    exchanges: Exchanges<Exchange>,
    /// Answers whose heads came in this turn.
    arrivals: Vec<Arrival<ResponseHead>>,
    woken: Vec<Key>,
    life: Life,
    timer: Pin<Box<Sleep>>,
    /// When the timer wakes this task.
    armed: Option<Instant>,
    on_calm: Box<dyn Fn() + Send>,
    on_end: Option<Box<dyn FnOnce(Option<BoxError>) + Send>>,
    is_leaving: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Session<T> {
    pub(super) fn new(io: T, settings: Settings, shared: Arc<Shared>) -> Self {
        let engine = h2::Connection::client(settings.config);
        Self {
            link: Link::new(engine, io, Bytes::new(), settings.waiting_bytes_max),
            shared,
            calls: VecDeque::new(),
            exchanges: Exchanges::new(),
            arrivals: Vec::new(),
            woken: Vec::new(),
            life: Life::new(settings.keep_alive),
            timer: Box::pin(tokio::time::sleep_until(Instant::now())),
            armed: None,
            on_calm: settings.on_calm,
            on_end: Some(settings.on_end),
            is_leaving: false,
        }
    }

    /// Runs to the end; what is open then fails.
    pub(super) async fn run(mut self) {
        let ended = poll_fn(|cx| self.poll(cx)).await;
        let failed = ended.is_err();
        let error = match ended {
            Ok(()) => closed("the connection was closed"),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                TransportError::new(TransportErrorKind::Timeout, error.to_string())
            }
            Err(error) => closed(format!("the connection failed: {error}")),
        };
        self.finish(error, failed);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut input = self.link.begin();
        let polled = self.turn(&mut input, cx);
        self.link.end(input);
        if polled.is_pending() && self.link.engine.streams_open() == 0 {
            self.shrink();
        }
        polled
    }

    /// One turn: reads, opens, sends, writes.
    fn turn(&mut self, input: &mut BytesMut, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut events = 0;
        for _ in 0..ROUNDS_MAX {
            if events > EVENTS_MAX {
                break;
            }
            let read = self.read(input, cx)?;
            let has_read = read.is_some();
            events += read.unwrap_or_default();
            self.hand_over();
            self.open_calls(cx);
            let open_before = self.link.engine.streams_open();
            let has_woken = self.look(cx);
            self.send(cx);
            let is_written = self.link.write(cx)?;
            if self.link.engine.is_failed() {
                // Whether the last words arrive is the server's matter.
                return Poll::Ready(Ok(()));
            }
            if self.link.read_ended {
                let message = "the server closed the connection";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, message)));
            }
            if self.is_done() {
                if self.is_leaving && is_written {
                    return Poll::Ready(Ok(()));
                }
                if !self.is_leaving {
                    self.is_leaving = true;
                    self.life.part();
                    self.link.engine.goaway(ErrorCode::NO_ERROR);
                    continue;
                }
            }
            let may_open = !self.calls.is_empty() && self.link.engine.streams_open() < open_before;
            let may_send = is_written && self.exchanges.queued() > 0;
            let owes_read = self.link.owes_read();
            if has_read || has_woken || may_open || may_send || owes_read {
                continue;
            }
            if self.poll_life(cx)? {
                continue;
            }
            return Poll::Pending;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether nothing is open and no caller will come.
    fn is_done(&self) -> bool {
        self.link.engine.streams_open() == 0
            && self.calls.is_empty()
            && (self.shared.is_abandoned() || self.link.engine.is_told_to_go())
    }

    /// Reads once and takes in what came; how many events that were, if something did.
    fn read(&mut self, input: &mut BytesMut, cx: &mut Context<'_>) -> io::Result<Option<usize>> {
        if !self.link.read(input, cx)? {
            return Ok(None);
        }
        self.life.bytes_came();
        self.link.engine.advance(Instant::now().into_std());
        let mut events = 0;
        while let Some(event) = self.link.engine.receive(input) {
            self.take(event);
            events += 1;
        }
        Ok(Some(events))
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Response {
                key,
                head,
                content_length,
                end,
            } => self.arrive(Arrival::new(key, head, content_length, end)),
            Event::Data { key, data, end } => self.take_data(key, data, end),
            Event::Trailers { key, trailers } => self.take_trailers(key, trailers),
            Event::Reset { key, code, fault } => {
                let error = reset_error(code, fault.is_none());
                // RFC 9113, section 8.7: a refused stream was not processed.
                let refused = code == ErrorCode::REFUSED_STREAM && fault.is_none();
                let error = if refused { error.unprocessed() } else { error };
                self.forget(key, error);
            }
            Event::Writable(Some(key)) => self.exchanges.enqueue(key),
            Event::Writable(None) => self.exchanges.enqueue_all(),
            Event::Pong(_) => self.life.answered(),
            Event::GoAway { last, code } => self.take_goaway(last, code),
            Event::Failed(error) => {
                let message = format!("the peer broke the rules of HTTP/2: {error}");
                let error = TransportError::new(TransportErrorKind::Protocol, message);
                self.close(&error);
                self.fail_all(&error);
            }
            // Calls that wait for more streams are looked at in every turn.
            _ => {}
        }
    }

    /// The server will handle nothing above `last` (RFC 9113, section 6.8).
    fn take_goaway(&mut self, last: u32, code: ErrorCode) {
        if code == ErrorCode::ENHANCE_YOUR_CALM {
            (self.on_calm)();
        }
        let message = format!("the peer is closing the connection: {code}");
        let error = closed(message);
        self.close(&error);
        for stream in self.exchanges.streams() {
            if stream.id() > last {
                self.link.engine.reset(stream, ErrorCode::CANCEL);
                self.forget(stream, error.clone().unprocessed());
            }
        }
    }

    /// Opens streams for the calls that wait, as many as the server allows.
    fn open_calls(&mut self, cx: &mut Context<'_>) {
        self.shared.take_calls(&mut self.calls);
        while let Some(call) = self.calls.pop_front() {
            if call.answer.is_left() {
                continue;
            }
            let Some(head) = call.body.head() else {
                continue;
            };
            let end = call.body.is_ended();
            let mut digits = [0; 20];
            let length = content_length(head, &call.body);
            let length = length.map(|length| crate::fields::decimal(length, &mut digits));
            let more = length.map(|digits| [("content-length", digits)]);
            let more = more.as_ref().map_or(&[][..], |more| &more[..]);
            match self.link.engine.open(call.scheme, head, more, end) {
                Ok(stream) => self.opened(stream, call, end, cx),
                Err(OpenError::Full) => {
                    self.calls.push_front(call);
                    if self.shared.take_left() {
                        self.calls.retain(|call| !call.answer.is_left());
                    }
                    return;
                }
                Err(OpenError::Closing) => {
                    let message = "the connection takes no more requests";
                    let error = closed(message);
                    self.shared.close(&error);
                    call.fail(error.unprocessed());
                }
            }
        }
    }

    fn opened(&mut self, stream: Key, call: Call, end: bool, cx: &mut Context<'_>) {
        call.answer.opened(stream);
        let wakes = self.shared.wakes.clone();
        let sending = (!end).then(|| Sending::new(call.body));
        let exchange = Exchange::new(stream, wakes, call.answer, sending);
        self.exchanges.insert(exchange);
        self.pump(stream, cx);
    }

    /// Asks whether the server is there, when that is due; whether it was. Fails when
    /// the server has taken too long.
    fn poll_life(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let is_idle = self.link.engine.streams_open() == 0;
        let Some((at, due)) = self.life.next(is_idle) else {
            return Ok(false);
        };
        if at <= Instant::now() {
            let message = match due {
                Due::Silence => "the server has not answered a ping in time",
                Due::Goodbye => "the server has not read the last words in time",
                Due::Ping => {
                    self.link.engine.send_ping(ALIVE_PING);
                    self.life.ask();
                    return Ok(true);
                }
            };
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        if self
            .armed
            .is_some_and(|armed| armed <= at && armed > Instant::now())
        {
            return Ok(false);
        }
        self.armed = Some(at);
        self.timer.as_mut().reset(at);
        Ok(self.timer.as_mut().poll(cx).is_ready())
    }

    /// Gives memory back that only a busy connection needs.
    fn shrink(&mut self) {
        self.exchanges.shrink();
        if self.arrivals.capacity() > 1 {
            self.arrivals = Vec::new();
        }
        self.link.engine.shrink();
    }
}

impl<T> Session<T> {
    /// Takes no more calls.
    fn close(&mut self, error: &TransportError) {
        self.shared.close(error);
        for call in self.calls.drain(..) {
            call.fail(error.clone().unprocessed());
        }
    }

    /// Lets everybody know that it has ended, once.
    fn finish(&mut self, error: TransportError, failed: bool) {
        if let Some(tell) = self.on_end.take() {
            self.close(&error);
            self.fail_all(&error);
            tell(failed.then(|| error.into()));
        }
    }
}

/// A task is dropped where it is when its runtime ends, or when it panics.
impl<T> Drop for Session<T> {
    fn drop(&mut self) {
        self.finish(closed("the connection's task was ended"), true);
    }
}

fn closed(message: impl Into<String>) -> TransportError {
    TransportError::new(TransportErrorKind::Closed, message)
}

/// The length of a request's body, where it is known and says something (RFC 9110,
/// section 8.6).
fn content_length(head: &quill_core::RequestHead, body: &RequestBody) -> Option<u64> {
    if head.headers.first("content-length").is_some() {
        return None;
    }
    let length = body.bytes_left()?;
    let has_meaning = length > 0 || head.method == quill_core::HttpMethod::Post;
    has_meaning.then_some(length)
}
