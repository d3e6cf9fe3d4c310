//! Budgets shared between machines, in Redis or Valkey.
//!
//! ```no_run
//! # async fn demo() -> Result<(), throttle_kit::store::redis::RedisStoreError> {
//! use std::time::Duration;
//! use throttle_kit::store::redis::RedisBackend;
//! use throttle_kit::{Quota, RateLimiter, WhenDown};
//!
//! let backend = RedisBackend::single("redis://127.0.0.1/")
//!     .prefix("shop:limits:")
//!     .timeout(Duration::from_millis(50))
//!     .when_down(WhenDown::Local)
//!     .build()?;
//! let limiter = RateLimiter::new(Quota::per_second(2000), backend);
//! let decision = limiter.check("customer 7").await;
//! # let _ = decision;
//! # Ok(())
//! # }
//! ```
//!
//! # Across machines
//!
//! Every process that uses the same Redis, prefix, namespace and key shares one
//! budget. A check is one call of a script, which Redis runs with nothing in
//! between, on Redis' own clock: the clocks of the clients play no part, so a
//! machine that is ten seconds behind takes no cell too many. Time is counted
//! in microseconds of that clock and costs in 2,048,000ths of one, so rates up
//! to 100,000 a second are exact. What two limiters say of one key should be
//! the same quota: each check goes by the quota of its own limiter, on the debt
//! that all have left.
//!
//! A key lives in Redis only while it owes something, and a second longer. It
//! takes about 100 bytes there, besides its name. The name is the prefix and
//! [`KeyRef::write_canonical`], as long as the key is: where clients choose keys,
//! bound their length.
//!
//! - **One server**: [`RedisBackend::single`]. Version 5 or later, or Valkey.
//! - **Sentinel**: [`RedisBackend::sentinel`]. After a failover the sentinels
//!   are asked for the new primary. Redis replicates after it has answered, so
//!   a failover may forget the charges of its last moments: at worst each key
//!   has one burst more, once.
//! - **Cluster**: [`RedisBackend::cluster`]. Keys spread over the slots, and
//!   move with them. A failover is as with Sentinel.
//!
//! Checks that are made at the same time travel together: while one call is
//! under way the next ones wait for each other and leave as one call, which
//! costs Redis a fraction of what they cost singly (on a Cluster one call for each
//! slot, pipelined to each node). There is no timer in it: a check that is
//! alone leaves at once.
//!
//! [`check_all`](crate::RateLimiter::check_all) is one call too: all demands
//! are charged or none, and nobody sees anything in between. On a Cluster that
//! needs all keys in one slot: give them, or their namespaces, the same hash
//! tag, as in `{tenant 7}:minute` and `{tenant 7}:day`. Otherwise they are
//! charged one after the other and given back on a refusal, which may refuse
//! others meanwhile but never admits too much, and the log says so;
//! [`try_apply_all`](RedisBackend::try_apply_all) gives an error instead. A key
//! that its client chooses freely can choose its slot by such a tag, too.
//!
//! # What happens when Redis is down
//!
//! A check waits at most [`timeout`](RedisBuilder::timeout). Then, or as soon
//! as the connection fails, the policy answers: [`WhenDown::Open`],
//! [`Closed`](WhenDown::Closed) or [`Local`](WhenDown::Local). Such an answer is
//! marked [`Decision::is_degraded`].
//!
//! After a failure Redis is left alone for 50 ms, then for twice as long each
//! time up to a second, and the policy answers at once: a Redis that hangs
//! costs one check each second its timeout, not every check. The first call
//! that succeeds ends that. Nothing needs to be restarted, neither after a
//! restart of Redis, nor when its scripts were flushed, nor after a failover;
//! on a Cluster only the slots of the failed node are affected.
//!
//! The log has a warning (target `throttle_kit`) at most every ten seconds, and
//! says when Redis is back. `reset` and `refund` have no effect on Redis while
//! it is down, and what the policy admitted is not charged later.
//!
//! A check that timed out may still be charged, if Redis was only slow. So
//! trouble costs cells, and never admits too much except by the policy.
//!
//! # Leases
//!
//! With [`lease`](RedisBuilder::lease) a process takes, say, 100 cells of a key
//! with one call and hands the next 99 out without asking: hot keys cost Redis
//! a hundredth, and the check does not wait. What it costs:
//!
//! - Cells that one process holds are refused to all others. An idle process
//!   strands up to `cells - 1` of each key for up to `held_max`, after which
//!   they are dropped, not given back: by then time has refilled the budget,
//!   and giving back would admit too much. With `k` processes a key may be
//!   refused with `k x (cells - 1)` cells unused.
//! - Cells are used later than they were charged: in a span of time up to
//!   `burst + rate x (span + held_max)` are admitted, instead of
//!   `burst + rate x span`.
//!
//! A lease is at most half of the burst, and a key that has less left than a
//! lease is asked for one check at a time. `check_all`, `peek` and `refund`
//! look at Redis only.

