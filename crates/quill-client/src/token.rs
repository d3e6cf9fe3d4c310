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

use crate::messages::{Answer, Messages, Watch, watched};
use crate::stack::{CallFuture, Calls, run};

const AUTHORIZATION: &str = "authorization";
/// How long before a token expires the next is fetched, while calls still use
/// the old one; for tokens that live shorter a tenth of their life.
const REFRESH_AHEAD: Duration = Duration::from_secs(60);

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
#[derive(Clone)]
pub struct Tokens(Arc<Shared>);

struct Shared {
    fetch: Box<Fetch>,
    state: Mutex<State>,
}

/// What became of a fetch, for all who wait for it.
type Outcome = Result<Token, (Code, String)>;
type Fetched = watch::Receiver<Option<Outcome>>;

#[derive(Default)]
struct State {
    token: Option<Token>,
    fetching: Option<Fetched>,
}

impl State {
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
            match good {
                Some(token) if !token.is_due(now) => return Ok(token),
                good => (good, state.fetch()),
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
            _ => Err(failed(Code::Internal, "what fetches it has panicked")),
        }
    }

    /// Fetches a token, in a task of its own, so that a caller that gives up does
    /// not take it from the others.
    fn fetch(&self, tell: watch::Sender<Option<Outcome>>) {
        let fetching = Fetching(self.clone());
        tokio::spawn(async move {
            let result = (fetching.0.0.fetch)().await;
            let outcome = result.map_err(|error| (error.code(), error.message().to_owned()));
            if let Ok(token) = &outcome {
                fetching.0.lock().token = Some(token.clone());
            }
            drop(fetching);
            tell.send_replace(Some(outcome));
        });
    }

    /// The server has refused this token.
    fn refused(&self, token: &str) {
        let mut state = self.lock();
        if state.token.as_ref().is_some_and(|kept| kept.value == token) {
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

/// Marks the fetch that runs; gone when that is done, or has panicked.
struct Fetching(Tokens);

impl Drop for Fetching {
    fn drop(&mut self) {
        self.0.lock().fetching = None;
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
