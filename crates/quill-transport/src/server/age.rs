//! How old a connection may become.

use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::options::ServerOptions;

/// What a connection has become too old for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aged {
    /// For new exchanges: its peer is told to go.
    Leave,
    /// For those that are open, too: it is cut.
    Cut,
}

/// When a connection that is made now has become too old; `None` for never.
pub(super) fn due(options: &ServerOptions) -> Option<Instant> {
    let age = options.max_connection_age?;
    Some(Instant::now() + drawn(age, RandomState::new().hash_one(0)))
}

/// This age, give or take a tenth, as `random` has it.
fn drawn(age: Duration, random: u64) -> Duration {
    let share = (random >> 32) as f64 / f64::from(u32::MAX);
    age.mul_f64(0.9 + 0.2 * share)
}

/// The age of a connection that looks after it by a timer of its own.
#[derive(Debug)]
pub(super) struct Age {
    /// `None` once nothing more is due.
    timer: Option<Pin<Box<Sleep>>>,
    has_left: bool,
    grace: Option<Duration>,
}

impl Age {
    /// Of a connection that is made now; `None` where it may become as old as it likes.
    pub(super) fn new(options: &ServerOptions) -> Option<Self> {
        let due = due(options)?;
        Some(Self {
            timer: Some(Box::pin(sleep_until(due))),
            has_left: false,
            grace: options.max_connection_age_grace,
        })
    }

    /// Waits for what is due next, each once.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Aged> {
        let Some(timer) = &mut self.timer else {
            return Poll::Pending;
        };
        ready!(timer.as_mut().poll(cx));
        if std::mem::replace(&mut self.has_left, true) {
            self.timer = None;
            return Poll::Ready(Aged::Cut);
        }
        match self.grace {
            Some(grace) => {
                timer.as_mut().reset(Instant::now() + grace);
                // Who is told to leave may not ask again before it is woken.
                let _ = timer.as_mut().poll(cx);
            }
            None => self.timer = None,
        }
        Poll::Ready(Aged::Leave)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[test]
    fn ages_differ_by_a_tenth_each_way() {
        let age = Duration::from_secs(100);
        let within = Duration::from_secs(90)..=Duration::from_secs(110);
        assert_eq!(drawn(age, 0), *within.start());
        assert_eq!(drawn(age, u64::MAX), *within.end());
        let drawn: Vec<_> = (0..100)
            .map(|_| drawn(age, RandomState::new().hash_one(0)))
            .collect();
        assert!(drawn.iter().all(|age| within.contains(age)));
        assert!(drawn.iter().any(|age| *age != drawn[0]), "they spread");
    }

    #[tokio::test(start_paused = true)]
    async fn it_leaves_at_its_age_and_is_cut_after_the_grace() {
        let mut options = ServerOptions::default();
        assert!(Age::new(&options).is_none());
        options.max_connection_age = Some(Duration::from_secs(100));
        options.max_connection_age_grace = Some(Duration::from_secs(7));
        let begun = Instant::now();
        let mut age = Age::new(&options).unwrap();
        assert_eq!(poll_fn(|cx| age.poll(cx)).await, Aged::Leave);
        let left = begun.elapsed().as_secs_f64();
        assert!((90.0..=110.1).contains(&left), "{left}");
        assert_eq!(poll_fn(|cx| age.poll(cx)).await, Aged::Cut);
        let cut = begun.elapsed().as_secs_f64() - left;
        assert!((7.0..=7.1).contains(&cut), "{cut}");
    }
}