mod builder;
mod error;
mod lane;
mod lease;
mod link;
mod script;
mod slot;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use builder::RedisBuilder;
pub use error::RedisStoreError;

use self::lane::Lane;
use self::lease::{Claim, Leases};
use self::link::Link;
use self::script::{Mode, Request};
use self::slot::slot;
use crate::backend::{Demand, Joint, Operation, RateLimitBackend, apply_one_by_one};
use crate::decision::{Decision, JointDecision};
use crate::key::KeyRef;
use crate::quota::Quota;
#[cfg(doc)]
use crate::store::WhenDown;
use crate::store::when_down::Fallback;

/// Queues to the server: one is used of a single one, all of a Cluster, each
/// for a range of slots, because nodes fail one by one.
const LANES: usize = 64;
const SLOTS_PER_LANE: usize = slot::SLOTS as usize / LANES;

/// Keeps budgets in Redis. See the [module](self).
///
/// A handle: clones share the connection and everything else. It needs a tokio
/// runtime with I/O and time enabled, and outlives any one of them.
#[derive(Clone)]
pub struct RedisBackend(Arc<Shared>);

pub(crate) struct Shared {
    link: Link,
    lanes: [Lane; LANES],
    leases: Option<Leases>,
    fallback: Fallback,
    started: Instant,
    prefix: String,
    timeout: Duration,
    batch_max: usize,
    waiting_max: usize,
    is_cluster: bool,
}

impl RedisBackend {
    /// One server, at a `redis://[user:password@]host[:port][/db]` or `unix://path`.
    pub fn single(url: impl Into<String>) -> RedisBuilder {
        RedisBuilder::single(url.into())
    }

    /// The primary that the `sentinels` (`redis://` addresses of theirs) know
    /// by the name `service`.
    pub fn sentinel(
        sentinels: impl IntoIterator<Item = impl Into<String>>,
        service: impl Into<String>,
    ) -> RedisBuilder {
        let sentinels = sentinels.into_iter().map(Into::into).collect();
        RedisBuilder::sentinel(sentinels, service.into())
    }

    /// A Cluster, of which `nodes` are some.
    pub fn cluster(nodes: impl IntoIterator<Item = impl Into<String>>) -> RedisBuilder {
        RedisBuilder::cluster(nodes.into_iter().map(Into::into).collect())
    }

