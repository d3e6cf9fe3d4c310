//! How much is asked of a server.

use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::Duration;

use crate::args::LoadArgs;

/// Calls on one HTTP/2 connection: what servers commonly allow, and what RFC
/// 9113 (section 6.5.2) asks them to allow at least.
const CALLS_PER_CONNECTION: usize = 100;

/// How much is asked of a server, and for how long.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Calls at a time.
    pub(crate) concurrency: usize,
    /// Connections that share them, at least one a thread.
    pub(crate) connections: usize,
    /// Threads that share the connections.
    pub(crate) threads: usize,
    pub(crate) duration: Duration,
    pub(crate) warm_up: Option<Duration>,
    /// After the duration: how long calls may take to end. Then they are
    /// unfinished, which is how a hung server shows.
    pub(crate) grace: Duration,
    /// Requests per second in all; `None` for one after the other.
    pub(crate) rate: Option<f64>,
}

impl Load {
    pub(crate) fn new(args: &LoadArgs) -> Self {
        let concurrency = args.concurrency as usize;
        let processors = available_parallelism().map_or(1, NonZero::get);
        let threads = args.threads.map_or(processors, |threads| threads as usize);
        let threads = threads.min(concurrency);
        let connections = match args.connections {
            Some(connections) => connections as usize,
            None => threads.max(concurrency.div_ceil(CALLS_PER_CONNECTION)),
        };
        let connections = connections.min(concurrency);
        Self {
            concurrency,
            connections,
            threads: threads.min(connections),
            duration: args.duration,
            warm_up: args.warm_up,
            grace: args.grace,
            rate: args.rate,
        }
    }

    /// The part of one thread: how many of so many come to it.
    pub(crate) fn share(&self, all: usize, thread: usize) -> usize {
        let more = usize::from(thread < all % self.threads);
        all / self.threads + more
    }

    /// Requests that are due in this time, where a rate is asked for.
    pub(crate) fn requests_due(&self, duration: Duration) -> Option<u64> {
        let requests = (self.rate? * duration.as_secs_f64()).round();
        // Rates and times are bounded: it is far below 2^53.
        Some((requests as u64).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(concurrency: u32, connections: Option<u32>, threads: Option<u32>) -> Load {
        Load::new(&LoadArgs {
            concurrency,
            duration: Duration::from_secs(10),
            rate: Some(100.0),
            warm_up: None,
            grace: Duration::from_secs(30),
            connections,
            threads,
        })
    }

    #[test]
    fn every_thread_has_a_connection_and_every_connection_a_call() {
        for concurrency in [1, 2, 3, 50, 101, 1000] {
            for connections in [None, Some(1), Some(7), Some(5000)] {
                for threads in [None, Some(1), Some(3), Some(64)] {
                    let load = load(concurrency, connections, threads);
                    assert!(load.threads >= 1, "{load:?}");
                    assert!(load.threads <= load.connections, "{load:?}");
                    assert!(load.connections <= load.concurrency, "{load:?}");
                    let parts = |all| (0..load.threads).map(move |thread| (all, thread));
                    for all in [load.concurrency, load.connections] {
                        let sum: usize = parts(all).map(|(all, n)| load.share(all, n)).sum();
                        assert_eq!(sum, all, "{load:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_rate_is_that_of_all_together() {
        let load = load(50, None, None);
        assert_eq!(load.requests_due(load.duration), Some(1000));
        assert_eq!(load.requests_due(Duration::from_millis(1)), Some(1));
    }
}
