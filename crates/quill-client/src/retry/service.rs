//! One call, attempt by attempt.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quill_core::{Error, Inbound, Metadata, Pushback, Request, RequestParts, Response};
use tower_service::Service;

use super::policy::Policies;
use super::replay::Replay;
use crate::call::within;
use crate::messages::{Answer, Messages};
use crate::stack::{CallFuture, Calls, method_of, run};

/// The longest that a server may ask a caller to wait; where a call is to wait
/// longer, there is no further attempt.
pub(crate) const PUSHBACK_MAX: Duration = Duration::from_secs(60);

/// The service of a [`RetryLayer`](super::RetryLayer).
#[derive(Clone, Debug)]
pub struct Retry<S> {
    inner: S,
    policies: Arc<Policies>,
}

impl<S> Retry<S> {
    pub(super) fn new(inner: S, policies: Arc<Policies>) -> Self {
        Self { inner, policies }
    }
}

impl<S: Calls> Service<Request<Messages>> for Retry<S> {
    type Response = Response<Answer>;
    type Error = Error;
    type Future = CallFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // Each attempt waits for a service of its own.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Messages>) -> CallFuture {
        let retrying = Retrying::new(self.inner.clone(), &self.policies, request);
        Box::pin(async move {
            let mut retrying = retrying?;
            let response = retrying.answer().await?;
            let (answer, metadata, trailers) = response.into_parts();
            let answer = match answer {
                Answer::One(_) => answer,
                Answer::Many(inbound) => {
                    let state = State::First(inbound, Box::new(retrying));
                    let is_shared = false;
                    Answer::Many(Box::pin(Retried { state, is_shared }))
                }
            };
            Ok(Response::from_parts(answer, metadata, trailers))
        })
    }
}

/// A call that may be made again.
struct Retrying<S> {
    inner: S,
    policies: Arc<Policies>,
    parts: RequestParts,
    replay: Replay,
    attempts_max: u32,
    attempts: u32,
    /// Failures since the server last said how long to wait.
    failures: u32,
    may_repeat: bool,
}

impl<S: Calls> Retrying<S> {
    fn new(inner: S, policies: &Arc<Policies>, request: Request<Messages>) -> Result<Self, Error> {
        let (messages, parts) = request.into_parts();
        let method = method_of(&parts)?;
        let (policy, may_repeat) = policies.of(&method);
        let format = parts.encoding.format;
        Ok(Self {
            inner,
            policies: Arc::clone(policies),
            replay: Replay::new(messages, format, policies.buffer_bytes_max)?,
            attempts_max: policy.attempts_max,
            attempts: 0,
            failures: 0,
            may_repeat,
            parts,
        })
    }

    /// Attempts until one is answered, or none is left.
    async fn answer(&mut self) -> Result<Response<Answer>, Error> {
        loop {
            let parts = attempt_parts(&self.parts, self.attempts);
            let request = Request::from_parts(self.replay.messages(), parts);
            self.attempts += 1;
            let error = match run(self.inner.clone(), request).await {
                Ok(response) => {
                    if let Answer::One(_) = response.message() {
                        self.policies.budget.succeeded();
                    }
                    return Ok(response);
                }
                Err(error) => error,
            };
            let Some(delay) = self.delay_after(&error) else {
                return Err(error);
            };
            tracing::debug!(%error, ?delay, attempts = self.attempts, "a call is made again");
            tokio::time::sleep(delay).await;
        }
    }

    /// How long to wait before the next attempt; `None` when there is none.
    fn delay_after(&mut self, error: &Error) -> Option<Duration> {
        let method = self.parts.method.as_ref()?;
        let (policy, _) = self.policies.of(method);
        let pushback = error.pushback();
        if !policy.allows(error, self.may_repeat) {
            return None;
        }
        // Where nothing ran, a retry adds no work to what the servers do.
        let is_paid = !error.maybe_processed() || self.policies.budget.failed();
        if !is_paid || self.attempts >= self.attempts_max || !self.replay.is_whole() {
            return None;
        }
        self.failures += 1;
        let delay = match pushback {
            None => policy.backoff.delay(self.failures),
            Some(Pushback::Never) => return None,
            Some(Pushback::After(delay)) if delay > PUSHBACK_MAX => return None,
            Some(Pushback::After(delay)) => {
                self.failures = 0;
                delay
            }
        };
        let ends = self.parts.deadline;
        let is_in_time = ends.is_none_or(|ends| ends.remaining(Instant::now()) > delay);
        is_in_time.then_some(delay)
    }
}

/// What an attempt takes over from its call.
pub(crate) fn attempt_parts(call: &RequestParts, attempts_before: u32) -> RequestParts {
    let mut parts = RequestParts::default();
    parts.metadata = call.metadata.clone();
    parts.deadline = call.deadline;
    parts.method.clone_from(&call.method);
    parts.encoding = call.encoding;
    parts.previous_attempts = call.previous_attempts.saturating_add(attempts_before);
    parts
}

/// The messages of an answer: of another attempt's, when one fails without a
/// message.
struct Retried<S> {
    state: State<S>,
    /// Messages may share the memory of what they came in, of any attempt.
    is_shared: bool,
}

