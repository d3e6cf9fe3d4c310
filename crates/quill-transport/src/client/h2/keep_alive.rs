//! PINGs that tell whether a server is still there.

use std::time::Duration;

use tokio::time::Instant;

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
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A PING is to be sent.
    Ping,
    /// The last one was not answered.
    Silence,
}

impl Life {
    pub(super) fn new(settings: KeepAlive) -> Self {
        Self {
            settings,
            last_read: Instant::now(),
            asked: None,
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

    /// What is due next, and when.
    pub(super) fn next(&self, is_idle: bool) -> Option<(Instant, Due)> {
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
