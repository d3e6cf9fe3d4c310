//! The calls of one lane.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use quill::{Error, TransportError};
use quill_exchange::{deadline_exceeded, from_transport};
use quill_transport::{Caller, LaneRequest, Part};
use quill_wire::Side;
use tokio::time::Sleep;

use super::call::Traffic;
use super::pace::Due;
use super::requests::Requests;
use super::shard::Phase;
use super::under_way::UnderWay;

/// Makes the calls of one lane, and records what comes of them.
pub(super) struct LaneCaller {
    pub(super) requests: Arc<Requests>,
    phase: Phase,
    places: Vec<Place>,
    /// Calls that a connection has not taken, to be made on the next.
    again: Vec<UnderWay>,
    /// The next call's number, and what it grows by, where there is no pace.
    next: u64,
    step: u64,
    /// What is due next, while that is awaited.
    due: Option<Pin<Box<dyn Future<Output = Option<Due>> + Send>>>,
    timeout: Option<Duration>,
    /// When a place may have taken too long.
    check: Pin<Box<Sleep>>,
    /// No further call will begin.
    is_over: bool,
    /// Calls that were begun in all, each as often as it was.
    pub(super) begun: u64,
}

/// Where one call after the other is made.
struct Place {
    under_way: Option<UnderWay>,
    /// When the last call ended here, or might have been followed by another.
    freed: Instant,
    /// When it had its answer, while its stream's own end is awaited.
    answered: Option<Instant>,
}

/// How long a stream may stay open behind its call's answer.
const END_TIMEOUT: Duration = Duration::from_secs(5);

impl LaneCaller {
    /// `first` of `step` lanes that share the calls' numbers.
    pub(super) fn new(
        requests: Arc<Requests>,
        phase: Phase,
        places: usize,
        (first, step): (usize, usize),
        timeout: Option<Duration>,
    ) -> Self {
        let freed = Instant::now();
        let place = || Place {
            under_way: None,
            freed,
            answered: None,
        };
        Self {
            requests,
            phase,
            places: std::iter::repeat_with(place).take(places).collect(),
            again: Vec::new(),
            next: first as u64,
            step: step as u64,
            due: None,
            timeout,
            check: Box::pin(tokio::time::sleep(check_every(timeout))),
            is_over: false,
            begun: 0,
        }
    }

    /// A call that waits for a connection; false when none will come.
    pub(super) fn poll_wanted(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.connected();
        if self.again.is_empty() {
            if !ready!(self.poll_begin(0, cx)) {
                return Poll::Ready(false);
            }
            let place = self.places.first_mut();
            self.again
                .extend(place.and_then(|place| place.under_way.take()));
        }
        Poll::Ready(true)
    }

    /// Calls may be made at once: what a place waited for a connection is not the
    /// server's to answer for.
    pub(super) fn connected(&mut self) {
        let freed = Instant::now();
        for place in &mut self.places {
            (place.freed, place.answered) = (freed, None);
        }
    }

    /// Fails the calls that are due, since there is no connection.
    pub(super) fn refuse(&mut self, error: &TransportError, cx: &mut Context<'_>) {
        for place in 0..self.places.len() {
            if self.poll_begin(place, cx) != Poll::Ready(true) {
                break;
            }
            let error = from_transport(error.clone(), Side::Client);
            self.record(place, Err(error));
        }
    }

    /// What is due next: its number, and since when.
    fn poll_due(&mut self, freed: Instant, cx: &mut Context<'_>) -> Poll<Option<Due>> {
        let Some(pace) = &self.phase.pace else {
            let due = Due {
                number: self.next,
                at: freed,
            };
            self.next = self.next.wrapping_add(self.step);
            return Poll::Ready((freed < self.phase.end).then_some(due));
        };
        if self.due.is_none() {
            if let Some(due) = pace.try_next() {
                return Poll::Ready(due);
            }
            let pace = Arc::clone(pace);
            self.due = Some(Box::pin(async move { pace.next().await }));
        }
        let Some(waiting) = &mut self.due else {
            return Poll::Pending;
        };
        let due = ready!(waiting.as_mut().poll(cx));
        self.due = None;
        Poll::Ready(due)
    }

