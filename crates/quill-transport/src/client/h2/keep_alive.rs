//! PINGs that tell whether a server is still there.

use std::time::Duration;

use tokio::time::Instant;

use crate::h2::GOODBYE_TIMEOUT;

/// How often a server is asked, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub(in crate::client) struct KeepAlive {
    pub(in crate::client) interval: Option<Duration>,
    pub(in crate::client) timeout: Duration,
    /// Also while no stream is open.
    pub(in crate::client) while_idle: bool,
}

/// What a connection knows of its server's life.
#[derive(Debug)]
pub(super) struct Life {
    settings: KeepAlive,
    last_read: Instant,
    asked: Option<Instant>,
    /// When the connection ends though its last words were not written.
    goodbye: Option<Instant>,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A PING is to be sent.
    Ping,
    /// The last one was not answered.
    Silence,
    /// The last words could not be written.
    Goodbye,
}

impl Life {
    pub(super) fn new(settings: KeepAlive) -> Self {
        Self {
            settings,
            last_read: Instant::now(),
            asked: None,
            goodbye: None,
        }
    }

    pub(super) fn bytes_came(&mut self) {
        if self.settings.interval.is_some() {
            self.last_read = Instant::now();
        }
    }

    pub(super) fn answered(&mut self) {
        self.asked = None;
    }

    /// Begins to say goodbye.
    pub(super) fn part(&mut self) {
        self.goodbye = Some(Instant::now() + GOODBYE_TIMEOUT);
    }

    /// What is due next, and when.
    pub(super) fn next(&self, is_idle: bool) -> Option<(Instant, Due)> {
        let goodbye = self.goodbye.map(|at| (at, Due::Goodbye));
        let ping = self.next_ping(is_idle);
        goodbye.into_iter().chain(ping).min_by_key(|(at, _)| *at)
    }

    fn next_ping(&self, is_idle: bool) -> Option<(Instant, Due)> {
        if let Some(asked) = self.asked {
            return Some((asked + self.settings.timeout, Due::Silence));
        }
        let interval = self.settings.interval?;
        let asks = !is_idle || self.settings.while_idle;
        asks.then(|| (self.last_read + interval, Due::Ping))
    }

    /// A PING is sent.
    pub(super) fn ask(&mut self) {
        self.asked = Some(Instant::now());
    }
}
