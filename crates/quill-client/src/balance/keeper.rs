//! The task that keeps a client's servers: finds them, connects them, leaves
//! those out that fail.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use quill_transport::{Endpoint, TransportError};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::backend::Backend;
use super::balancer::{Picks, Standing};
use super::kept::{Failure, Kept, Link};
use super::settings::{Balance, Policy};
use super::source::Source;
use crate::client::QuillClient;

/// The time between two look-ups of the servers' names, at least.
pub(crate) const RESOLVE_PAUSE: Duration = Duration::from_secs(1);

/// What the keeper learns of a server, by its number.
#[derive(Debug)]
pub(super) enum Event {
    /// An attempt to connect has ended.
    Connected(u64, Result<(), TransportError>),
    /// A call was to go there and found no connection.
    Lost(u64),
    /// A call was to go there and could make no connection.
    Failed(u64, TransportError),
    /// What it says of its health.
    Health(u64, Result<(), Failure>),
    /// So many of its calls failed that it is to be left out.
    Suspect(u64),
}

type Resolving = Pin<Box<dyn Future<Output = Result<Vec<Endpoint>, TransportError>> + Send>>;

/// Makes the client of one server.
pub(super) type Make = Box<dyn Fn(Endpoint) -> Option<QuillClient> + Send>;

pub(super) struct Keeper {
    pub(super) balance: Balance,
    pub(super) source: Source,
    pub(super) make: Make,
    pub(super) picks: watch::Sender<Arc<Picks>>,
    pub(super) events: mpsc::Receiver<Event>,
    pub(super) tell: mpsc::Sender<Event>,
    pub(super) kept: Vec<Kept>,
    pub(super) next_id: u64,
    pub(super) unresolved: Option<Failure>,
}

impl Keeper {
    /// Keeps the servers until nobody calls them any more.
    pub(super) async fn run(mut self) {
        let mut resolving = Some(self.resolve());
        let mut resolved = Instant::now();
        let mut resolve_at = resolved;
        let mut interval_at = self.interval_after(Instant::now());
        loop {
            let now = Instant::now();
            let mut due = self.connect(now);
            due = earliest(due, self.end_ejections(now));
            due = earliest(due, interval_at);
            if resolving.is_none() {
                due = earliest(due, Some(resolve_at));
            }
            self.publish();
            let wake = due.unwrap_or(now + self.balance.resolve_interval);
            tokio::select! {
                () = self.picks.closed() => return,
                Some(event) = self.events.recv() => {
                    if self.hear(event) {
                        resolve_at = resolve_at.min(resolved + RESOLVE_PAUSE);
                    }
                }
                found = finish(&mut resolving) => {
                    resolving = None;
                    resolved = Instant::now();
                    let pause = if found.is_ok() { self.balance.resolve_interval } else { RESOLVE_PAUSE };
                    resolve_at = resolved + pause;
                    self.found(found);
                }
                () = sleep_until(wake) => {}
            }
            let now = Instant::now();
            if resolving.is_none() && resolve_at <= now {
                resolving = Some(self.resolve());
            }
            if interval_at.is_some_and(|at| at <= now) {
                self.judge(now);
                interval_at = self.interval_after(now);
            }
        }
    }

    fn resolve(&self) -> Resolving {
        let source = self.source.clone();
        Box::pin(async move { source.endpoints().await })
    }

    fn interval_after(&self, now: Instant) -> Option<Instant> {
        let outliers = self.balance.outliers.as_ref()?;
        Some(now + outliers.interval)
    }

    /// Keeps those servers that were there before, in the order in which they are
    /// given now. Calls that are under way at the others go on.
    fn found(&mut self, found: Result<Vec<Endpoint>, TransportError>) {
        let endpoints = match found {
            Ok(endpoints) => endpoints,
            Err(error) => {
                // Those that are known are the best there is.
                tracing::warn!(%error, "a client's servers could not be found");
                self.unresolved = Some(Failure::Transport(error));
                return;
            }
        };
        self.unresolved = None;
        let mut before = std::mem::take(&mut self.kept);
        for endpoint in endpoints {
            let known = before
                .iter()
                .position(|kept| kept.backend.endpoint == endpoint);
            match known {
                Some(index) => self.kept.push(before.swap_remove(index)),
                None => self.add(endpoint),
            }
        }
    }

