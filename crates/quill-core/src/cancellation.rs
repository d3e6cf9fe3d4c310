//! Telling work that outlives a handler that its call is over.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Fires when its call ended early: the caller cancelled or vanished, the
/// deadline passed, the server gave up draining.
///
/// The handler's own future is simply dropped then; this is for what it
/// spawned. Clones fire together. It also fires when the call ended well, since
/// nobody waits for its work any more.
#[derive(Clone, Default)]
pub struct Cancellation(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    fired: bool,
    /// Who waits, by the number of their future.
    wakers: Vec<(u64, Waker)>,
    next_id: u64,
}

impl State {
    fn forget(&mut self, id: u64) -> Option<Waker> {
        let index = self.wakers.iter().position(|(other, _)| *other == id)?;
        Some(self.wakers.swap_remove(index).1)
    }
}

impl Cancellation {
    /// A token that has not fired.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Fires, and wakes everyone who waits.
    pub fn cancel(&self) {
        let wakers = {
            let mut state = self.lock();
            state.fired = true;
            std::mem::take(&mut state.wakers)
        };
        for (_, waker) in wakers {
            waker.wake();
        }
    }

    /// Whether there is a clone of it.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Whether it has fired.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.lock().fired
    }

    /// Resolves once it fires.
    #[must_use]
    pub fn cancelled(&self) -> Cancelled {
        let id = {
            let mut state = self.lock();
            state.next_id += 1;
            state.next_id
        };
        Cancelled {
            token: self.clone(),
            id,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellation")
            .field("cancelled", &self.is_cancelled())
            .finish()
    }
}

/// The future of [`Cancellation::cancelled`].
#[derive(Debug)]
pub struct Cancelled {
    token: Cancellation,
    id: u64,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.token.lock();
        if state.fired {
            return Poll::Ready(());
        }
        let before = state.forget(self.id);
        state.wakers.push((self.id, cx.waker().clone()));
        drop(state);
        // Out of the lock: what goes with it is not ours.
        drop(before);
        Poll::Pending
    }
}

/// A call may last for days, and each of its messages be waited for beside it.
impl Drop for Cancelled {
    fn drop(&mut self) {
        let waker = self.token.lock().forget(self.id);
        drop(waker);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fires_once_for_all_clones() {
        let token = Cancellation::new();
        let waiting = token.clone();
        let mut future = waiting.cancelled();
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(Pin::new(&mut future).poll(&mut cx), Poll::Pending);
        token.cancel();
        assert!(waiting.is_cancelled());
        assert_eq!(Pin::new(&mut future).poll(&mut cx), Poll::Ready(()));
    }
    #[test]
    fn a_future_that_is_dropped_leaves_nothing_behind() {
        let token = Cancellation::new();
        let mut cx = Context::from_waker(Waker::noop());
        let mut kept = token.cancelled();
        assert!(Pin::new(&mut kept).poll(&mut cx).is_pending());
        for _ in 0..100 {
            let mut future = token.cancelled();
            assert!(Pin::new(&mut future).poll(&mut cx).is_pending());
            assert!(Pin::new(&mut future).poll(&mut cx).is_pending());
        }
        assert_eq!(token.lock().wakers.len(), 1);
        token.cancel();
        assert!(Pin::new(&mut kept).poll(&mut cx).is_ready());
    }
}
