//! When something is due on a connection.

use std::collections::VecDeque;
use std::time::Duration;

use quill_h2::Key;
use tokio::time::Instant;

use crate::body::LINGER_TIMEOUT;
use crate::h2::GOODBYE_TIMEOUT;
use crate::server::age::{self, Aged};
use crate::server::options::ServerOptions;

/// How long nothing came when a connection counts as at rest: what a busy one needs is
/// not made anew for calls that follow each other closely.
const REST: Duration = Duration::from_millis(100);

/// The times of one connection. Each is looked at when the earliest is due, so that
/// a busy connection never moves its timer.
#[derive(Debug)]
pub(super) struct Clock {
    now: Instant,
    /// The first SETTINGS must have come by then.
    greeting: Option<Instant>,
    last_read: Instant,
    /// It was not at rest since.
    is_awake: bool,
    ping_sent: Option<Instant>,
    /// Since when no stream is open.
    idle_since: Option<Instant>,
    /// When the connection ends though the peer did not acknowledge its end.
    goodbye: Option<Instant>,
    /// Requests that still come in though they were answered, and until when.
    lingering: VecDeque<(Instant, Key)>,
    /// When the first of the answers that wait for a window has waited for too long.
    blocked: Option<Instant>,
    /// Since when the socket has taken nothing of what waits.
    unwritten_since: Option<Instant>,
    /// What it will be too old for, and when.
    aging: Option<(Instant, Aged)>,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The peer has kept silent for too long: the connection ends.
    Silence,
    /// A PING is to be sent.
    Ping,
    /// Nothing came for a while.
    Rest,
    /// No stream was open for long: the peer is told to go.
    Idle,
    /// The peer was told to go and has not acknowledged it.
    Goodbye,
    /// A request has come in for long enough.
    Lingered(Key),
    /// An answer may have waited for a window for too long.
    Blocked,
    /// The socket has taken nothing for too long.
    Unwritten,
    /// The connection is too old.
    Aged(Aged),
}

impl Clock {
    pub(super) fn new(options: &ServerOptions) -> Self {
        let now = Instant::now();
        Self {
            now,
            greeting: Some(now + options.header_read_timeout),
            last_read: now,
            ping_sent: None,
            idle_since: Some(now),
            is_awake: true,
            goodbye: None,
            lingering: VecDeque::new(),
            blocked: None,
            unwritten_since: None,
            aging: age::due(options).map(|at| (at, Aged::Leave)),
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.now
    }

    /// Takes the time, once for each turn of the connection.
    pub(super) fn advance(&mut self) {
        self.now = Instant::now();
    }

    pub(super) fn greeted(&mut self) {
        self.greeting = None;
    }

    pub(super) fn bytes_came(&mut self) {
        self.last_read = self.now;
        self.is_awake = true;
    }

    pub(super) fn pinged(&mut self) {
        self.ping_sent = Some(self.now);
    }

    pub(super) fn ponged(&mut self) {
        self.ping_sent = None;
    }

    /// Notes a request: it may be answered before anyone looks for open streams.
    pub(super) fn request_came(&mut self) {
        self.idle_since = None;
    }

    /// Notes whether a stream is open.
    pub(super) fn note_streams(&mut self, open: usize) {
        if open > 0 {
            self.idle_since = None;
        } else if self.idle_since.is_none() {
            self.idle_since = Some(self.now);
        }
    }

    /// Notes whether all was written that waited, or at least some.
    pub(super) fn note_written(&mut self, all: bool, some: bool) {
        if all {
            self.unwritten_since = None;
        } else if some || self.unwritten_since.is_none() {
            self.unwritten_since = Some(self.now);
        }
    }

    /// Notes that an answer waits for a window, from now on.
    pub(super) fn note_blocked(&mut self, timeout: Option<Duration>) {
        if let Some(timeout) = timeout {
            self.blocked.get_or_insert(self.now + timeout);
        }
    }

    /// Looks at the answers that wait for a window then.
    pub(super) fn look_at_blocked(&mut self, at: Option<Instant>) {
        self.blocked = at;
    }

    /// Begins to say goodbye.
    pub(super) fn part(&mut self) {
        self.goodbye.get_or_insert(self.now + GOODBYE_TIMEOUT);
    }

    /// Gives what still comes of an answered request a while. Streams that have ended
    /// meanwhile are forgotten once there are more of them than may be open.
    pub(super) fn linger(&mut self, stream: Key, open_max: usize, is_open: impl Fn(Key) -> bool) {
        if self.lingering.len() >= open_max.saturating_mul(2) {
            self.lingering.retain(|(_, stream)| is_open(*stream));
        }
        self.lingering
            .push_back((self.now + LINGER_TIMEOUT, stream));
    }

    /// What is due now, once.
    pub(super) fn take_due(&mut self, options: &ServerOptions) -> Option<Due> {
        if self
            .lingering
            .front()
            .is_some_and(|(at, _)| *at <= self.now)
        {
            return self
                .lingering
                .pop_front()
                .map(|(_, stream)| Due::Lingered(stream));
        }
        let (at, due) = self.next(options)?;
        if at > self.now {
            return None;
        }
        match due {
            Due::Ping => self.pinged(),
            Due::Rest => self.is_awake = false,
            Due::Idle => self.part(),
            Due::Goodbye => self.goodbye = None,
            Due::Blocked => self.blocked = None,
            Due::Aged(aged) => {
                let grace = options.max_connection_age_grace;
                let grace = grace.filter(|_| aged == Aged::Leave);
                self.aging = grace.map(|grace| (self.now + grace, Aged::Cut));
            }
            Due::Silence | Due::Unwritten | Due::Lingered(_) => {}
        }
        Some(due)
    }

    /// When something is due next.
    pub(super) fn next_at(&self, options: &ServerOptions) -> Option<Instant> {
        let lingering = self.lingering.front().map(|(at, _)| *at);
        let next = self.next(options).map(|(at, _)| at);
        lingering.into_iter().chain(next).min()
    }

    fn next(&self, options: &ServerOptions) -> Option<(Instant, Due)> {
        let greeting = self.greeting.map(|at| (at, Due::Silence));
        let ping = match self.ping_sent {
            Some(sent) => Some((sent + options.http2_ping_timeout, Due::Silence)),
            None => options
                .http2_ping_interval
                .filter(|_| self.greeting.is_none())
                .map(|every| (self.last_read + every, Due::Ping)),
        };
        let end = match self.goodbye {
            Some(at) => Some((at, Due::Goodbye)),
            None => match (self.idle_since, options.http2_idle_timeout) {
                (Some(since), Some(timeout)) => Some((since + timeout, Due::Idle)),
                _ => None,
            },
        };
        let rest = self.is_awake.then(|| (self.last_read + REST, Due::Rest));
        let blocked = self.blocked.map(|at| (at, Due::Blocked));
        let unwritten = match (self.unwritten_since, options.write_timeout) {
            (Some(since), Some(timeout)) => Some((since + timeout, Due::Unwritten)),
            _ => None,
        };
        let aging = self.aging.map(|(at, aged)| (at, Due::Aged(aged)));
        [greeting, ping, end, rest, blocked, unwritten, aging]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }
}