    /// Records how the call in this place ended.
    fn record(&mut self, place: usize, outcome: Result<Traffic, Error>) {
        let Some(place) = self.places.get_mut(place) else {
            return;
        };
        let Some(call) = place.under_way.take() else {
            return;
        };
        let now = Instant::now();
        place.freed = now;
        let latency = now.saturating_duration_since(call.since);
        self.phase
            .recorded(|recorder| recorder.record(outcome, latency));
    }

    /// The exchange in this place broke.
    fn fail(&mut self, index: usize, error: TransportError) {
        let place = self.places.get_mut(index);
        let Some(call) = place.and_then(|place| place.under_way.as_mut()) else {
            return;
        };
        if error.maybe_processed() || call.is_again {
            self.record(index, Err(from_transport(error, Side::Client)));
            return;
        }
        call.is_again = true;
        let call = self
            .places
            .get_mut(index)
            .and_then(|place| place.under_way.take());
        self.again.extend(call);
    }
}

impl Caller for LaneCaller {
    fn poll_begin(&mut self, index: usize, cx: &mut Context<'_>) -> Poll<bool> {
        let Some(place) = self.places.get_mut(index) else {
            return Poll::Ready(false);
        };
        let freed = place.freed;
        if let Some(mut call) = self.again.pop() {
            call.made = Instant::now();
            place.under_way = Some(call);
            self.begun += 1;
            return Poll::Ready(true);
        }
        if self.is_over {
            return Poll::Ready(false);
        }
        let Some(due) = ready!(self.poll_due(freed, cx)) else {
            self.is_over = true;
            return Poll::Ready(false);
        };
        let made = match &self.phase.pace {
            Some(_) => Instant::now(),
            None => due.at,
        };
        let bytes_sent = self
            .requests
            .of_call(due.number)
            .map(|request| request.message_bytes);
        let answer = (self.requests.decoder(), self.requests.kind());
        let bytes_sent = bytes_sent.unwrap_or_default();
        let call = UnderWay::new(due.number, due.at, made, answer, bytes_sent);
        if let Some(place) = self.places.get_mut(index) {
            place.under_way = Some(call);
        }
        self.begun += 1;
        Poll::Ready(true)
    }

    fn request(&self, place: usize) -> Option<&LaneRequest> {
        let number = self.places.get(place)?.under_way.as_ref()?.number;
        Some(&self.requests.of_call(number)?.request)
    }

    fn take(&mut self, index: usize, part: Part) -> bool {
        let error_bytes_max = self.requests.answer_bytes_max();
        let place = self.places.get_mut(index);
        let Some(place) = place else {
            return false;
        };
        let is_end = matches!(part, Part::End(_) | Part::Failed(_));
        let Some(call) = &mut place.under_way else {
            if is_end && place.answered.take().is_some() {
                place.freed = Instant::now();
            }
            return true;
        };
        let outcome = match part {
            Part::Head(head) => call.head(&head, error_bytes_max),
            Part::Data(bytes) => call.feed(bytes),
            Part::End(trailers) => call.end(trailers),
            Part::Failed(error) => {
                self.fail(index, error);
                return false;
            }
        };
        let goes_on = !call.is_broken;
        if let Some(outcome) = outcome {
            self.record(index, outcome);
            if let Some(place) = self.places.get_mut(index) {
                place.answered = (goes_on && !is_end).then_some(place.freed);
            }
        }
        goes_on
    }

    fn stand_still(&mut self) {
        // Another lane has it.
        self.due = None;
    }

    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        loop {
            ready!(self.check.as_mut().poll(cx));
            let now = Instant::now();
            let next = now + check_every(self.timeout);
            let places = self.places.iter().enumerate();
            let first = places
                .filter_map(|(index, place)| Some((place.late_at(self.timeout)?, index)))
                .min();
            match first {
                Some((due, index)) if due <= now => {
                    self.record(index, Err(deadline_exceeded()));
                    if let Some(place) = self.places.get_mut(index) {
                        (place.freed, place.answered) = (now, None);
                    }
                    return Poll::Ready(index);
                }
                Some((due, _)) => self.check.as_mut().reset(due.min(next).into()),
                None => self.check.as_mut().reset(next.into()),
            }
        }
    }
}

/// A call or an end that is awaited from now on is not late before that.
fn check_every(timeout: Option<Duration>) -> Duration {
    timeout.map_or(END_TIMEOUT, |timeout| timeout.min(END_TIMEOUT))
}

