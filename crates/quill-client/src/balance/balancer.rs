//! What a client with several servers calls through.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use quill_core::{Deadline, Error, Request, Response};
use quill_transport::tls::ClientTls;
use quill_transport::{Channel, ClientOptions, Lease};
use tokio::sync::{mpsc, watch};
use tower_service::Service;

use super::backend::{Backend, Use};
use super::keeper::{Event, Keeper};
use super::kept::Failure;
use super::settings::{Balance, Policy};
use super::source::Source;
use crate::backoff::random;
use crate::call::Outgo;
use crate::client::{QuillClient, Settings};
use crate::messages::{Answer, Messages, watched};
use crate::stack::{CallFuture, method_of};
use crate::token::Tokens;

/// The most that the keeper of the servers may be told and has not heard.
const EVENTS_MAX: usize = 256;

/// The servers that calls may go to now.
#[derive(Debug)]
pub(super) struct Picks {
    pub(super) ready: Vec<Arc<Backend>>,
    pub(super) standing: Standing,
}

/// What calls do while no server is ready.
#[derive(Debug)]
pub(super) enum Standing {
    /// One may be soon.
    Connecting,
    /// All have failed, the last with this.
    Failing(Failure),
}

/// The servers of a client. Clones share them.
#[derive(Clone)]
pub(crate) struct Balancer(Arc<Shared>);

struct Shared {
    policy: Policy,
    waits: bool,
    turn: AtomicUsize,
    picks: watch::Receiver<Arc<Picks>>,
    /// Started by the first call, which has a runtime.
    keeper: Mutex<Option<Keeper>>,
}

impl Balancer {
    pub(crate) fn new(
        mut balance: Balance,
        source: Source,
        settings: Settings,
        tokens: Option<Tokens>,
        options: ClientOptions,
        tls: Option<ClientTls>,
    ) -> Self {
        if let Some(check) = &mut balance.health {
            check.carry(tokens);
        }
        let standing = Standing::Connecting;
        let ready = Vec::new();
        let (picks, picked) = watch::channel(Arc::new(Picks { ready, standing }));
        let (tell, events) = mpsc::channel(EVENTS_MAX);
        let (policy, waits) = (balance.policy, balance.waits);
        let make = move |endpoint| {
            let channel = Channel::new(endpoint, options.clone(), tls.clone());
            // The options were checked when the client was built.
            Some(QuillClient::make(settings.clone(), Ok(channel.ok()?)))
        };
        let keeper = Keeper {
            balance,
            source,
            make: Box::new(make),
            picks,
            events,
            tell,
            kept: Vec::new(),
            next_id: 0,
            unresolved: None,
        };
        Self(Arc::new(Shared {
            policy,
            waits,
            turn: AtomicUsize::new(random() as usize),
            picks: picked,
            keeper: Mutex::new(Some(keeper)),
        }))
    }

    /// Waits for a server that takes calls.
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        self.place(None).await.map(drop)
    }

    /// A server that takes calls, and room on one of its connections.
    async fn place(&self, deadline: Option<Deadline>) -> Result<(Arc<Backend>, Lease), Error> {
        let mut picks = self.picks();
        let ends = deadline.map(|deadline| deadline.instant().into());
        loop {
            let now = Arc::clone(&picks.borrow_and_update());
            if let Some(backend) = self.pick(&now.ready) {
                match backend.client.channel()?.lease(ends).await {
                    Ok(lease) => return Ok((backend, lease)),
                    Err(error) if is_over(deadline) => {
                        return Err(late(&error.to_string()).with_source(error));
                    }
                    Err(error) => backend.tell(Event::Failed(backend.id, error)),
                }
            } else if let Standing::Failing(failure) = &now.standing
                && now.ready.is_empty()
                && !self.0.waits
            {
                return Err(failure.to_error());
            }
            let changed = picks.changed();
            let changed = match ends {
                None => changed.await,
                Some(ends) => match tokio::time::timeout_at(ends, changed).await {
                    Ok(changed) => changed,
                    Err(_) => return Err(nobody_ready(&picks.borrow().standing)),
                },
            };
            if changed.is_err() {
                let message = "the runtime on which the client was first used has shut down";
                return Err(Error::canceled(message).unprocessed());
            }
        }
    }

    /// The servers to choose from; what keeps them is started with the first call.
    fn picks(&self) -> watch::Receiver<Arc<Picks>> {
        let keeper = &self.0.keeper;
        // As good as free once it is started, and before that once.
        if let Some(keeper) = keeper.lock().unwrap_or_else(PoisonError::into_inner).take() {
            tokio::spawn(keeper.run());
        }
        self.0.picks.clone()
    }

    /// One of these servers, by the policy, that is connected.
    fn pick(&self, ready: &[Arc<Backend>]) -> Option<Arc<Backend>> {
        let first = match self.0.policy {
            Policy::PickFirst => 0,
            Policy::RoundRobin => self.0.turn.fetch_add(1, Ordering::Relaxed),
            Policy::LeastLoaded => less_loaded(ready),
        };
        let count = ready.len();
        let turns = (0..count).filter_map(|next| ready.get(first.wrapping_add(next) % count));
        let mut turns = turns.filter(|backend| backend.is_connected());
        turns.next().cloned()
    }
}

/// Of two that are drawn, the one with fewer calls under way.
fn less_loaded(ready: &[Arc<Backend>]) -> usize {
    let count = ready.len();
    if count < 2 {
        return 0;
    }
    let drawn = random();
    let one = (drawn >> 32) as usize % count;
    // Another one, whichever of the others.
    let other = (one + 1 + (drawn as u32 as usize) % (count - 1)) % count;
    match (ready.get(one), ready.get(other)) {
        (Some(a), Some(b)) if b.load() < a.load() => other,
        _ => one,
    }
}

fn is_over(deadline: Option<Deadline>) -> bool {
    deadline.is_some_and(|deadline| deadline.instant() <= Instant::now())
}

fn late(why: &str) -> Error {
    Error::deadline_exceeded(why.to_owned()).unprocessed()
}

fn nobody_ready(standing: &Standing) -> Error {
    let waited = "the deadline passed while waiting for a server that takes calls";
    match standing {
        Standing::Connecting => late(waited),
        Standing::Failing(failure) => {
            let error = failure.to_error();
            late(&format!("{waited}: {}", error.message())).with_source(error)
        }
    }
}

impl fmt::Debug for Balancer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Balancer")
            .field("picks", &*self.0.picks.borrow())
            .finish_non_exhaustive()
    }
}

/// The innermost service of a client with several servers: one attempt of a
/// call, at one of them.
#[derive(Clone, Debug)]
pub(crate) struct Balanced(pub(crate) Balancer);

impl Service<Request<Messages>> for Balanced {
    type Response = Response<Answer>;
    type Error = Error;
    type Future = CallFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Messages>) -> CallFuture {
        let balancer = self.0.clone();
        Box::pin(async move {
            let (messages, parts) = request.into_parts();
            let (backend, lease) = balancer.place(parts.deadline).await?;
            let mut outgo = Outgo::new(&backend.client, method_of(&parts)?, parts)?;
            outgo.leaves_on(&lease)?;
            let under_way = Use::of(backend);
            watched(outgo.run(messages, lease).await, under_way)
        })
    }
}
