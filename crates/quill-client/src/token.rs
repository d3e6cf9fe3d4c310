//! Tokens that calls carry, fetched when they are needed.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use quill_core::{Code, Error, Request, Response};
use tokio::sync::watch;
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::backoff::Backoff;
use crate::messages::{Answer, Messages, Watch, watched};
use crate::stack::{CallFuture, Calls, run};

const AUTHORIZATION: &str = "authorization";
/// How long before a token expires the next is fetched, while calls still use
/// the old one; for tokens that live shorter a tenth of their life.
const REFRESH_AHEAD: Duration = Duration::from_secs(60);
/// The longest time between two fetches of which the first was in vain.
const PAUSE_MAX: Duration = Duration::from_secs(30);
const PAUSES: Backoff = Backoff::new(Duration::from_millis(200), PAUSE_MAX);

/// A token for the `authorization` of calls, and how long it is good.
#[derive(Clone)]
pub struct Token {
    value: String,
    /// When it expires, and when the next is to be fetched.
    times: Option<(Instant, Instant)>,
}

impl Token {
    /// A bearer token that does not expire (RFC 6750).
    #[must_use]
    pub fn bearer(token: impl fmt::Display) -> Self {
        Self {
            value: format!("Bearer {token}"),
            times: None,
        }
    }

    /// The token expires this long from now. A minute before that, or after nine
    /// tenths of its life, the next is fetched.
    #[must_use]
    pub fn expires_in(mut self, life: Duration) -> Self {
        let now = Instant::now();
        let ahead = REFRESH_AHEAD.min(life / 10);
        self.times = now
            .checked_add(life)
            .map(|expires| (expires, expires - ahead));
        self
    }

    fn is_good(&self, now: Instant) -> bool {
        self.times.is_none_or(|(expires, _)| now < expires)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.times.is_some_and(|(_, refresh)| now >= refresh)
    }
}

impl fmt::Debug for Token {
    /// Without the token itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token")
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}

type Fetch = dyn Fn() -> Pin<Box<dyn Future<Output = Result<Token, Error>> + Send>> + Send + Sync;

/// Gives each call a token in its `authorization`, unless it has one.
///
/// The token is fetched when it is first needed, and again shortly before it
/// expires or after the server has refused it (`unauthenticated`); by one fetch
/// at a time, whatever number of calls waits. Clones share the token.
///
/// After a fetch that failed there is none for 200 ms, then longer up to 30 s:
/// calls go on with the token that they have, or fail with that failure. Where
/// the server refuses the next token as well, that is kept for such a time.
#[derive(Clone)]
pub struct Tokens(Arc<Shared>);

struct Shared {
    fetch: Box<Fetch>,
    state: Mutex<State>,
}

/// What became of a fetch, for all who wait for it.
type Outcome = Result<Token, Failure>;
type Failure = (Code, String);
type Fetched = watch::Receiver<Option<Outcome>>;

#[derive(Default)]
struct State {
    token: Option<Token>,
    fetching: Option<Fetched>,
    /// Why the last fetch failed.
    failure: Option<Failure>,
    failures: Pause,
    refusals: Pause,
}

/// A time in which something that was in vain is not done again; longer from
/// one to the next.
#[derive(Default)]
struct Pause {
    in_a_row: u32,
    until: Option<Instant>,
}

impl Pause {
    fn lasts(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    fn begin(&mut self, now: Instant) {
        // The one before is so long ago that it was another matter.
        if self.until.is_some_and(|until| until + PAUSE_MAX <= now) {
            self.in_a_row = 0;
        }
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.until = Some(now + PAUSES.delay(self.in_a_row));
    }
}

impl State {
    /// Why there is no fetch now.
    fn paused(&self, now: Instant) -> Option<&Failure> {
        let failure = self.failure.as_ref();
        failure.filter(|_| self.failures.lasts(now))
    }

    fn fetched(&mut self, outcome: &Outcome) {
        self.fetching = None;
        match outcome {
            Ok(token) => {
                self.token = Some(token.clone());
                self.failure = None;
                self.failures = Pause::default();
            }
            Err(failure) => {
                self.failure = Some(failure.clone());
                self.failures.begin(Instant::now());
            }
        }
    }

