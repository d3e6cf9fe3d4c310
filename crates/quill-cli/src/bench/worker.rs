//! Calls made by a client, one after the other.

use std::sync::Arc;
use std::time::Instant;

use quill::QuillClient;

use super::call::BenchCall;
use super::shard::Phase;

/// Makes one call after the other.
pub(super) struct Worker {
    pub(super) call: Arc<BenchCall>,
    pub(super) client: QuillClient,
    pub(super) phase: Phase,
}

impl Worker {
    pub(super) async fn work(self, first: u64, step: u64) {
        if let Some(pace) = &self.phase.pace {
            while let Some(due) = pace.next().await {
                self.measure(due.number, due.at).await;
            }
            return;
        }
        let mut number = first;
        let mut now = Instant::now();
        while now < self.phase.end {
            now = self.measure(number, now).await;
            number += step;
        }
    }

    /// Makes a call that counts from `since`; when it ended.
    async fn measure(&self, number: u64, since: Instant) -> Instant {
        let mut under_way = UnderWay {
            phase: &self.phase,
            since: Some(since),
        };
        let outcome = self.call.make(&self.client, number).await;
        under_way.since = None;
        let now = Instant::now();
        let latency = now.saturating_duration_since(since);
        self.phase
            .recorded(|recorder| recorder.record(outcome, latency));
        now
    }
}

/// A call that is dropped before its end counts, if the run has given it up.
struct UnderWay<'a> {
    phase: &'a Phase,
    since: Option<Instant>,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(since) = self.since
            && self.phase.is_given_up()
        {
            self.phase
                .recorded(|recorder| recorder.give_up(since.elapsed()));
        }
    }
}
