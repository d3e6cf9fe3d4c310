//! Where state lives: the traits that stores implement.
//!
//! A store does one thing, [`RateLimitBackend::apply`]: an [`Operation`] with
//! `n` cells on a key under a quota, atomically. That is data, not a closure,
//! so that it can cross to a Lua script in Redis or a statement in SQLite as
//! well as be a compare-and-swap here. `check`, `peek`, `reset` and `refund` of
//! the limiters are its four operations.
//!
//! [`RateLimitBackend::apply_all`] takes several demands, all or nothing. Its
//! default charges one after the other and gives back on a refusal, which never
//! admits too much; a store that can do it in one step (a script, a
//! transaction) overrides it.
//!
//! There are two traits, and a store implements one of them:
//!
//! - [`RateLimitBackend`], native async: for stores that must wait.
//! - [`SyncBackend`], for stores in this process that never block. They get
//!   `RateLimitBackend` for free, and the limiters' `check_now` besides.
//!
//! A backend is a handle: its clones share one state.
//!
//! A store that cannot be asked (a network is down) still answers: by the
//! policy it was built with, marked [`Decision::is_degraded`].
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::{Arc, Mutex};
//! use std::time::Instant;
//! use throttle_kit::gcra::{self, Tat};
//! use throttle_kit::{Decision, KeyRef, Operation, Quota, RateLimiter, SyncBackend};
//!
//! /// The plainest store there is.
//! #[derive(Clone)]
//! struct Plain(Arc<Mutex<HashMap<Vec<u8>, Tat>>>, Instant);
//!
//! impl SyncBackend for Plain {
//!     fn apply_now(&self, key: KeyRef<'_>, quota: &Quota, n: u32, op: Operation) -> Decision {
//!         let mut name = Vec::new();
//!         key.write_canonical(&mut name);
//!         let mut map = self.0.lock().unwrap();
//!         let tat = map.entry(name).or_insert(Tat::NEVER);
//!         let step = gcra::step(*tat, self.1.elapsed().as_nanos() as u64, quota, n, op);
//!         *tat = step.tat;
//!         step.decision
//!     }
//! }
//!
//! let limiter = RateLimiter::new(Quota::per_minute(1), Plain(Arc::default(), Instant::now()));
//! assert!(limiter.check_now("ann").is_allowed());
//! assert!(!limiter.check_now("ann").is_allowed());
//! ```

use std::future::Future;
use std::future::ready;

use crate::decision::{Decision, JointDecision, Outcome};
use crate::gcra::Tat;
use crate::key::{Key, KeyBuf, KeyRef, Kind, Namespace};
use crate::quota::Quota;

/// What to do with the `n` cells of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Take them if they fit; otherwise change nothing.
    Check,
    /// Say what `Check` would answer, and change nothing. The decision's cost is 0.
    Peek,
    /// Forget the key, whatever `n` is; always allowed.
    Reset,
    /// Give them back, at most as many as are still owed; always allowed.
    ///
    /// Of a decision that said until when they are owed, only those whose time
    /// has not come: the others are back already, and whoever could have them
    /// twice could save them up.
    Refund(Option<Tat>),
}

/// One limit of a joint check.
#[derive(Debug, Clone)]
pub struct Demand<'a> {
    namespace: &'a Namespace,
    kind: Kind,
    bytes: KeyBuf,
    quota: Quota,
    cells: u32,
}

impl<'a> Demand<'a> {
    /// One cell of `key` under `quota`, in the default namespace. Copies the
    /// key: without an allocation up to [`KeyBuf::INLINE`] bytes.
    #[must_use]
    pub fn new<K: Key + ?Sized>(key: &K, quota: Quota) -> Self {
        Self {
            namespace: &Namespace::DEFAULT,
            kind: K::KIND,
            bytes: key.bytes().as_ref().into(),
            quota,
            cells: 1,
        }
    }

    /// Asks for `n` cells.
    #[must_use]
    pub const fn cells(mut self, n: u32) -> Self {
        self.cells = n;
        self
    }

    /// Looks the key up in `namespace`.
    #[must_use]
    pub const fn in_namespace(mut self, namespace: &'a Namespace) -> Self {
        self.namespace = namespace;
        self
    }

    /// The key as a store sees it.
    #[must_use]
    pub fn key(&self) -> KeyRef<'_> {
        KeyRef {
            namespace: self.namespace,
            kind: self.kind,
            bytes: self.bytes.as_ref(),
        }
    }

    /// The quota it is under.
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// How many cells it asks for.
    #[must_use]
    pub const fn n(&self) -> u32 {
        self.cells
    }
}