    /// Connects, and sees that the script runs: for a start-up or health check.
    ///
    /// # Errors
    ///
    /// What kept Redis from answering.
    pub async fn ready(&self) -> Result<(), RedisStoreError> {
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(RedisStoreError::NoRuntime);
        }
        self.0.link.call(Mode::Each, &[]).await.map(drop)
    }

    /// [`apply`](RateLimitBackend::apply) with an error where a limiter gets
    /// the policy's answer.
    ///
    /// # Errors
    ///
    /// What kept Redis from deciding.
    pub async fn try_apply(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> Result<Decision, RedisStoreError> {
        if quota.denies_all() && operation != Operation::Reset {
            // Says the same whatever the key owes.
            return Ok(match operation {
                Operation::Refund(_) => Decision::allowed(quota, 0, 0),
                _ => Decision::refused(quota, 0, n),
            });
        }
        let key = self.name(key);
        // Before the server is asked: rather too early than too late.
        let now_ns = self.now_ns();
        let n = match operation {
            Operation::Refund(Some(until)) => n.min(until.cells_ahead(now_ns, quota)),
            _ => n,
        };
        let decision = match (&self.0.leases, operation) {
            (Some(leases), Operation::Check) => self.check_by_lease(leases, key, quota, n).await?,
            (leases, _) => {
                if let (Some(leases), Operation::Reset) = (leases, operation) {
                    leases.forget(&key);
                }
                let request = Request::new(key, quota, n, operation);
                self.ask(request).await?.decision(quota, n, operation)
            }
        };
        Ok(decision.owed_from(now_ns))
    }

    /// Of this process: for how long a decision's cells are owed.
    fn now_ns(&self) -> u64 {
        u64::try_from(self.0.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// [`apply_all`](RateLimitBackend::apply_all) with an error where a limiter
    /// gets the policy's answer.
    ///
    /// # Errors
    ///
    /// What kept Redis from deciding; on a Cluster
    /// [`CrossSlot`](RedisStoreError::CrossSlot) if the demands lie apart.
    pub async fn try_apply_all(
        &self,
        demands: &[Demand<'_>],
    ) -> Result<JointDecision, RedisStoreError> {
        let shared = &self.0;
        let mut joint = Joint::default();
        if demands.is_empty() {
            return Ok(joint.into_decision());
        }
        let requests: Vec<_> = demands
            .iter()
            .map(|demand| {
                let key = self.name(demand.key());
                Request::new(key, demand.quota(), demand.n(), Operation::Check)
            })
            .collect();
        let lane = shared.lane(self.one_slot(&requests)?);
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(RedisStoreError::NoRuntime);
        }
        if !lane.admits(shared.timeout) {
            return Err(RedisStoreError::Resting);
        }
        let called = shared.link.call(Mode::All, &requests).await;
        lane.note(shared, called.is_ok());
        for (index, (answer, demand)) in called?.into_iter().zip(demands).enumerate() {
            let operation = joint.operation();
            joint.add(
                index,
                answer?.decision(demand.quota(), demand.n(), operation),
            );
        }
        Ok(joint.into_decision())
    }

    async fn check_by_lease(
        &self,
        leases: &Leases,
        key: Vec<u8>,
        quota: &Quota,
        n: u32,
    ) -> Result<Decision, RedisStoreError> {
        match leases.claim(&key, quota, n, Instant::now()) {
            Claim::Taken(decision) => Ok(decision),
            Claim::Plain => {
                let request = Request::new(key, quota, n, Operation::Check);
                let answer = self.ask(request).await?;
                Ok(answer.decision(quota, n, Operation::Check))
            }
            Claim::Lease(cells, asking) => {
                let request = Request::lease(key, quota, n, cells);
                let answer = self.ask(request).await?;
                Ok(asking
                    .settle(&answer, quota, n, cells)
                    .unwrap_or_else(|| answer.decision(quota, n, Operation::Check)))
            }
        }
    }

    async fn ask(&self, request: Request) -> Result<script::Answer, RedisStoreError> {
        let index = self.0.lane_of(&request);
        Lane::ask(&self.0, index, request).await
    }

    /// The lane of requests that must go in one call.
    fn one_slot(&self, requests: &[Request]) -> Result<usize, RedisStoreError> {
        let mut slots = requests.iter().map(|request| slot(&request.key));
        let expected = slots.next().unwrap_or_default();
        if self.0.is_cluster
            && let Some((index, slot)) = slots.enumerate().find(|&(_, slot)| slot != expected)
        {
            return Err(RedisStoreError::CrossSlot {
                demand: index + 1,
                expected,
                slot,
            });
        }
        Ok(requests.first().map_or(0, |first| self.0.lane_of(first)))
    }

    /// The key's name in Redis.
    fn name(&self, key: KeyRef<'_>) -> Vec<u8> {
        let prefix = self.0.prefix.as_bytes();
        let mut name = Vec::with_capacity(prefix.len() + key.bytes.len() + 16);
        name.extend_from_slice(prefix);
        key.write_canonical(&mut name);
        name
    }
}

impl Shared {
    fn lane(&self, index: usize) -> &Lane {
        &self.lanes[index % LANES]
    }

    fn lane_of(&self, request: &Request) -> usize {
        if self.is_cluster {
            usize::from(slot(&request.key)) / SLOTS_PER_LANE
        } else {
            0
        }
    }
}

impl RateLimitBackend for RedisBackend {
    async fn apply(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> Decision {
        match self.try_apply(key, quota, n, operation).await {
            Ok(decision) => decision,
            Err(error) => {
                self.0.fallback.log_down(&error);
                self.0.fallback.apply(key, quota, n, operation)
            }
        }
    }

    async fn apply_all(&self, demands: &[Demand<'_>]) -> JointDecision {
        match self.try_apply_all(demands).await {
            Ok(decision) => decision,
            Err(error @ RedisStoreError::CrossSlot { .. }) => {
                self.0.fallback.log_note(&error);
                apply_one_by_one(self, demands).await
            }
            Err(error) => {
                self.0.fallback.log_down(&error);
                self.0.fallback.apply_all(demands)
            }
        }
    }
}

impl fmt::Debug for RedisBackend {
    // Without the addresses: they may hold passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBackend")
            .field("prefix", &self.0.prefix)
            .field("timeout", &self.0.timeout)
            .field("is_cluster", &self.0.is_cluster)
            .finish_non_exhaustive()
    }
}