type Again<S> =
    Pin<Box<dyn Future<Output = (Box<Retrying<S>>, Result<Response<Answer>, Error>)> + Send>>;

enum State<S> {
    /// No message has come.
    First(Pin<Box<dyn Inbound>>, Box<Retrying<S>>),
    /// The last attempt failed, and the next one is made.
    Again(Again<S>),
    /// A message has come, or the end.
    Through(Pin<Box<dyn Inbound>>),
    Ended,
}

impl<S: Calls> Retried<S> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        loop {
            match std::mem::replace(&mut self.state, State::Ended) {
                State::Ended => return Poll::Ready(None),
                State::Through(mut inbound) => {
                    let polled = inbound.as_mut().poll_message(cx);
                    self.state = State::Through(inbound);
                    return polled;
                }
                State::First(mut inbound, mut retrying) => {
                    let polled = inbound.as_mut().poll_message(cx);
                    let Poll::Ready(message) = polled else {
                        self.state = State::First(inbound, retrying);
                        return Poll::Pending;
                    };
                    if let Some(Err(error)) = &message
                        && let Some(delay) = retrying.delay_after(error)
                    {
                        tracing::debug!(%error, ?delay, "a call is made again");
                        drop(inbound);
                        self.state = State::Again(Box::pin(async move {
                            tokio::time::sleep(delay).await;
                            // The call's own ended with the head of the first answer.
                            let deadline = retrying.parts.deadline;
                            let result = within(deadline, retrying.answer()).await;
                            (retrying, result)
                        }));
                        continue;
                    }
                    if !matches!(message, Some(Err(_))) {
                        retrying.policies.budget.succeeded();
                    }
                    retrying.replay.commit();
                    self.state = State::Through(inbound);
                    return Poll::Ready(message);
                }
                State::Again(mut again) => {
                    let Poll::Ready((retrying, result)) = again.as_mut().poll(cx) else {
                        self.state = State::Again(again);
                        return Poll::Pending;
                    };
                    match result.map(Response::into_inner) {
                        Ok(Answer::Many(mut inbound)) => {
                            if self.is_shared {
                                inbound.as_mut().share_memory();
                            }
                            self.state = State::First(inbound, retrying);
                        }
                        Ok(Answer::One(message)) => return Poll::Ready(Some(Ok(message))),
                        Err(error) => return Poll::Ready(Some(Err(error))),
                    }
                }
            }
        }
    }
}

/// Nothing in it is pinned in place.
impl<S> Unpin for Retried<S> {}

impl<S: Calls> Inbound for Retried<S> {
    fn poll_message(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Error>>> {
        self.poll(cx)
    }

    fn share_memory(mut self: Pin<&mut Self>) {
        self.is_shared = true;
        if let State::First(inbound, _) | State::Through(inbound) = &mut self.state {
            inbound.as_mut().share_memory();
        }
    }

    fn take_trailers(mut self: Pin<&mut Self>) -> Metadata {
        match &mut self.state {
            State::Through(inbound) => inbound.as_mut().take_trailers(),
            _ => Metadata::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{poll_fn, ready};
    use std::sync::atomic::{AtomicU32, Ordering};

    use quill_core::{Method, MethodKind};
    use tower_layer::Layer;

    use super::*;
    use crate::messages::raw;
    use crate::retry::{RetryLayer, RetryPolicy};

    /// What the first of two attempts is answered fails, and the second's ends.
    #[derive(Clone, Default)]
    struct Servers {
        attempts: Arc<AtomicU32>,
        shared: Arc<AtomicU32>,
    }

    struct Answers {
        fails: bool,
        shared: Arc<AtomicU32>,
    }

    impl Service<Request<Messages>> for Servers {
        type Response = Response<Answer>;
        type Error = Error;
        type Future = CallFuture;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Messages>) -> CallFuture {
            let answers = Answers {
                fails: self.attempts.fetch_add(1, Ordering::Relaxed) == 0,
                shared: Arc::clone(&self.shared),
            };
            Box::pin(ready(Ok(Response::new(Answer::Many(Box::pin(answers))))))
        }
    }

    impl Inbound for Answers {
        fn poll_message(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Bytes, Error>>> {
            let error = || Error::unavailable("not here").unprocessed();
            Poll::Ready(self.fails.then(|| Err(error())))
        }

        fn share_memory(self: Pin<&mut Self>) {
            self.shared.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_answers_of_every_attempt_share_memory() {
        let servers = Servers::default();
        let mut service = RetryLayer::new(RetryPolicy::new()).layer(servers.clone());
        let mut parts = RequestParts::default();
        let method = Method::named("a.A", "B", MethodKind::ServerStreaming);
        parts.method = Some(Arc::new(method));
        let message = Messages::One(Box::new(raw(Bytes::new())));
        let answer = service.call(Request::from_parts(message, parts)).await;
        let Answer::Many(mut answers) = answer.unwrap().into_inner() else {
            panic!("it is a stream");
        };
        answers.as_mut().share_memory();
        let ended = poll_fn(|cx| answers.as_mut().poll_message(cx)).await;
        assert!(ended.is_none(), "{ended:?}");
        assert_eq!(servers.attempts.load(Ordering::Relaxed), 2);
        assert_eq!(servers.shared.load(Ordering::Relaxed), 2);
    }
}
