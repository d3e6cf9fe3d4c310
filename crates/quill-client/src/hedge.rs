//! A second attempt beside one that takes long.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use quill_core::{Code, Error, MethodKind, Pushback, Request, RequestParts, Response};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::messages::{Answer, Messages, encoded, raw};
use crate::retry::{PUSHBACK_MAX, RetryBudget, attempt_parts, may_repeat};
use crate::stack::{CallFuture, Calls, method_of, run};

/// Makes a further attempt of a call whose answer is late, beside the first, and
/// takes the answer that comes first; the others are given up (gRPC proposal A6).
///
/// For unary methods alone whose `idempotency_level` says in the `.proto` that
/// they may be repeated: the server may see all attempts. Where it asks callers to
/// wait, the next attempt waits; where that is longer than a minute, or where it
/// fails so often that its budget is used up, there is none.
#[derive(Clone, Debug)]
pub struct Hedge {
    delay: Duration,
    attempts_max: usize,
    codes: Vec<Code>,
    budget: RetryBudget,
}

impl Hedge {
    /// A second attempt when there is no answer after `delay`: about what 95 of
    /// 100 calls take, so that it adds a twentieth to the server's load.
    #[must_use]
    pub fn after(delay: Duration) -> Self {
        Self {
            delay,
            attempts_max: 2,
            codes: vec![Code::Unavailable],
            budget: RetryBudget::default(),
        }
    }

    /// The most attempts of one call, the first included, each a delay after the
    /// one before; 2 unless set, at most 5.
    #[must_use]
    pub fn attempts_max(mut self, attempts: usize) -> Self {
        self.attempts_max = attempts.clamp(1, 5);
        self
    }

    /// Codes after which the next attempt is made at once, where there is one
    /// left; any other error ends the call. `unavailable` alone unless set.
    #[must_use]
    pub fn codes(mut self, codes: impl IntoIterator<Item = Code>) -> Self {
        self.codes = codes.into_iter().collect();
        self
    }

    /// Pays from this budget, such as one that is shared with retries.
    #[must_use]
    pub fn budget(mut self, budget: RetryBudget) -> Self {
        self.budget = budget;
        self
    }
}

impl<S> Layer<S> for Hedge {
    type Service = Hedged<S>;

    fn layer(&self, inner: S) -> Hedged<S> {
        Hedged {
            inner,
            hedge: self.clone(),
        }
    }
}

/// The service of a [`Hedge`].
#[derive(Clone, Debug)]
pub struct Hedged<S> {
    inner: S,
    hedge: Hedge,
}

impl<S: Calls> Service<Request<Messages>> for Hedged<S> {
    type Response = Response<Answer>;
    type Error = Error;
    type Future = CallFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // Each attempt waits for a service of its own.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Messages>) -> CallFuture {
        let Self { inner, hedge } = self.clone();
        Box::pin(async move {
            let (messages, parts) = request.into_parts();
            let method = method_of(&parts)?;
            let is_unary = method.kind() == MethodKind::Unary;
            match messages {
                Messages::One(message) if is_unary && may_repeat(&method) => {
                    let message = encoded(&*message, parts.encoding.format)?;
                    let begin = |attempts_before| {
                        let parts: RequestParts = attempt_parts(&parts, attempts_before);
                        let message = Messages::One(Box::new(raw(message.clone())));
                        let request = Request::from_parts(message, parts);
                        run(inner.clone(), request)
                    };
                    hedge.race(begin).await
                }
                messages => run(inner, Request::from_parts(messages, parts)).await,
            }
        })
    }
}

impl Hedge {
    /// The first answer of attempts that begin one after the other.
    async fn race<F>(&self, begin: impl Fn(u32) -> F) -> Result<Response<Answer>, Error>
    where
        F: Future<Output = Result<Response<Answer>, Error>>,
    {
        let mut attempts: Vec<Pin<Box<F>>> = vec![Box::pin(begin(0))];
        let mut begun = 1;
        let mut most = self.attempts_max;
        let mut next = Instant::now() + self.delay;
        loop {
            let is_more = begun < most;
            let ended = tokio::select! {
                biased;
                ended = first(&mut attempts) => Some(ended),
                () = tokio::time::sleep_until(next), if is_more => None,
            };
            match ended {
                Some(Ok(response)) => {
                    self.budget.succeeded();
                    return Ok(response);
                }
                Some(Err(error)) => {
                    if !self.codes.contains(&error.code()) {
                        return Err(error);
                    }
                    let is_paid = self.budget.failed();
                    next = Instant::now();
                    match error.pushback() {
                        Some(Pushback::After(delay)) if is_paid && delay <= PUSHBACK_MAX => {
                            next += delay;
                        }
                        None if is_paid => {}
                        _ => most = begun,
                    }
                    if attempts.is_empty() && begun >= most {
                        return Err(error);
                    }
                    continue;
                }
                None => {}
            }
            let before = u32::try_from(begun).unwrap_or(u32::MAX);
            attempts.push(Box::pin(begin(before)));
            begun += 1;
            next = Instant::now() + self.delay;
        }
    }
}

/// Waits for one of the attempts that run to end, and takes it out; for ever
/// while there is none.
async fn first<F: Future>(attempts: &mut Vec<Pin<Box<F>>>) -> F::Output {
    poll_fn(|cx| {
        for index in 0..attempts.len() {
            if let Some(attempt) = attempts.get_mut(index)
                && let Poll::Ready(ended) = attempt.as_mut().poll(cx)
            {
                drop(attempts.swap_remove(index));
                return Poll::Ready(ended);
            }
        }
        Poll::Pending
    })
    .await
}
