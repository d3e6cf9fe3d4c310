//! Checks that wait, and how they leave together.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::Shared;
use super::error::RedisStoreError;
use super::script::{Answer, Mode, Request};
use super::slot::slot;

/// Calls of one lane under way at once. Two keep the server busy while the
/// replies of one are handed out; more would only make the calls smaller.
const FLIGHTS_MAX: usize = 2;

/// Pauses after a failure, doubled from one to the next.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

type Reply = Result<Answer, RedisStoreError>;

/// The queue to one server; on a Cluster, to a range of slots.
#[derive(Default)]
pub(super) struct Lane(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    flights: usize,
    health: Health,
}

struct Waiting {
    request: Request,
    reply: oneshot::Sender<Reply>,
}

/// Whether the server answered last time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Health {
    #[default]
    Up,
    /// Not asked again until then, and then by one call.
    Down { until: Instant, pause: Duration },
}

impl Health {
    /// Whether to ask the server now. If it was down this is the one probe, and
    /// the next is due when this one has failed by `timeout`.
    fn admits(&mut self, now: Instant, timeout: Duration) -> bool {
        match self {
            Self::Up => true,
            Self::Down { until, .. } if now < *until => false,
            Self::Down { until, pause } => {
                *until = now + timeout + *pause;
                true
            }
        }
    }

    fn fail(&mut self, now: Instant) {
        let pause = match *self {
            Self::Up => PAUSE_MIN,
            Self::Down { pause, .. } => (pause * 2).min(PAUSE_MAX),
        };
        *self = Self::Down {
            until: now + pause,
            pause,
        };
    }
}

impl Lane {
    /// Whether the server may be asked now, besides the queue.
    pub(super) fn admits(&self, timeout: Duration) -> bool {
        self.lock().health.admits(Instant::now(), timeout)
    }

    /// Queues a request; whoever finds too few calls under way starts one.
    pub(super) async fn ask(
        shared: &Arc<Shared>,
        index: usize,
        request: Request,
    ) -> Result<Answer, RedisStoreError> {
        let lane = shared.lane(index);
        let runtime =
            tokio::runtime::Handle::try_current().map_err(|_| RedisStoreError::NoRuntime)?;
        let (reply, answer) = oneshot::channel();
        let start = {
            let mut state = lane.lock();
            if state.waiting.len() >= shared.waiting_max {
                return Err(RedisStoreError::Overloaded {
                    waiting_max: shared.waiting_max,
                });
            }
            if !state.health.admits(Instant::now(), shared.timeout) {
                return Err(RedisStoreError::Resting);
            }
            state.waiting.push_back(Waiting { request, reply });
            let start = state.flights < FLIGHTS_MAX;
            state.flights += usize::from(start);
            start
        };
        if start {
            let flight = Flight {
                shared: Arc::clone(shared),
                index,
                landed: false,
            };
            runtime.spawn(flight.run());
        }
        match tokio::time::timeout(shared.timeout, answer).await {
            Ok(Ok(answer)) => answer,
            // A flight that ended without an answer: its runtime shut down.
            Ok(Err(_)) => Err(RedisStoreError::NoRuntime),
            Err(_) => Err(RedisStoreError::TimedOut(shared.timeout)),
        }
    }

    /// Takes what waits, at most `max`, without those that gave up. If nothing
    /// does, the flight is over: noted under the same lock, so that whoever
    /// comes next starts another.
    fn board(&self, max: usize) -> Option<Vec<Waiting>> {
        let mut state = self.lock();
        let mut batch = Vec::with_capacity(state.waiting.len().min(max));
        while batch.len() < max
            && let Some(waiting) = state.waiting.pop_front()
        {
            if !waiting.reply.is_closed() {
                batch.push(waiting);
            }
        }
        if batch.is_empty() {
            state.flights -= 1;
            return None;
        }
        Some(batch)
    }

    /// Notes how a call went.
    pub(super) fn note(&self, shared: &Shared, answered: bool) {
        let recovered = {
            let mut state = self.lock();
            if answered {
                std::mem::take(&mut state.health) != Health::Up
            } else {
                state.health.fail(Instant::now());
                false
            }
        };
        if recovered {
            shared.fallback.log_up();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task that makes calls for as long as checks wait.
struct Flight {
    shared: Arc<Shared>,
    index: usize,
    landed: bool,
}

impl Flight {
    async fn run(mut self) {
        // Lets those that are ready now come along.
        tokio::task::yield_now().await;
        while let Some(batch) = self.lane().board(self.shared.batch_max) {
            let answered = self.fly(batch).await;
            self.lane().note(&self.shared, answered);
        }
        self.landed = true;
    }

    /// Whether every call was answered.
    async fn fly(&self, batch: Vec<Waiting>) -> bool {
        if !self.shared.is_cluster {
            return deliver(&self.shared, batch).await;
        }
        let mut calls = JoinSet::new();
        for batch in by_slot(batch) {
            let shared = Arc::clone(&self.shared);
            calls.spawn(async move { deliver(&shared, batch).await });
        }
        let mut answered = true;
        while let Some(call) = calls.join_next().await {
            answered &= call.unwrap_or(false);
        }
        answered
    }

    fn lane(&self) -> &Lane {
        self.shared.lane(self.index)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // Its runtime was shut down in the middle of a call.
        if !self.landed {
            self.lane().lock().flights -= 1;
        }
    }
}

fn by_slot(batch: Vec<Waiting>) -> impl Iterator<Item = Vec<Waiting>> {
    let mut slots: HashMap<u16, Vec<Waiting>> = HashMap::new();
    for waiting in batch {
        let slot = slot(&waiting.request.key);
        slots.entry(slot).or_default().push(waiting);
    }
    slots.into_values()
}

/// Makes one call and hands the answers out. Whether there were any.
async fn deliver(shared: &Shared, batch: Vec<Waiting>) -> bool {
    let (requests, replies): (Vec<_>, Vec<_>) = batch
        .into_iter()
        .map(|waiting| (waiting.request, waiting.reply))
        .unzip();
    let called = shared.link.call(Mode::Each, &requests).await;
    let answered = called.is_ok();
    let answers = called.unwrap_or_else(|error| vec![Err(error); replies.len()]);
    for (reply, answer) in replies.into_iter().zip(answers) {
        // Who gave up meanwhile has its answer already.
        let _ = reply.send(answer);
    }
    answered
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(100);

    #[test]
    fn a_server_that_failed_is_probed_by_one_call_after_a_pause() {
        let mut health = Health::default();
        let start = Instant::now();
        assert!(health.admits(start, TIMEOUT));
        health.fail(start);
        assert!(!health.admits(start, TIMEOUT));
        let later = start + PAUSE_MIN;
        assert!(health.admits(later, TIMEOUT));
        assert!(!health.admits(later, TIMEOUT), "the probe is under way");
        // A probe that was never sent does not bar the way for ever.
        assert!(health.admits(later + TIMEOUT + PAUSE_MIN, TIMEOUT));
    }

    #[test]
    fn pauses_double_up_to_a_second() {
        let mut health = Health::default();
        let now = Instant::now();
        for _ in 0..10 {
            health.fail(now);
        }
        assert!(!health.admits(now + PAUSE_MAX / 2, TIMEOUT));
        assert!(health.admits(now + PAUSE_MAX, TIMEOUT));
    }
}
