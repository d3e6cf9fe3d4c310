//! Threads that each have a runtime of their own.

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::thread;

use tokio::runtime::{Builder, EnterGuard, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A thread with a runtime, until this is dropped and what was spawned on it has ended.
#[derive(Debug)]
pub(super) struct Core {
    runtime: Handle,
    alive: oneshot::Sender<()>,
}

impl Core {
    /// Starts a thread of this name.
    pub(super) fn start(name: String) -> io::Result<Self> {
        let (alive, is_over) = oneshot::channel();
        let (tell, told) = mpsc::sync_channel(1);
        thread::Builder::new().name(name).spawn(move || {
            match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => {
                    let _ = tell.send(Ok(runtime.handle().clone()));
                    // Nothing is ever sent: it ends when nobody could any more.
                    let _ = runtime.block_on(is_over);
                }
                Err(error) => {
                    let _ = tell.send(Err(error));
                }
            }
        })?;
        let gone = |_| io::Error::other("a thread ended before it had begun");
        let runtime = told.recv().map_err(gone)??;
        Ok(Self { runtime, alive })
    }

    /// Has sockets registered with this runtime while the guard is there.
    pub(super) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Runs `work` there, and ends the thread behind it.
    pub(super) fn spawn<T: Send + 'static>(
        self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let alive = self.alive;
        self.runtime.spawn(async move {
            let made = work.await;
            drop(alive);
            made
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_is_done_on_the_thread_and_ends_with_it() {
        let core = Core::start("a-core".to_owned()).unwrap();
        let name = core.spawn(async { thread::current().name().map(str::to_owned) });
        assert_eq!(name.await.unwrap().as_deref(), Some("a-core"));
        let core = Core::start("a-core".to_owned()).unwrap();
        let (held, is_over) = oneshot::channel::<()>();
        let work = core.spawn(async move {
            let _held = held;
            std::future::pending::<()>().await;
        });
        work.abort();
        assert!(is_over.await.is_err());
    }
}
