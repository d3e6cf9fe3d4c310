//! A connection as its callers see it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use quill_core::{BoxError, ResponseHead};
use quill_h2::{Config, Key};
use tokio::io::{AsyncRead, AsyncWrite};

use super::keep_alive::KeepAlive;
use super::session::Session;
use crate::body::RecvBody;
use crate::client::request_body::RequestBody;
use crate::error::TransportError;
use crate::h2::Wakes;

/// What a connection is to be like.
pub(in crate::client) struct Settings {
    pub(in crate::client) config: Config,
    /// Bytes that bodies may have waiting for the socket.
    pub(in crate::client) waiting_bytes_max: usize,
    pub(in crate::client) keep_alive: KeepAlive,
    /// Told when the server asks for fewer pings.
    pub(in crate::client) on_calm: Box<dyn Fn() + Send>,
    /// Told of the connection's end, and why.
    pub(in crate::client) on_end: Box<dyn FnOnce(Option<BoxError>) + Send>,
}

/// An HTTP/2 connection; clones share it. It ends once the last is dropped and what
/// was begun on it has ended.
#[derive(Clone)]
pub(in crate::client) struct Connection(Arc<Callers>);

struct Callers(Arc<Shared>);

impl Drop for Callers {
    fn drop(&mut self) {
        self.0.lock().is_abandoned = true;
        self.0.wakes.wake();
    }
}

/// What callers and the connection's task share.
pub(super) struct Shared {
    state: Mutex<State>,
    pub(super) wakes: Arc<Wakes>,
    /// It takes no more calls.
    is_closed: AtomicBool,
    /// A caller gave up before its stream was opened.
    has_left: AtomicBool,
}

#[derive(Default)]
struct State {
    calls: VecDeque<Call>,
    /// It takes no more calls, for this.
    closed: Option<TransportError>,
    is_abandoned: bool,
}

/// A request on its way to the connection's task.
pub(super) struct Call {
    pub(super) scheme: &'static str,
    pub(super) body: RequestBody,
    pub(super) answer: Arc<Answer>,
}

/// Where an answer's head is awaited.
#[derive(Default)]
pub(super) struct Answer {
    state: Mutex<AnswerState>,
    is_left: AtomicBool,
}

#[derive(Default)]
struct AnswerState {
    stream: Option<Key>,
    result: Option<Result<(ResponseHead, RecvBody), TransportError>>,
    is_given: bool,
    waiting: Option<Waker>,
}

impl Connection {
    /// Begins HTTP/2 on a byte stream; its task is spawned.
    pub(in crate::client) fn begin<T>(io: T, settings: Settings) -> Self
    where
        T: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let config = &settings.config;
        let first_window_bytes = config.stream_window_bytes.min(65_535);
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wakes: Wakes::new(config.connection_window_bytes, first_window_bytes),
            is_closed: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
        });
        tokio::spawn(Session::new(io, settings, shared.clone()).run());
        Self(Arc::new(Callers(shared)))
    }

    /// Whether it takes no more calls.
    pub(in crate::client) fn is_closed(&self) -> bool {
        self.0.0.is_closed.load(Ordering::Acquire)
    }

    /// Sends a request; resolves with the answer's head. Dropped, it resets the stream.
    ///
    /// # Errors
    /// The exchange failed before the head.
    pub(in crate::client) async fn send(
        &self,
        scheme: &'static str,
        body: RequestBody,
    ) -> Result<(ResponseHead, RecvBody), TransportError> {
        let shared = &self.0.0;
        let answer = Arc::new(Answer::default());
        {
            let mut state = shared.lock();
            if let Some(error) = &state.closed {
                return Err(error.clone().unprocessed());
            }
            state.calls.push_back(Call {
                scheme,
                body,
                answer: answer.clone(),
            });
        }
        shared.wakes.wake();
        let waiting = Waiting { answer, shared };
        poll_fn(|cx| waiting.answer.poll(cx)).await
    }
}

/// A caller that waits for an answer's head.
struct Waiting<'a> {
    answer: Arc<Answer>,
    shared: &'a Shared,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.answer.is_left.store(true, Ordering::Release);
        let (stream, has_answer) = {
            let state = self.answer.lock();
            (state.stream, state.is_given)
        };
        match stream {
            Some(stream) => self.shared.wakes.post(stream),
            None if has_answer => {}
            None => {
                self.shared.has_left.store(true, Ordering::Release);
                self.shared.wakes.wake();
            }
        }
    }
}

impl Answer {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<(ResponseHead, RecvBody), TransportError>> {
        let mut state = self.lock();
        if let Some(result) = state.result.take() {
            state.stream = None;
            return Poll::Ready(result);
        }
        match &mut state.waiting {
            Some(waiting) => waiting.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Gives the answer to who waits for it.
    pub(super) fn give(&self, result: Result<(ResponseHead, RecvBody), TransportError>) {
        let mut state = self.lock();
        state.stream = None;
        state.is_given = true;
        state.result = Some(result);
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Notes the stream that a caller who gives up takes with it.
    pub(super) fn opened(&self, stream: Key) {
        self.lock().stream = Some(stream);
    }

    /// Whether nobody waits for it.
    pub(super) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, AnswerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    /// Moves the calls that wait behind those in `calls`.
    pub(super) fn take_calls(&self, calls: &mut VecDeque<Call>) {
        calls.append(&mut self.lock().calls);
    }

    /// Takes no more calls; those that wait are failed.
    pub(super) fn close(&self, error: &TransportError) {
        let mut state = self.lock();
        state.closed.get_or_insert_with(|| error.clone());
        self.is_closed.store(true, Ordering::Release);
        let calls = std::mem::take(&mut state.calls);
        drop(state);
        for call in calls {
            call.fail(error.clone().unprocessed());
        }
    }

    /// Whether a caller has given up since, whose call may wait yet.
    pub(super) fn take_left(&self) -> bool {
        self.has_left.swap(false, Ordering::AcqRel)
    }

    /// Whether no caller can come any more.
    pub(super) fn is_abandoned(&self) -> bool {
        let state = self.lock();
        state.is_abandoned && state.calls.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Call {
    pub(super) fn fail(self, error: TransportError) {
        // Whoever waits may want the body back to send it again.
        drop(self.body);
        self.answer.give(Err(error));
    }
}