    fn add(&mut self, endpoint: Endpoint) {
        let Some(client) = (self.make)(endpoint.clone()) else {
            return;
        };
        let in_a_row = self
            .balance
            .outliers
            .as_ref()
            .map(|outliers| outliers.in_a_row);
        let tell = self.tell.clone();
        let backend = Backend::new(self.next_id, endpoint, client, in_a_row, tell);
        self.next_id += 1;
        self.kept.push(Kept::new(Arc::new(backend)));
    }

    /// Begins to connect what is to be connected; when to look again.
    fn connect(&mut self, now: Instant) -> Option<Instant> {
        let only_one = self.balance.policy == Policy::PickFirst;
        let mut may_connect = !only_one || !self.kept.iter().any(Kept::is_of_use);
        let mut next = None;
        for kept in &mut self.kept {
            match kept.link {
                Link::Connecting | Link::Ready => continue,
                Link::Failed(until) if until > now => {
                    next = earliest(next, Some(until));
                    continue;
                }
                Link::Idle | Link::Failed(_) => {}
            }
            if may_connect {
                kept.connect(&self.tell);
                may_connect = !only_one;
            }
        }
        next
    }

    fn end_ejections(&mut self, now: Instant) -> Option<Instant> {
        let until = self
            .kept
            .iter_mut()
            .filter_map(|kept| kept.ejected_until(now));
        until.min()
    }

    /// Takes note of an event; whether a server was lost by it.
    fn hear(&mut self, event: Event) -> bool {
        let now = Instant::now();
        let (Event::Connected(id, _)
        | Event::Lost(id)
        | Event::Failed(id, _)
        | Event::Health(id, _)
        | Event::Suspect(id)) = event;
        let (servers, ejected) = (self.kept.len(), self.ejected());
        let Some(kept) = self.kept.iter_mut().find(|kept| kept.backend.id == id) else {
            return false;
        };
        match event {
            Event::Connected(_, Ok(())) => {
                kept.backend.heard();
                kept.connected(self.balance.health.as_ref(), &self.tell);
            }
            Event::Connected(_, Err(error)) => {
                kept.failed(error, &self.balance, now);
                return true;
            }
            Event::Failed(_, error) if kept.link == Link::Ready => {
                kept.failed(error, &self.balance, now);
                return true;
            }
            Event::Failed(..) => {}
            Event::Lost(_) => {
                kept.backend.heard();
                kept.lost(&self.balance, now);
                return true;
            }
            Event::Health(_, health) => kept.told(health),
            Event::Suspect(_) => {
                if let Some(outliers) = &self.balance.outliers
                    && !kept.is_ejected()
                    && outliers.allows(servers, ejected)
                {
                    kept.eject(outliers, now);
                }
            }
        }
        false
    }

    fn ejected(&self) -> usize {
        self.kept.iter().filter(|kept| kept.is_ejected()).count()
    }

    /// Looks at the calls of an interval.
    fn judge(&mut self, now: Instant) {
        let Some(outliers) = self.balance.outliers.clone() else {
            return;
        };
        let servers = self.kept.len();
        let mut ejected = self.ejected();
        for kept in &mut self.kept {
            let is_outlier = kept.backend.record.is_outlier(&outliers);
            if !is_outlier {
                kept.behaved();
            } else if !kept.is_ejected() && outliers.allows(servers, ejected) {
                kept.eject(&outliers, now);
                ejected += 1;
            }
        }
    }

    /// Says which servers calls may go to.
    fn publish(&self) {
        let taking = || self.kept.iter().filter(|kept| kept.takes_calls());
        let fit = || taking().filter(|kept| !kept.is_ejected());
        let backends = |kept: &Kept| Arc::clone(&kept.backend);
        let mut ready: Vec<_> = fit().map(backends).collect();
        if ready.is_empty() {
            // Servers that fail are better than none.
            ready = taking().map(backends).collect();
        }
        let last = self
            .kept
            .iter()
            .filter_map(|kept| kept.failure.as_ref())
            .next_back();
        let all_failed = self.kept.iter().all(|kept| kept.failure.is_some());
        let standing = match last.or(self.unresolved.as_ref()) {
            Some(failure) if all_failed => Standing::Failing(failure.clone()),
            _ => Standing::Connecting,
        };
        self.picks.send_replace(Arc::new(Picks { ready, standing }));
    }
}

/// Ends with what is being looked up; never while nothing is.
async fn finish(resolving: &mut Option<Resolving>) -> Result<Vec<Endpoint>, TransportError> {
    match resolving {
        Some(resolving) => resolving.await,
        None => std::future::pending().await,
    }
}

fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
