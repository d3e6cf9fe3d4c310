//! What a connection is doing, so that it can be closed when it does nothing.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Shared by a connection's socket, its exchanges and its driver.
#[derive(Debug)]
pub(super) struct Activity {
    state: Mutex<State>,
    /// Its next answer is to be its last.
    is_leaving: AtomicBool,
}

#[derive(Debug)]
struct State {
    exchanges: usize,
    /// Bytes of a head have come, and no request yet.
    in_head: bool,
    /// A request has come.
    was_asked: bool,
    /// When this state was entered.
    since: Instant,
    /// Since when the peer has taken no byte that waits to be written.
    blocked: Option<Instant>,
}

/// How a connection rests: it has no exchange open, and nothing waits to be
/// written. Those that are spared least come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rest {
    /// A request came on it before.
    pub(super) was_asked: bool,
    pub(super) since: Instant,
}

/// How long a connection may be in each state; `None` for ever.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) head: Option<Duration>,
    pub(super) idle: Option<Duration>,
    pub(super) write: Option<Duration>,
}

/// Until when the present state may last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// An exchange is open.
    Never,
    /// A head must have come by then.
    Head(Instant),
    /// An exchange must have begun by then.
    Exchange(Instant),
    /// The peer must have taken some of what waits for it by then.
    Write(Instant),
}

impl Activity {
    /// A connection that has just been made.
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                exchanges: 0,
                in_head: true,
                was_asked: false,
                since: Instant::now(),
                blocked: None,
            }),
            is_leaving: AtomicBool::new(false),
        })
    }

    /// Notes that the connection is ready for HTTP: its first head is awaited
    /// from now on.
    pub(super) fn opened(&self) {
        self.lock().since = Instant::now();
    }

    /// Has the next answer say that it is the last: a peer that may be sending its next
    /// request already loses nothing.
    pub(super) fn leave(&self) {
        self.is_leaving.store(true, Ordering::Relaxed);
    }

    /// Notes that an exchange has begun; it ends when the mark is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Mark {
        let mut state = self.lock();
        state.exchanges += 1;
        state.in_head = false;
        state.was_asked = true;
        drop(state);
        Mark(self.clone())
    }

    pub(super) fn due(&self, limits: &Limits) -> Due {
        let Limits { head, idle, write } = *limits;
        let state = self.lock();
        if let (Some(blocked), Some(write)) = (state.blocked, write) {
            return Due::Write(blocked + write);
        }
        match (state.exchanges, head, idle) {
            (0, Some(head), _) if state.in_head => Due::Head(state.since + head),
            (0, _, Some(idle)) => Due::Exchange(state.since + idle),
            _ => Due::Never,
        }
    }

    /// How the connection rests, if it does.
    pub(super) fn rest(&self) -> Option<Rest> {
        let state = self.lock();
        let (was_asked, since) = (state.was_asked, state.since);
        let is_at_rest = state.exchanges == 0 && state.blocked.is_none();
        is_at_rest.then_some(Rest { was_asked, since })
    }

    fn bytes_came(&self) {
        let mut state = self.lock();
        if state.exchanges == 0 && !state.in_head {
            state.in_head = true;
            state.since = Instant::now();
        }
    }

    fn set_blocked(&self, is_blocked: bool) {
        self.lock().blocked = is_blocked.then(Instant::now);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open exchange.
#[derive(Debug)]
pub(super) struct Mark(Arc<Activity>);

impl Mark {
    /// Whether its connection is to take no exchange after this one.
    pub(super) fn is_leaving(&self) -> bool {
        self.0.is_leaving.load(Ordering::Relaxed)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.exchanges -= 1;
        if state.exchanges == 0 {
            state.since = Instant::now();
        }
    }
}

/// A byte stream behind bytes that were read of it already. Its reads are noted,
/// and writes that the peer holds up.
#[derive(Debug)]
pub(super) struct Watched<T> {
    ahead: Bytes,
    inner: T,
    activity: Arc<Activity>,
    is_blocked: bool,
}

impl<T> Watched<T> {
    pub(super) fn new(ahead: Bytes, inner: T, activity: Arc<Activity>) -> Self {
        Self {
            ahead,
            inner,
            activity,
            is_blocked: false,
        }
    }

    fn note<R>(&mut self, written: Poll<R>) -> Poll<R> {
        if self.is_blocked != written.is_pending() {
            self.is_blocked = written.is_pending();
            self.activity.set_blocked(self.is_blocked);
        }
        written
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ahead.is_empty() {
            let bytes = self.ahead.len().min(buf.remaining());
            buf.put_slice(&self.ahead.split_to(bytes));
            self.activity.bytes_came();
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.activity.bytes_came();
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.note(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.note(written)
    }
}