/// Where state lives. See the [module](self).
pub trait RateLimitBackend: Clone + Send + Sync + 'static {
    /// Does `operation` with `n` cells of `key` under `quota`, atomically with
    /// regard to every other caller of the same state.
    fn apply(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> impl Future<Output = Decision> + Send;

    /// Checks several demands: all are charged, or none.
    ///
    /// As provided, they are charged in the order given and given back on a
    /// refusal. Others may be refused meanwhile what is about to be given back;
    /// too much is never admitted.
    fn apply_all(&self, demands: &[Demand<'_>]) -> impl Future<Output = JointDecision> + Send {
        apply_one_by_one(self, demands)
    }

    /// [`apply`](Self::apply) where the answer needs no waiting: `None` from
    /// stores that must wait, which is the default. Saves the tower layer a
    /// boxed future.
    fn apply_at_once(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> Option<Decision> {
        let _ = (key, quota, n, operation);
        None
    }
}

/// Charges demands one after the other, and gives back on a refusal.
pub(crate) async fn apply_one_by_one<B: RateLimitBackend>(
    backend: &B,
    demands: &[Demand<'_>],
) -> JointDecision {
    let mut joint = Joint::default();
    for (index, demand) in demands.iter().enumerate() {
        let (key, quota, n) = (demand.key(), demand.quota(), demand.n());
        let operation = joint.operation();
        joint.add(index, backend.apply(key, quota, n, operation).await);
    }
    for demand in joint.to_give_back(demands) {
        let (key, quota, n) = (demand.key(), demand.quota(), demand.n());
        let _ = backend.apply(key, quota, n, Operation::Refund(None)).await;
    }
    joint.into_decision()
}

/// A store in this process that never blocks. See the [module](self).
pub trait SyncBackend: Clone + Send + Sync + 'static {
    /// Does `operation` with `n` cells of `key` under `quota`, atomically with
    /// regard to every other caller of the same state.
    fn apply_now(&self, key: KeyRef<'_>, quota: &Quota, n: u32, operation: Operation) -> Decision;

    /// Checks several demands: all are charged, or none. As
    /// [`RateLimitBackend::apply_all`].
    fn apply_all_now(&self, demands: &[Demand<'_>]) -> JointDecision {
        let mut joint = Joint::default();
        for (index, demand) in demands.iter().enumerate() {
            let (key, quota, n) = (demand.key(), demand.quota(), demand.n());
            joint.add(index, self.apply_now(key, quota, n, joint.operation()));
        }
        for demand in joint.to_give_back(demands) {
            let (key, quota, n) = (demand.key(), demand.quota(), demand.n());
            let _ = self.apply_now(key, quota, n, Operation::Refund(None));
        }
        joint.into_decision()
    }
}

impl<B: SyncBackend> RateLimitBackend for B {
    #[inline]
    fn apply(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> impl Future<Output = Decision> + Send {
        ready(self.apply_now(key, quota, n, operation))
    }

    fn apply_all(&self, demands: &[Demand<'_>]) -> impl Future<Output = JointDecision> + Send {
        ready(self.apply_all_now(demands))
    }

    #[inline(always)]
    fn apply_at_once(
        &self,
        key: KeyRef<'_>,
        quota: &Quota,
        n: u32,
        operation: Operation,
    ) -> Option<Decision> {
        Some(self.apply_now(key, quota, n, operation))
    }
}

/// Folds the decisions of a joint check into one. Stores that override
/// `apply_all` use it too, so that all pick the binding demand alike.
#[derive(Debug, Default)]
pub struct Joint {
    binding: Option<(usize, Decision)>,
    /// How many of the first demands were charged.
    charged: usize,
}

impl Joint {
    /// What to do with the next demand: charge it, or after a refusal only ask.
    #[must_use]
    pub fn operation(&self) -> Operation {
        match &self.binding {
            Some((_, decision)) if !decision.is_allowed() => Operation::Peek,
            _ => Operation::Check,
        }
    }

    /// Takes the decision of the next demand.
    pub fn add(&mut self, index: usize, decision: Decision) {
        if decision.is_allowed() && self.operation() == Operation::Check {
            self.charged = index + 1;
        }
        let binds = match &self.binding {
            None => true,
            Some((_, bound)) => tightness(&decision) > tightness(bound),
        };
        if binds {
            self.binding = Some((index, decision));
        }
    }

    /// The demands that were charged and must not stay so.
    #[must_use]
    pub fn to_give_back<'d, 'a>(&self, demands: &'d [Demand<'a>]) -> &'d [Demand<'a>] {
        match self.operation() {
            Operation::Check => &[],
            _ => demands.get(..self.charged).unwrap_or_default(),
        }
    }

    /// The one decision. Allowed if there were no demands.
    pub fn into_decision(self) -> JointDecision {
        match self.binding {
            Some((index, decision)) => JointDecision {
                binding: Some(index),
                decision,
            },
            None => JointDecision {
                binding: None,
                decision: Decision::allowed(&Quota::DENY_ALL, 0, 0),
            },
        }
    }
}

/// Orders decisions: the impossible binds before the longest wait, that before
/// the fewest cells left.
fn tightness(decision: &Decision) -> (u8, u128) {
    match decision.outcome() {
        Outcome::InsufficientCapacity => (2, 0),
        Outcome::Denied => (1, decision.retry_after().unwrap_or_default().as_nanos()),
        Outcome::Allowed => (0, u128::from(u32::MAX - decision.remaining())),
    }
}
