//! Counts of what a peer may not do too often.

use std::time::Instant;

use crate::config::{Limits, Rate};
use crate::fault::Fault;

/// What is counted; one for each rate of [`Limits`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flood {
    UnseenReset,
    Reset,
    StreamError,
    EmptyData,
    Settings,
    Ping,
    SmallWindowUpdate,
    IgnoredFrame,
    TableEviction,
}

const KINDS: usize = 9;

/// The counts of one connection, each of which leaks at its rate.
#[derive(Debug)]
pub(crate) struct Floods {
    counts: [u32; KINDS],
    since: Option<Instant>,
}

impl Floods {
    pub(crate) fn new() -> Self {
        Self {
            counts: [0; KINDS],
            since: None,
        }
    }

    /// Lets the counts leak until now.
    pub(crate) fn advance(&mut self, now: Instant, limits: &Limits) {
        let since = *self.since.get_or_insert(now);
        let seconds = now.saturating_duration_since(since).as_secs();
        if seconds == 0 {
            return;
        }
        self.since = Some(now);
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        for (count, (_, rate, _)) in self.counts.iter_mut().zip(table(limits)) {
            *count = count.saturating_sub(rate.per_second.saturating_mul(seconds));
        }
    }

    /// Counts one.
    pub(crate) fn note(&mut self, flood: Flood, limits: &Limits) -> Result<(), Fault> {
        self.note_many(flood, 1, limits)
    }

    /// Counts several.
    pub(crate) fn note_many(
        &mut self,
        flood: Flood,
        times: u32,
        limits: &Limits,
    ) -> Result<(), Fault> {
        let count = &mut self.counts[flood as usize];
        *count = count.saturating_add(times);
        let (_, rate, message) = table(limits)[flood as usize];
        if *count > rate.burst {
            return Err(Fault::calm(message));
        }
        Ok(())
    }

    /// Forgets some, as other frames of the peer's ask for.
    pub(crate) fn forgive(&mut self, flood: Flood, times: u32) {
        let count = &mut self.counts[flood as usize];
        *count = count.saturating_sub(times);
    }
}

fn table(limits: &Limits) -> [(Flood, Rate, &'static str); KINDS] {
    [
        (
            Flood::UnseenReset,
            limits.unseen_resets,
            "too many streams were reset as soon as they were opened",
        ),
        (
            Flood::Reset,
            limits.resets,
            "too many streams were reset before their end",
        ),
        (
            Flood::StreamError,
            limits.stream_errors,
            "too many streams broke the rules",
        ),
        (
            Flood::EmptyData,
            limits.empty_data,
            "too many empty DATA frames",
        ),
        (Flood::Settings, limits.settings, "too many SETTINGS frames"),
        (Flood::Ping, limits.pings, "too many PING frames"),
        (
            Flood::SmallWindowUpdate,
            limits.small_window_updates,
            "too many small WINDOW_UPDATE frames",
        ),
        (
            Flood::IgnoredFrame,
            limits.ignored_frames,
            "too many frames without a use",
        ),
        (
            Flood::TableEviction,
            limits.table_evictions,
            "too many fields were pushed out of the header table",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_kinds() {
        for (index, (flood, _, _)) in table(&Limits::default()).into_iter().enumerate() {
            assert_eq!(flood as usize, index);
        }
    }

    #[test]
    fn counts_leak_with_time_and_are_forgiven() {
        let limits = Limits::default();
        let mut floods = Floods::new();
        let begun = Instant::now();
        floods.advance(begun, &limits);
        for _ in 0..limits.pings.burst {
            floods.note(Flood::Ping, &limits).unwrap();
        }
        floods.forgive(Flood::Ping, 1);
        floods.note(Flood::Ping, &limits).unwrap();
        assert!(floods.note(Flood::Ping, &limits).is_err());
        floods.advance(begun + Duration::from_secs(2), &limits);
        for _ in 1..2 * limits.pings.per_second {
            floods.note(Flood::Ping, &limits).unwrap();
        }
        assert!(floods.note(Flood::Ping, &limits).is_err());
    }
}
