//! One limit: who may go on, who waits, who is refused.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use quill_core::{Deadline, Error};
use tokio::time::{Instant, timeout};

use super::adaptive::{Gradient, Sample};
use super::permit::Permit;
use super::queue::{Place, Priority, Queue, QueueLimits, Ticket};
use super::settings::Most;
use crate::middleware::metrics::{ConcurrencyCounts, Shed};

/// One limit on calls that are under way.
pub(super) struct Limiter {
    state: Mutex<State>,
    queue: QueueLimits,
    retry_after: Duration,
    counts: Option<Arc<ConcurrencyCounts>>,
}

struct State {
    limit: Limit,
    in_flight: usize,
    queue: Queue,
}

enum Limit {
    Fixed(usize),
    Adaptive(Gradient),
}

/// What becomes of a call.
pub(super) enum Entry {
    /// It may go on.
    Go(Permit),
    /// It waits for others to end.
    Wait(Waiting),
    /// There is no room, and none to wait in.
    Full(Error),
}

/// How a call is counted.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub(super) priority: Priority,
    pub(super) deadline: Option<Deadline>,
    /// Whether how long it takes is the server's doing: not where its caller sends a
    /// stream.
    pub(super) is_measured: bool,
}

impl Limiter {
    pub(super) fn new(
        most: Most,
        queue: QueueLimits,
        retry_after: Duration,
        counts: Option<Arc<ConcurrencyCounts>>,
    ) -> Self {
        let limit = match most {
            Most::Fixed(most) => Limit::Fixed(most),
            Most::Adaptive(settings) => Limit::Adaptive(Gradient::new(settings, Instant::now())),
        };
        let limiter = Self {
            state: Mutex::new(State {
                limit,
                in_flight: 0,
                queue: Queue::default(),
            }),
            queue,
            retry_after,
            counts,
        };
        limiter.show(&limiter.lock());
        limiter
    }

    /// What becomes of a call that comes now.
    pub(super) fn enter(self: &Arc<Self>, asked: Asked) -> Entry {
        let now = Instant::now();
        let mut state = self.lock();
        if state.has_room(asked.priority) {
            state.in_flight += 1;
            let in_flight = state.in_flight;
            self.show(&state);
            drop(state);
            return Entry::Go(Permit::new(Arc::clone(self), asked, in_flight, now));
        }
        let place = state.queue.join(asked.priority, &self.queue, now);
        self.show(&state);
        drop(state);
        match place {
            Some(place) => Entry::Wait(Waiting {
                limiter: Arc::clone(self),
                place,
                asked,
                since: now,
            }),
            None => Entry::Full(self.refused(Shed::Full)),
        }
    }

    /// A call has ended that had a permit; who waits may have its place.
    pub(super) fn release(self: &Arc<Self>, sample: Option<Sample>, in_flight: usize) {
        let now = Instant::now();
        let mut granted = Vec::new();
        let mut state = self.lock();
        state.in_flight -= 1;
        if let (Limit::Adaptive(gradient), Some(sample)) = (&mut state.limit, sample) {
            gradient.sample(sample, in_flight, now);
        }
        while state.queue.first().is_some_and(|next| state.has_room(next))
            && let Some(grant) = state.queue.take_first()
        {
            state.in_flight += 1;
            granted.push((grant, state.in_flight));
        }
        self.show(&state);
        drop(state);
        for (grant, in_flight) in granted {
            let asked = Asked {
                priority: Priority::High,
                deadline: None,
                is_measured: false,
            };
            // Who has gone meanwhile gives it back by dropping it.
            let _ = grant.send(Permit::new(Arc::clone(self), asked, in_flight, now));
        }
    }

    fn leave(&self, ticket: Ticket) {
        let mut state = self.lock();
        state.queue.leave(ticket);
        self.show(&state);
    }

    /// The error of a call that is refused. Those that are refused together are not told
    /// to come back together.
    fn refused(&self, why: Shed) -> Error {
        if let Some(counts) = &self.counts {
            counts.shed(why);
        }
        let message = match why {
            Shed::Full => "the server has as many calls as it can take",
            Shed::Waited => "the server has as many calls as it can take, and none ended in time",
        };
        let share = (RandomState::new().hash_one(0) >> 32) as f64 / f64::from(u32::MAX);
        let retry_after = self.retry_after.mul_f64(0.5 + share);
        Error::unavailable(message).with_retry_after(retry_after)
    }

    fn show(&self, state: &State) {
        if let Some(counts) = &self.counts {
            counts.show(state.limit(), state.in_flight, state.queue.len());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn limit(&self) -> usize {
        match &self.limit {
            Limit::Fixed(most) => *most,
            Limit::Adaptive(gradient) => gradient.limit(),
        }
    }

    fn has_room(&self, priority: Priority) -> bool {
        self.in_flight < priority.share(self.limit())
    }
}

/// A call that waits for others to end. Dropped, it waits no more.
pub(super) struct Waiting {
    limiter: Arc<Limiter>,
    place: Place,
    asked: Asked,
    since: Instant,
}

impl Waiting {
    /// Waits for its turn.
    ///
    /// # Errors
    /// It has not come in time, or its place was given to a call of higher priority.
    pub(super) async fn turn(mut self) -> Result<Permit, Error> {
        let waited = timeout(self.place.wait, &mut self.place.granted).await;
        if let Some(counts) = &self.limiter.counts {
            counts.waited(self.since.elapsed());
        }
        match waited {
            Ok(Ok(permit)) => Ok(permit.of(self.asked)),
            Ok(Err(_)) => Err(self.limiter.refused(Shed::Full)),
            Err(_) => Err(self.limiter.refused(Shed::Waited)),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.limiter.leave(self.place.ticket);
    }
}
