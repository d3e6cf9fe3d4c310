//! Answers on HTTP/2 that their peers do not take.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep_until};

tokio::task_local! {
    static CURRENT: Delivery;
}

/// Where the answer of one exchange stands: some of it waits for room in the
/// peer's window since this time, or the window is not what is waited for.
///
/// Hyper gives a stream's task no word of its window. But it asks a body for more
/// only once what it got has found room; so a body that was asked, had something
/// to give and is not asked again waits for the peer.
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery(Arc<Mutex<Option<Instant>>>);

impl Delivery {
    /// That of the exchange whose task runs; none on HTTP/1.1, where the socket
    /// itself tells.
    pub(super) fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// The body gave some of itself.
    pub(super) fn given(&self) {
        *self.lock() = Some(Instant::now());
    }

    /// The body is asked for more.
    pub(super) fn asked(&self) {
        *self.lock() = None;
    }

    fn since(&self) -> Option<Instant> {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the exchanges of a connection, each in a task that ends when its peer
/// takes nothing of the answer for too long. The stream is reset then; others
/// on the connection go on.
#[derive(Clone, Debug)]
pub(super) struct Exchanges {
    write_timeout: Option<Duration>,
}

impl Exchanges {
    pub(super) fn new(write_timeout: Option<Duration>) -> Self {
        Self { write_timeout }
    }
}

impl<F> hyper::rt::Executor<F> for Exchanges
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, exchange: F) {
        let Some(timeout) = self.write_timeout else {
            tokio::spawn(exchange);
            return;
        };
        let delivery = Delivery::default();
        let watched = WatchedExchange {
            exchange,
            delivery: delivery.clone(),
            timeout,
            timer: None,
        };
        tokio::spawn(CURRENT.scope(delivery, watched));
    }
}

pin_project! {
    struct WatchedExchange<F> {
        #[pin]
        exchange: F,
        delivery: Delivery,
        timeout: Duration,
        timer: Option<Pin<Box<Sleep>>>,
    }
}

impl<F: Future<Output = ()>> Future for WatchedExchange<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.project();
        if this.exchange.poll(cx).is_ready() {
            return Poll::Ready(());
        }
        let Some(since) = this.delivery.since() else {
            return Poll::Pending;
        };
        let due = since + *this.timeout;
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        ready!(timer.as_mut().poll(cx));
        tracing::debug!("a stream is reset: its peer takes nothing of the answer");
        Poll::Ready(())
    }
}
