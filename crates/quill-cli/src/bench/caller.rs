//! The calls of one lane.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
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
    limit: Option<Limit>,
    /// No further call will begin.
    is_over: bool,
    /// Calls that were begun in all.
    pub(super) begun: u64,
}

/// Where one call after the other is made.
struct Place {
    under_way: Option<UnderWay>,
    /// When the last call ended here.
    freed: Instant,
}

/// How long a call may take.
struct Limit {
    timeout: Duration,
    /// When one may have taken as long.
    check: Pin<Box<Sleep>>,
}

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
        };
        Self {
            requests,
            phase,
            places: std::iter::repeat_with(place).take(places).collect(),
            again: Vec::new(),
            next: first as u64,
            step: step as u64,
            due: None,
            limit: timeout.map(|timeout| Limit {
                timeout,
                check: Box::pin(tokio::time::sleep(timeout)),
            }),
            is_over: false,
            begun: 0,
        }
    }

    /// Fails the calls that are due, of which there will be one at least, since there
    /// is no connection; false when none is to come.
    pub(super) fn poll_refuse(
        &mut self,
        error: &TransportError,
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        for place in 0..self.places.len() {
            match self.poll_begin(place, cx) {
                Poll::Ready(true) => {
                    let error = from_transport(error.clone(), Side::Client);
                    self.record(place, Err(error));
                }
                Poll::Ready(false) => return Poll::Ready(place > 0),
                Poll::Pending if place == 0 => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(true)
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
        let due = std::task::ready!(waiting.as_mut().poll(cx));
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
        if let Some(call) = self.again.pop() {
            place.under_way = Some(call);
            return Poll::Ready(true);
        }
        if self.is_over {
            return Poll::Ready(false);
        }
        let Some(due) = std::task::ready!(self.poll_due(freed, cx)) else {
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
        let Some(call) = place.and_then(|place| place.under_way.as_mut()) else {
            // It has its answer, and the stream's own end is awaited.
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
        }
        goes_on
    }

    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        let Some(limit) = &mut self.limit else {
            return Poll::Pending;
        };
        loop {
            std::task::ready!(limit.check.as_mut().poll(cx));
            let now = Instant::now();
            let made = |place: &Place| Some(place.under_way.as_ref()?.made);
            let places = self.places.iter().enumerate();
            let first = places
                .filter_map(|(index, place)| Some((made(place)?, index)))
                .min();
            let (made, late) = first.map_or((now, None), |(made, index)| (made, Some(index)));
            let due = made + limit.timeout;
            if let Some(index) = late.filter(|_| due <= now) {
                self.record(index, Err(deadline_exceeded()));
                return Poll::Ready(index);
            }
            limit.check.as_mut().reset(due.into());
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
