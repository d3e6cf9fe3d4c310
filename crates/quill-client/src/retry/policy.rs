//! What is made again, and how often.

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use quill_core::{Code, Error, Idempotency, Method};
use quill_transport::TransportError;
use tower_layer::Layer;

use super::budget::RetryBudget;
use super::service::Retry;
use crate::backoff::Backoff;
use crate::balance::Failure;

const ATTEMPTS_MAX_DEFAULT: u32 = 4;
pub(crate) const BACKOFF_DEFAULT: Backoff =
    Backoff::new(Duration::from_millis(100), Duration::from_secs(2));
const BUFFER_BYTES_MAX_DEFAULT: usize = 256 * 1024;

/// When a call that failed is made again, and how often.
///
/// What no server has begun to handle is always safe to make again. A call that
/// may have run is only where its method may be repeated: one whose
/// `idempotency_level` says so in the `.proto`, or one that was given a policy of
/// its own ([`RetryLayer::method`]).
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    pub(super) attempts_max: u32,
    pub(super) backoff: Backoff,
    pub(super) codes: Vec<Code>,
    /// Retries only what a server has refused, or did not get.
    pub(super) is_transparent: bool,
}

impl RetryPolicy {
    /// Four attempts, 100 ms and longer between them, for `unavailable`.
    #[must_use]
    pub fn new() -> Self {
        Self {
            attempts_max: ATTEMPTS_MAX_DEFAULT,
            backoff: BACKOFF_DEFAULT,
            codes: vec![Code::Unavailable],
            is_transparent: false,
        }
    }

    /// Makes again, at once, what was on its way to a server and surely did not
    /// run there: another may take it.
    pub(crate) fn transparent() -> Self {
        let at_once = Duration::from_millis(1);
        let mut policy = Self::new().backoff(Backoff::new(at_once, at_once));
        policy.is_transparent = true;
        policy
    }

    /// The most attempts of one call, the first included; 4 unless set, 1 at least.
    #[must_use]
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts.max(1);
        self
    }

    /// How long to wait between attempts, where the server does not say; 100 ms
    /// up to 2 s unless set.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// The codes after which a call that may have run is made again;
    /// `unavailable` alone unless set.
    #[must_use]
    pub fn codes(mut self, codes: impl IntoIterator<Item = Code>) -> Self {
        self.codes = codes.into_iter().collect();
        self
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes calls again that failed, where that is safe (gRPC proposal A6).
///
/// The server's word goes first: how long to wait (`retry-after`, gRPC's
/// pushback, a `RetryInfo` detail), or not to try again at all. The call's
/// deadline covers all attempts and the waits between them. A request's messages
/// are kept until the first message of the answer, within a bound; one that is
/// over it, or whose answer has begun, is not made again. Extensions that a layer
/// outside of this one has set on the request stay behind.
#[derive(Clone, Debug)]
pub struct RetryLayer(Arc<Policies>);

#[derive(Clone, Debug)]
pub(super) struct Policies {
    policy: RetryPolicy,
    methods: HashMap<String, RetryPolicy>,
    pub(super) budget: RetryBudget,
    pub(super) buffer_bytes_max: usize,
}

impl RetryLayer {
    /// Retries by this policy, within a [`RetryBudget`] of its own.
    #[must_use]
    pub fn new(policy: RetryPolicy) -> Self {
        Self(Arc::new(Policies {
            policy,
            methods: HashMap::new(),
            budget: RetryBudget::default(),
            buffer_bytes_max: BUFFER_BYTES_MAX_DEFAULT,
        }))
    }

    fn with(mut self, change: impl FnOnce(&mut Policies)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Gives the method at `path` (`/package.Service/Method`) a policy of its
    /// own, and says with it that the method may be repeated, whatever its
    /// `.proto` says.
    #[must_use]
    pub fn method(self, path: impl Into<String>, policy: RetryPolicy) -> Self {
        self.with(|policies| {
            policies.methods.insert(path.into(), policy);
        })
    }

    /// Pays from this budget, such as one that several clients share.
    #[must_use]
    pub fn budget(self, budget: RetryBudget) -> Self {
        self.with(|policies| policies.budget = budget)
    }

    /// Most bytes of a stream of requests that are kept for another attempt; 256
    /// KiB unless set. A stream that is longer can't be made again from then on.
    #[must_use]
    pub fn buffer_bytes_max(self, bytes: usize) -> Self {
        self.with(|policies| policies.buffer_bytes_max = bytes)
    }
}

impl From<RetryPolicy> for RetryLayer {
    fn from(policy: RetryPolicy) -> Self {
        Self::new(policy)
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry::new(inner, Arc::clone(&self.0))
    }
}

impl Policies {
    /// The policy of a method, and whether the method may be repeated.
    pub(super) fn of(&self, method: &Method) -> (&RetryPolicy, bool) {
        match self.methods.get(method.path()) {
            Some(policy) => (policy, true),
            None => (&self.policy, may_repeat(method)),
        }
    }
}

impl RetryPolicy {
    /// Whether another attempt after this error is safe, and of use.
    pub(super) fn allows(&self, error: &Error, may_repeat: bool) -> bool {
        if self.is_transparent {
            // Where there is no server at all, none would take it now.
            let has_server = error.source().is_some_and(|source| !source.is::<Failure>());
            return !error.maybe_processed() && has_server && TransportError::of(error).is_some();
        }
        if error.maybe_processed() {
            return may_repeat && self.codes.contains(&error.code());
        }
        error.code() == Code::Unavailable
    }
}

/// Whether the method's `.proto` says that a second call changes nothing more.
pub(crate) fn may_repeat(method: &Method) -> bool {
    method.idempotency() != Idempotency::Unknown
}
