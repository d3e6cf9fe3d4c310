//! Telling work that outlives a handler that its call is over.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
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
    wakers: Vec<Waker>,
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
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.fired = true;
            std::mem::take(&mut state.wakers)
        };
        for waker in wakers {
            waker.wake();
        }
    }

    /// Whether it has fired.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).fired
    }

    /// Resolves once it fires.
    #[must_use]
    pub fn cancelled(&self) -> Cancelled {
        Cancelled(self.clone())
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
pub struct Cancelled(Cancellation);

impl Future for Cancelled {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let token = &self.0.0;
        let mut state = token.lock().unwrap_or_else(PoisonError::into_inner);
        if state.fired {
            return Poll::Ready(());
        }
        if !state.wakers.iter().any(|w| w.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
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
}
