//! The circuit breaker as a layer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use quill_core::{Code, Error, Pushback, Request, Response};
use tokio::sync::watch;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use super::circuit::{BreakerState, Circuit, Rules, Ticket};
use crate::messages::{Answer, Messages, Watch, watched};
use crate::stack::{CallFuture, Calls, run};

const RULES_DEFAULT: Rules = Rules {
    failure_ratio: 0.5,
    calls_min: 20,
    window: Duration::from_secs(10),
    open_for: Duration::from_secs(5),
};

/// Stops to call a server that fails, and tries again after a while with one call.
///
/// Closed, calls go through, and how they end is counted. When too many of them
/// fail it opens: calls fail at once, `unavailable`, without being made or
/// retried. After a time it is half open: exactly one call is made, however many
/// come at once, and its end closes or opens the circuit again. An answer is a
/// success with its first message; a failure is an error that speaks against the
/// server ([`failure_codes`](Self::failure_codes)).
///
/// Clones share the circuit: keep one to see its [`state`](Self::state).
///
/// ```
/// use quill_client::{BreakerState, CircuitBreaker, QuillClient};
///
/// let breaker = CircuitBreaker::new();
/// let client = QuillClient::builder().circuit_breaker(breaker.clone()).build()?;
/// assert_eq!(breaker.state(), BreakerState::Closed);
/// # Ok::<(), quill_client::ConnectError>(())
/// ```
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    rules: Rules,
    codes: Arc<[Code]>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    circuit: Mutex<Circuit>,
    state: watch::Sender<BreakerState>,
}

/// Codes that speak against a server, not against the call.
pub(crate) const FAULTS: [Code; 5] = [
    Code::Unavailable,
    Code::DeadlineExceeded,
    Code::Internal,
    Code::Unknown,
    Code::DataLoss,
];

impl CircuitBreaker {
    /// Opens when half of the calls of the last 10 s failed, 20 at least, and
    /// stays open for 5 s.
    #[must_use]
    pub fn new() -> Self {
        Self {
            rules: RULES_DEFAULT,
            codes: Arc::new(FAULTS),
            shared: Arc::new(Shared {
                circuit: Mutex::new(Circuit::new(Instant::now())),
                state: watch::Sender::new(BreakerState::Closed),
            }),
        }
    }

    /// The part of calls that has to fail for it to open, over 0 and up to 1;
    /// 0.5 unless set.
    #[must_use]
    pub fn failure_ratio(mut self, ratio: f64) -> Self {
        self.rules.failure_ratio = if ratio > 0.0 { ratio.min(1.0) } else { 0.0 };
        self
    }

    /// Fewer calls than this within the window open nothing; 20 unless set.
    #[must_use]
    pub fn calls_min(mut self, calls: u32) -> Self {
        self.rules.calls_min = calls.max(1);
        self
    }

    /// How far back calls are counted; 10 s unless set.
    #[must_use]
    pub fn window(mut self, window: Duration) -> Self {
        self.rules.window = window;
        self
    }

    /// How long it stays open before a call is tried; 5 s unless set.
    #[must_use]
    pub fn open_for(mut self, time: Duration) -> Self {
        self.rules.open_for = time;
        self
    }

    /// The codes of errors that speak against the server; unless set
    /// `unavailable`, `deadline_exceeded`, `internal`, `unknown` and `data_loss`.
    #[must_use]
    pub fn failure_codes(mut self, codes: impl IntoIterator<Item = Code>) -> Self {
        self.codes = codes.into_iter().collect();
        self
    }

    /// What it does with calls now. It is half open once a call is being tried,
    /// not as soon as one would be.
    #[must_use]
    pub fn state(&self) -> BreakerState {
        *self.shared.state.borrow()
    }

    /// Its state from now on, for logs and metrics.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<BreakerState> {
        self.shared.state.subscribe()
    }

    fn admit(&self) -> Result<Verdict, Error> {
        let admitted = self.shared.change(|circuit| circuit.admit(Instant::now()));
        let ticket = admitted.map_err(|wait| {
            let when = if wait.is_zero() {
                "one call is being tried".to_owned()
            } else {
                format!("the next call is tried in {wait:.1?}")
            };
            let message = format!("the circuit breaker is open, since calls failed: {when}");
            let error = Error::unavailable(message).unprocessed();
            error.with_pushback(Pushback::Never)
        })?;
        Ok(Verdict {
            breaker: self.clone(),
            ticket: Some(ticket),
        })
    }
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self::new()
    }
}

impl Shared {
    fn change<T>(&self, change: impl FnOnce(&mut Circuit) -> T) -> T {
        let mut circuit: MutexGuard<'_, Circuit> =
            self.circuit.lock().unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut circuit);
        let now = circuit.state();
        // Told under the lock, so that states are seen in their order.
        self.state.send_if_modified(|state| {
            let before = std::mem::replace(state, now);
            if before != now {
                tracing::info!(?before, ?now, "a circuit breaker changed its state");
            }
            before != now
        });
        result
    }
}

/// What will be said of a call that was let through.
struct Verdict {
    breaker: CircuitBreaker,
    /// `None` once it was said.
    ticket: Option<Ticket>,
}

impl Verdict {
    fn say(&mut self, failed: bool) {
        let CircuitBreaker { rules, shared, .. } = &self.breaker;
        if let Some(ticket) = self.ticket.take() {
            shared.change(|circuit| circuit.ended(ticket, failed, rules, Instant::now()));
        }
    }
}

impl Watch for Verdict {
    fn message(&mut self) {
        self.say(false);
    }

    fn end(&mut self, result: Result<(), &Error>) {
        let codes = &self.breaker.codes;
        let failed = result.is_err_and(|error| codes.contains(&error.code()));
        self.say(failed);
    }
}

impl Drop for Verdict {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let shared = &self.breaker.shared;
            shared.change(|circuit| circuit.left(ticket, Instant::now()));
        }
    }
}

impl<S> Layer<S> for CircuitBreaker {
    type Service = Breaker<S>;

    fn layer(&self, inner: S) -> Breaker<S> {
        Breaker {
            inner,
            breaker: self.clone(),
        }
    }
}

/// The service of a [`CircuitBreaker`].
#[derive(Clone, Debug)]
pub struct Breaker<S> {
    inner: S,
    breaker: CircuitBreaker,
}

impl<S: Calls> Service<Request<Messages>> for Breaker<S> {
    type Response = Response<Answer>;
    type Error = Error;
    type Future = CallFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Messages>) -> CallFuture {
        let inner = self.inner.clone();
        let breaker = self.breaker.clone();
        Box::pin(async move {
            let verdict = breaker.admit()?;
            watched(run(inner, request).await, verdict)
        })
    }
}