impl Place {
    /// When it will have taken too long, with calls that may take `timeout`.
    fn late_at(&self, timeout: Option<Duration>) -> Option<Instant> {
        match (&self.under_way, self.answered) {
            (Some(call), _) => Some(call.made + timeout?),
            (None, answered) => Some(answered? + END_TIMEOUT),
        }
    }
}

/// Calls that are dropped before their end count, if the run has given them up.
impl Drop for LaneCaller {
    fn drop(&mut self) {
        if !self.phase.is_given_up() {
            return;
        }
        let under_way = self
            .places
            .iter()
            .filter_map(|place| place.under_way.as_ref());
        for call in under_way.chain(&self.again) {
            let waited = call.since.elapsed();
            self.phase.recorded(|recorder| recorder.give_up(waited));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Mutex;

    use bytes::Bytes;
    use quill::{Format, Metadata, Method, MethodKind, Protocol};
    use quill_core::ResponseHead;
    use quill_transport::Endpoint;
    use quill_wire::WireOptions;
    use tokio::sync::watch;

    use super::super::call::BenchCall;
    use super::super::recorder::Recorder;
    use super::super::shard::Stop;
    use super::*;

    fn caller(places: usize) -> LaneCaller {
        let call = BenchCall {
            method: Method::named("a.A", "B", MethodKind::ServerStreaming),
            messages: [Bytes::from_static(b"{}")].into(),
            metadata: Metadata::new(),
            timeout: None,
        };
        let endpoint = Endpoint::parse("http://localhost").unwrap();
        let (options, format) = (WireOptions::default(), Format::Json);
        let requests =
            Requests::encode(&call, Protocol::Quill, format, options, endpoint, None).unwrap();
        let phase = Phase {
            end: Instant::now() + Duration::from_secs(600),
            pace: None,
            recorder: Arc::new(Mutex::new(Recorder::new())),
            stop: watch::channel(Stop::NotYet).1,
        };
        LaneCaller::new(Arc::new(requests), phase, places, (0, 1), None)
    }

    /// How many calls ended in each way since the last look.
    fn recorded(caller: &LaneCaller) -> Vec<u64> {
        let mut recorder = caller.phase.recorder.lock().unwrap();
        let (tallies, _) = std::mem::replace(&mut *recorder, Recorder::new()).into_parts();
        let calls = tallies.iter().map(|(_, tally)| tally.latencies.len());
        calls.collect()
    }

    #[tokio::test]
    async fn a_place_is_free_again_though_its_stream_never_ends() {
        let mut caller = caller(2);
        for place in 0..2 {
            assert!(poll_fn(|cx| caller.poll_begin(place, cx)).await);
            let mut head = ResponseHead::new(200);
            head.headers
                .append("content-type", "application/quill-stream+json");
            assert!(caller.take(place, Part::Head(head)));
            let end = Bytes::from_static(b"\0\x02");
            assert!(caller.take(place, Part::Data(end)));
        }
        assert_eq!(recorded(&caller), [2], "they have their answers");
        assert!(caller.take(0, Part::End(None)));
        // The other one's stream stays open.
        caller.places[1].answered = Some(Instant::now() - END_TIMEOUT);
        caller.check.as_mut().reset(Instant::now().into());
        assert_eq!(poll_fn(|cx| caller.poll_late(cx)).await, 1);
        let is_next_late = poll_fn(|cx| Poll::Ready(caller.poll_late(cx).is_ready())).await;
        assert!(!is_next_late);
        assert!(recorded(&caller).is_empty(), "it is no call's failure");
        assert!(caller.places[1].freed.elapsed() < END_TIMEOUT);
    }

    #[tokio::test]
    async fn what_waited_for_a_connection_is_refused_or_counts_from_there() {
        let mut caller = caller(2);
        let long_ago = Instant::now() - Duration::from_secs(60);
        caller
            .places
            .iter_mut()
            .for_each(|place| place.freed = long_ago);
        assert!(poll_fn(|cx| caller.poll_wanted(cx)).await);
        assert!(
            caller.again[0].since > long_ago,
            "the old connection's time"
        );
        let error = TransportError::new(quill::TransportErrorKind::Connect, "nobody listens");
        poll_fn(|cx| {
            caller.refuse(&error, cx);
            Poll::Ready(())
        })
        .await;
        assert_eq!(recorded(&caller), [2]);
        caller.is_over = true;
        assert!(
            !poll_fn(|cx| caller.poll_wanted(cx)).await,
            "none is dialed"
        );
    }
}
