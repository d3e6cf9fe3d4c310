//! An HTTP/2 connection of a server: the engine, the socket and the exchanges.

mod answers;
mod requests;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use quill_core::{Budget, Peer, SharedHead};
use quill_h2::{Config, Connection, ErrorCode, Event, Key};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};

use super::clock::{Clock, Due};
use super::exchange::Exchange;
use crate::bounds::ADAPTIVE_WINDOW_BYTES;
use crate::error::{TransportError, TransportErrorKind};
use crate::exchange::Service;
use crate::h2::{ALIVE_PING, Arrival, EVENTS_MAX, Exchanges, Link, ROUNDS_MAX, Wakes, reset_error};
use crate::io::Io;
use crate::server::activity::{Activity, Mark};
use crate::server::age::Aged;
use crate::server::counts::ConnectionCounts;
use crate::server::options::ServerOptions;

/// The PING behind the first GOAWAY of a drain: once it is answered, the peer has
/// seen both.
const DRAIN_PING: [u8; 8] = *b"q-drain\0";

/// One connection, from its first bytes to its last.
pub(in crate::server) struct Session<S: Service> {
    link: Link<Io>,
    service: S,
    peer: Peer,
    budget: Option<Budget>,
    options: Arc<ServerOptions>,
    exchanges: Exchanges<Box<Exchange<S::Body>>>,
    /// Requests that came in this turn.
    arrivals: Vec<Arrival<SharedHead>>,
    wakes: Arc<Wakes>,
    woken: Vec<Key>,
    activity: Arc<Activity>,
    /// Held from a request's coming until nothing is open and all is written.
    mark: Option<Mark>,
    clock: Clock,
    timer: Pin<Box<Sleep>>,
    /// When the timer wakes this task.
    armed: Option<Instant>,
    /// The `date` of this turn's answers.
    date: Option<super::date::Text>,
    is_draining: bool,
    /// `None` where nobody counts.
    counts: Option<ConnectionCounts>,
}

impl<S: Service> Session<S> {
    /// A connection on `io`, of which `ahead` has been read, from this peer.
    pub(in crate::server) fn new(
        io: Io,
        ahead: Bytes,
        service: S,
        (peer, budget, activity): (Peer, Option<Budget>, Arc<Activity>),
        (options, config, counts): (Arc<ServerOptions>, Arc<Config>, Option<ConnectionCounts>),
    ) -> Self {
        let wakes = Wakes::new(
            config.connection_window_bytes,
            config.stream_window_bytes.min(65_535),
        );
        let clock = Clock::new(&options);
        Self {
            timer: Box::pin(tokio::time::sleep_until(clock.now())),
            link: Link::new(
                Connection::server(config),
                io,
                ahead,
                options.http2_send_buffer_bytes_max,
            ),
            service,
            peer,
            budget,
            options,
            exchanges: Exchanges::new(),
            arrivals: Vec::new(),
            wakes,
            woken: Vec::new(),
            activity,
            mark: None,
            clock,
            armed: None,
            date: None,
            is_draining: false,
            counts,
        }
    }

    /// Serves to the end, or until all is done after `drain` says so. Whether it is
    /// this side that ends it: then its last words are still on their way.
    pub(in crate::server) async fn run(&mut self, mut drain: watch::Receiver<bool>) -> bool {
        let mut draining = drain.clone();
        let mut draining = pin!(draining.wait_for(|draining| *draining));
        let mut is_registered = false;
        let ended = poll_fn(|cx| {
            // Polled once it has this task's waker: then the flag says it all.
            let is_news = !is_registered || drain.has_changed().unwrap_or(true);
            if !self.is_draining && is_news {
                is_registered = true;
                drain.mark_unchanged();
                if draining.as_mut().poll(cx).is_ready() {
                    self.drain();
                }
            }
            self.poll(cx)
        })
        .await;
        if let Err(error) = &ended {
            tracing::debug!(%error, "a connection ended");
        }
        ended.is_ok()
    }

    /// The stream, once all is done on it.
    pub(in crate::server) fn into_io(self) -> Io {
        self.link.into_io()
    }

    /// Tells the peer that no new streams are taken.
    fn drain(&mut self) {
        self.is_draining = true;
        self.link.engine.announce_goaway();
        self.link.engine.send_ping(DRAIN_PING);
        self.clock.advance();
        self.clock.part();
    }

    fn leave_for_age(&mut self) {
        if self.is_draining {
            return;
        }
        if let Some(counts) = &self.counts {
            counts.note_aged();
        }
        self.drain();
    }

