//! What calls made inside a handler inherit.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::deadline::Deadline;
use crate::trace::TraceContext;

/// What a call made inside a handler takes over from the call being handled:
/// its deadline and its trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallContext {
    /// When the call being handled must have ended.
    pub deadline: Option<Deadline>,
    /// Where in which trace it is: below this, calls made inside it go on.
    pub trace: Option<Arc<TraceContext>>,
}

thread_local! {
    static CURRENT: RefCell<CallContext> = const {
        RefCell::new(CallContext { deadline: None, trace: None })
    };
}

impl CallContext {
    /// The context of the handler that runs on this thread; empty outside one.
    #[must_use]
    pub fn current() -> Self {
        CURRENT.with(|current| current.borrow().clone())
    }

    /// Runs `future` with this context: within each of its polls,
    /// [`current`](Self::current) is this one. Pass it along to what a handler
    /// spawns if that makes calls too.
    pub fn scope<F: Future>(self, future: F) -> Scoped<F> {
        Scoped {
            context: self,
            future: Box::pin(future),
        }
    }

    /// Runs `f` with this context.
    pub fn enter<T>(&mut self, f: impl FnOnce() -> T) -> T {
        let _guard = Guard::swap(self);
        f()
    }
}

/// Puts a context in place, and the one before it back on every way out,
/// a panic's too.
struct Guard<'a>(&'a mut CallContext);

impl<'a> Guard<'a> {
    fn swap(context: &'a mut CallContext) -> Self {
        CURRENT.with(|current| std::mem::swap(&mut *current.borrow_mut(), context));
        Self(context)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        CURRENT.with(|current| std::mem::swap(&mut *current.borrow_mut(), self.0));
    }
}

/// The future of [`CallContext::scope`].
#[derive(Debug)]
pub struct Scoped<F> {
    context: CallContext,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Scoped { context, future } = &mut *self;
        context.enter(|| future.as_mut().poll(cx))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Tracer;
    use std::task::Waker;
    use std::time::Duration;

    fn trace() -> Option<Arc<TraceContext>> {
        Some(Arc::new(Tracer::unrecorded().begin(None)))
    }

    #[test]
    fn the_context_holds_inside_polls_only() {
        let context = CallContext {
            deadline: Some(Deadline::within(Duration::from_secs(1))),
            trace: trace(),
        };
        let inside = std::future::poll_fn(|_| Poll::Ready(CallContext::current()));
        let mut scoped = context.clone().scope(inside);
        let mut cx = Context::from_waker(Waker::noop());
        assert_eq!(Pin::new(&mut scoped).poll(&mut cx), Poll::Ready(context));
        assert_eq!(CallContext::current(), CallContext::default());
    }

    #[test]
    fn a_panic_puts_the_outer_context_back() {
        let mut context = CallContext {
            deadline: None,
            trace: trace(),
        };
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            context.enter(|| panic!("handler"));
        }));
        assert!(caught.is_err());
        assert_eq!(CallContext::current(), CallContext::default());
    }
}
