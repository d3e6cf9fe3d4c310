//! Calls that wait until others have ended.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::permit::Permit;

/// Which calls go first where there is not room for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// May use all of the limit, and waits before all others.
    High,
    /// May use nine tenths of the limit.
    #[default]
    Normal,
    /// May use half of the limit, and waits behind all others.
    Low,
}

impl Priority {
    /// How much of a limit it may use; at least 1, so that it is served some time.
    pub(super) fn share(self, limit: usize) -> usize {
        match self {
            Self::High => limit,
            Self::Normal => limit.saturating_mul(9).div_ceil(10),
            Self::Low => limit.div_ceil(2),
        }
    }
}

/// How many may wait, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueLimits {
    pub(super) length: usize,
    pub(super) wait: Duration,
}

/// Where a call waits: by priority, then by who came first.
pub(super) type Ticket = (Priority, u64);

/// Calls that wait.
#[derive(Default)]
pub(super) struct Queue {
    waiting: BTreeMap<Ticket, oneshot::Sender<Permit>>,
    tickets: u64,
    /// Since when somebody has been waiting at any time.
    standing_since: Option<Instant>,
}

/// A place in the queue.
pub(super) struct Place {
    pub(super) ticket: Ticket,
    pub(super) granted: oneshot::Receiver<Permit>,
    /// How long it may wait.
    pub(super) wait: Duration,
}

/// A queue that has stood for so long is let run empty: who comes waits for a
/// twentieth of the time, which is enough for a burst, and none can build up.
const STANDING_SHARE: u32 = 20;

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// A place in the queue: where it is full, that of one who waits behind, who has to
    /// go. `None` where there is none.
    pub(super) fn join(
        &mut self,
        priority: Priority,
        limits: &QueueLimits,
        now: Instant,
    ) -> Option<Place> {
        if self.waiting.len() >= limits.length {
            let last = self.waiting.last_entry()?;
            if last.key().0 <= priority {
                return None;
            }
            // Its waiter sees that it is not to come.
            last.remove();
        }
        let since = *self.standing_since.get_or_insert(now);
        let is_standing = now.saturating_duration_since(since) > limits.wait;
        let ticket = (priority, self.tickets);
        self.tickets += 1;
        let (grant, granted) = oneshot::channel();
        self.waiting.insert(ticket, grant);
        Some(Place {
            ticket,
            granted,
            wait: if is_standing {
                limits.wait / STANDING_SHARE
            } else {
                limits.wait
            },
        })
    }

    /// Who is next.
    pub(super) fn first(&self) -> Option<Priority> {
        self.waiting.keys().next().map(|(priority, _)| *priority)
    }

    /// Takes out who is next.
    pub(super) fn take_first(&mut self) -> Option<oneshot::Sender<Permit>> {
        let (_, grant) = self.waiting.pop_first()?;
        self.look();
        Some(grant)
    }

    /// Somebody waits no more.
    pub(super) fn leave(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
        self.look();
    }

    fn look(&mut self) {
        if self.waiting.is_empty() {
            self.standing_since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot::error::TryRecvError;

    const LIMITS: QueueLimits = QueueLimits {
        length: 2,
        wait: Duration::from_millis(100),
    };

    /// Whether a place was taken away; waiters see that it is not to come.
    fn is_lost(place: &mut Place) -> bool {
        place.granted.try_recv().err() == Some(TryRecvError::Closed)
    }

    #[test]
    fn the_higher_go_first_and_the_lower_make_room() {
        let now = Instant::now();
        let mut queue = Queue::default();
        let mut low = queue.join(Priority::Low, &LIMITS, now).unwrap();
        let mut normal = queue.join(Priority::Normal, &LIMITS, now).unwrap();
        assert!(queue.join(Priority::Low, &LIMITS, now).is_none());
        let mut high = queue.join(Priority::High, &LIMITS, now).unwrap();
        assert!(is_lost(&mut low) && !is_lost(&mut high));
        assert_eq!(queue.len(), 2);
        assert!(queue.join(Priority::Normal, &LIMITS, now).is_none());
        assert_eq!(queue.first(), Some(Priority::High));
        drop(queue.take_first());
        assert!(is_lost(&mut high) && !is_lost(&mut normal));
        assert_eq!(queue.first(), Some(Priority::Normal));
        queue.leave(normal.ticket);
        assert_eq!(queue.first(), None);
    }

    #[test]
    fn a_queue_that_stands_gives_little_time_until_it_was_empty() {
        let mut now = Instant::now();
        let mut queue = Queue::default();
        let first = queue.join(Priority::Normal, &LIMITS, now).unwrap();
        assert_eq!(first.wait, LIMITS.wait);
        now += LIMITS.wait + Duration::from_millis(1);
        let second = queue.join(Priority::Normal, &LIMITS, now).unwrap();
        assert_eq!(second.wait, LIMITS.wait / 20);
        queue.leave(first.ticket);
        queue.leave(second.ticket);
        let third = queue.join(Priority::Normal, &LIMITS, now).unwrap();
        assert_eq!(third.wait, LIMITS.wait);
    }

    #[test]
    fn shares_of_a_limit() {
        let shares =
            |limit| [Priority::High, Priority::Normal, Priority::Low].map(|p| p.share(limit));
        assert_eq!(shares(100), [100, 90, 50]);
        assert_eq!(shares(1), [1, 1, 1]);
        assert_eq!(shares(0), [0, 0, 0]);
    }
}