    /// One turn: reads, answers, writes.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.clock.advance();
        self.date = None;
        let mut input = self.link.begin();
        let polled = self.turn(&mut input, cx);
        self.link.end(input);
        let engine = &self.link.engine;
        let is_at_rest = || engine.streams_open() == 0 && engine.output().is_empty();
        if polled.is_pending() && is_at_rest() {
            self.mark = None;
        }
        polled
    }

    fn turn(&mut self, input: &mut BytesMut, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut events = 0;
        for _ in 0..ROUNDS_MAX {
            if events > EVENTS_MAX {
                break;
            }
            let read = self.read(input, cx)?;
            let has_read = read.is_some();
            events += read.unwrap_or_default();
            self.hand_over(cx);
            let has_woken = self.look(cx);
            self.send(cx);
            let before = self.link.engine.output().len();
            let is_written = self.link.write(cx)?;
            let has_moved = self.link.engine.output().len() < before;
            self.clock.note_written(is_written, has_moved);
            if self.is_over() {
                return self.poll_last(is_written, cx);
            }
            if self.link.read_ended {
                let message = "the peer closed the connection";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::UnexpectedEof, message)));
            }
            let may_send = is_written && self.exchanges.queued() > 0;
            let goes_on = has_read || has_woken || may_send || self.link.owes_read();
            if self.is_due() || goes_on || self.poll_timer(cx).is_ready() {
                continue;
            }
            return Poll::Pending;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Waits until the last bytes are written, for a while.
    fn poll_last(&mut self, is_written: bool, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if is_written {
            return Poll::Ready(Ok(()));
        }
        self.clock.part();
        if self.is_due() || self.poll_timer(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }

    /// Whether all has been done that this connection was for.
    fn is_over(&self) -> bool {
        self.link.engine.is_failed()
            || (self.is_draining
                && self.link.engine.is_leaving()
                && self.link.engine.streams_open() == 0)
    }

    /// Reads once and takes in what came; how many events that were, if something did.
    fn read(&mut self, input: &mut BytesMut, cx: &mut Context<'_>) -> io::Result<Option<usize>> {
        if !self.link.read(input, cx)? {
            return Ok(None);
        }
        self.clock.bytes_came();
        self.link.engine.advance(self.clock.now().into_std());
        let mut events = 0;
        while let Some(event) = self.link.engine.receive(input) {
            self.take(event);
            events += 1;
        }
        Ok(Some(events))
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Request {
                key,
                head,
                content_length,
                end,
            } => {
                self.clock.request_came();
                self.arrive(key, head, content_length, end);
            }
            Event::Data { key, data, end } => self.take_data(key, data, end),
            Event::Trailers { key, trailers } => self.take_trailers(key, trailers),
            Event::Reset { key, code, fault } => {
                if let Some(fault) = fault {
                    tracing::debug!(%code, fault, "a stream was reset for its peer's fault");
                }
                self.forget(key, reset_error(code, fault.is_none()));
            }
            Event::Writable(Some(key)) => self.exchanges.enqueue(key),
            Event::Writable(None) => self.exchanges.enqueue_all(),
            Event::Settings => self.clock.greeted(),
            Event::Pong(DRAIN_PING) if self.is_draining => {
                self.clock.ponged();
                self.link.engine.goaway(ErrorCode::NO_ERROR);
            }
            Event::Pong(_) => self.clock.ponged(),
            Event::Failed(error) => {
                tracing::debug!(%error, "a peer broke the rules of HTTP/2");
                let message = format!("the connection failed: {error}");
                self.forget_all(&TransportError::new(TransportErrorKind::Closed, message));
            }
            // A client's pushes don't exist, and a server opens no streams.
            _ => {}
        }
    }

    /// Does what is due; whether something was.
    fn is_due(&mut self) -> bool {
        let mut was_due = false;
        self.clock.note_streams(self.link.engine.streams_open());
        while let Some(due) = self.clock.take_due(&self.options) {
            was_due = true;
            match due {
                Due::Silence | Due::Unwritten | Due::Aged(Aged::Cut) => {
                    tracing::debug!(?due, "a peer took too long, and is cut");
                    self.link.read_ended = true;
                    return true;
                }
                Due::Ping => self.link.engine.send_ping(ALIVE_PING),
                Due::Rest => self.shrink(),
                Due::Idle => self.drain(),
                Due::Aged(Aged::Leave) => self.leave_for_age(),
                Due::Goodbye => self.link.engine.goaway(ErrorCode::NO_ERROR),
                Due::Lingered(stream) => self.stop(stream),
                Due::Blocked => self.reset_blocked(),
            }
        }
        was_due
    }

    /// Moves the timer to the next moment when something is due, if that is before
    /// the one that it waits for.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(next) = self.clock.next_at(&self.options) else {
            return Poll::Pending;
        };
        if self
            .armed
            .is_some_and(|at| at <= next && at > self.clock.now())
        {
            return Poll::Pending;
        }
        self.armed = Some(next);
        self.timer.as_mut().reset(next);
        ready!(self.timer.as_mut().poll(cx));
        self.clock.advance();
        Poll::Ready(())
    }

    /// Gives memory back that only a busy connection needs.
    fn shrink(&mut self) {
        self.exchanges.shrink();
        self.arrivals = Vec::new();
        self.woken = Vec::new();
        self.wakes.shrink();
        self.link.engine.shrink();
    }
}

/// What these options mean to the engine.
pub(in crate::server) fn config(options: &ServerOptions) -> Config {
    let mut config = Config::default();
    config.streams_max = options.http2_streams_max;
    config.stream_window_bytes = options.http2_stream_window_bytes;
    config.connection_window_bytes = options.http2_connection_window_bytes;
    if options.http2_adaptive_window {
        config.stream_window_bytes = ADAPTIVE_WINDOW_BYTES;
        config.connection_window_bytes = ADAPTIVE_WINDOW_BYTES;
    }
    config.frame_bytes_max = options.http2_frame_bytes_max;
    config.headers_bytes_max = options.headers_bytes_max;
    let whole = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    config.limits.unseen_resets.burst = whole(options.http2_pending_resets_max);
    config.limits.unseen_resets.per_second = config.limits.unseen_resets.burst;
    config.limits.stream_errors.burst = whole(options.http2_local_resets_max);
    config
}