    /// What the fetch that runs will tell; and what is to tell it, where it is
    /// to begin.
    fn fetch(&mut self) -> (Fetched, Option<watch::Sender<Option<Outcome>>>) {
        if let Some(fetching) = &self.fetching {
            return (fetching.clone(), None);
        }
        let (tell, fetched) = watch::channel(None);
        self.fetching = Some(fetched.clone());
        (fetched, Some(tell))
    }
}

impl Tokens {
    /// Tokens as `fetch` gives them.
    #[must_use]
    pub fn new<F, T>(fetch: F) -> Self
    where
        F: Fn() -> T + Send + Sync + 'static,
        T: Future<Output = Result<Token, Error>> + Send + 'static,
    {
        Self(Arc::new(Shared {
            fetch: Box::new(move || Box::pin(fetch())),
            state: Mutex::default(),
        }))
    }

    /// A token that is good now.
    async fn token(&self) -> Result<Token, Error> {
        let (good, (mut fetched, begins)) = {
            let mut state = self.lock();
            let now = Instant::now();
            let good = state.token.clone().filter(|token| token.is_good(now));
            match (good, state.paused(now)) {
                (Some(token), paused) if paused.is_some() || !token.is_due(now) => {
                    return Ok(token);
                }
                (None, Some((code, message))) => return Err(failed(*code, message)),
                (good, _) => (good, state.fetch()),
            }
        };
        if let Some(tell) = begins {
            // Not while the state is locked: a runtime that shuts down drops the
            // task at once.
            self.fetch(tell);
        }
        if let Some(token) = good {
            return Ok(token);
        }
        let outcome = fetched.wait_for(Option::is_some).await;
        match outcome.as_deref() {
            Ok(Some(Ok(token))) => Ok(token.clone()),
            Ok(Some(Err((code, message)))) => Err(failed(*code, message)),
            // It always tells.
            _ => Err(failed(Code::Internal, "nothing fetches it")),
        }
    }

    /// Fetches a token, in a task of its own, so that a caller that gives up does
    /// not take it from the others.
    fn fetch(&self, tell: watch::Sender<Option<Outcome>>) {
        let fetching = Fetching {
            tokens: self.clone(),
            tell,
            outcome: Err((Code::Internal, "what fetches it has panicked".to_owned())),
        };
        tokio::spawn(async move {
            let result = (fetching.tokens.0.fetch)().await;
            fetching.end(result);
        });
    }

    /// The server has refused this token.
    fn refused(&self, token: &str) {
        let mut state = self.lock();
        let now = Instant::now();
        let is_kept = state.token.as_ref().is_some_and(|kept| kept.value == token);
        // A server that refuses each is no reason to fetch one for each call.
        if is_kept && !state.refusals.lasts(now) {
            state.refusals.begin(now);
            state.token = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

/// The fetch that runs. What became of it is told when it is gone, since it is
/// done or has panicked.
struct Fetching {
    tokens: Tokens,
    tell: watch::Sender<Option<Outcome>>,
    outcome: Outcome,
}

impl Fetching {
    fn end(mut self, result: Result<Token, Error>) {
        self.outcome = result.map_err(|error| (error.code(), error.message().to_owned()));
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.tokens.lock().fetched(&self.outcome);
        self.tell.send_replace(Some(self.outcome.clone()));
    }
}

fn failed(code: Code, message: &str) -> Error {
    Error::new(code, format!("no token for the call: {message}")).unprocessed()
}

/// Learns whether the server refuses a token.
struct Use {
    tokens: Tokens,
    token: String,
}

impl Watch for Use {
    fn end(&mut self, result: Result<(), &Error>) {
        if result.is_err_and(|error| error.code() == Code::Unauthenticated) {
            self.tokens.refused(&self.token);
        }
    }
}

impl<S> Layer<S> for Tokens {
    type Service = WithToken<S>;

    fn layer(&self, inner: S) -> WithToken<S> {
        WithToken {
            inner,
            tokens: self.clone(),
        }
    }
}

/// The service of [`Tokens`].
#[derive(Clone, Debug)]
pub struct WithToken<S> {
    inner: S,
    tokens: Tokens,
}

impl<S: Calls> Service<Request<Messages>> for WithToken<S> {
    type Response = Response<Answer>;
    type Error = Error;
    type Future = CallFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Messages>) -> CallFuture {
        let Self { inner, tokens } = self.clone();
        Box::pin(async move {
            if request.metadata().get(AUTHORIZATION).is_some() {
                return run(inner, request).await;
            }
            let token = tokens.token().await?.value;
            let inserted = request.metadata_mut().insert(AUTHORIZATION, &token);
            inserted.map_err(|_| {
                // The error names the value.
                failed(
                    Code::Internal,
                    "it holds characters that no header can have",
                )
            })?;
            watched(run(inner, request).await, Use { tokens, token })
        })
    }
}
