//! What the calls of one thread saw since somebody looked.

use std::array;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::call::Traffic;
use super::latency::{histogram, micros};
use super::status::Status;

/// Bytes of an error's message that are kept to be shown.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Latencies by status, and what went over the wire. Bounded, however much is
/// recorded.
pub(crate) struct Recorder {
    tallies: [Option<Box<Tally>>; Status::COUNT],
    traffic: Traffic,
}

/// The requests that ended in one way.
#[derive(Clone)]
pub(crate) struct Tally {
    pub(crate) latencies: Histogram<u64>,
    /// What the first of them said, if it failed.
    pub(crate) message: Option<String>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            tallies: array::from_fn(|_| None),
            traffic: Traffic::default(),
        }
    }

    /// Records how one request ended, and how long that took.
    pub(crate) fn record(&mut self, outcome: Result<Traffic, quill::Error>, latency: Duration) {
        let latency = micros(latency);
        match outcome {
            Ok(traffic) => {
                self.traffic.add(traffic);
                self.tally(Status::OK).latencies.saturating_record(latency);
            }
            Err(error) => {
                let tally = self.tally(error.code().into());
                tally.latencies.saturating_record(latency);
                if tally.message.is_none() {
                    tally.message = Some(shortened(error.message()));
                }
            }
        }
    }

    /// Records requests that the run gave up after so long.
    pub(crate) fn give_up(&mut self, waited: Duration) {
        self.tally(Status::UNFINISHED)
            .latencies
            .saturating_record(micros(waited));
    }

    /// Takes in, and empties, what another one recorded. `latencies` gets those
    /// of every status.
    pub(crate) fn drain(&mut self, from: &mut Self, latencies: &mut Histogram<u64>) {
        self.traffic.add(std::mem::take(&mut from.traffic));
        for status in Status::all() {
            let Some(Some(tally)) = from.tallies.get_mut(status.index()) else {
                continue;
            };
            if tally.latencies.is_empty() {
                continue;
            }
            let own = self.tally(status);
            // All histograms have the same bounds.
            let _ = own.latencies.add(&tally.latencies);
            let _ = latencies.add(&tally.latencies);
            if own.message.is_none() {
                own.message = tally.message.take();
            }
            tally.latencies.reset();
        }
    }

    /// The statuses that there were, with their tallies, and what went over the wire.
    pub(crate) fn into_parts(self) -> (Vec<(Status, Tally)>, Traffic) {
        let tallies = Status::all().zip(self.tallies);
        let met = tallies.filter_map(|(status, tally)| Some((status, *tally?)));
        (met.collect(), self.traffic)
    }

    fn tally(&mut self, status: Status) -> &mut Tally {
        let place = &mut self.tallies[status.index()];
        place.get_or_insert_with(|| {
            Box::new(Tally {
                latencies: histogram(),
                message: None,
            })
        })
    }
}

fn shortened(message: &str) -> String {
    let ends = message
        .char_indices()
        .map(|(start, c)| start + c.len_utf8());
    let end = ends.take_while(|end| *end <= MESSAGE_BYTES_MAX).last();
    message[..end.unwrap_or_default()].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quill::Error;

    #[test]
    fn draining_moves_all_and_keeps_the_first_message() {
        let (mut all, mut one) = (Recorder::new(), Recorder::new());
        let mut interval = histogram();
        let traffic = Traffic {
            bytes_sent: 3,
            bytes_received: 4,
            messages_received: 1,
        };
        for round in 1..=2_u64 {
            one.record(Ok(traffic), Duration::from_millis(1));
            let error = Error::unavailable(format!("round {round}"));
            one.record(Err(error), Duration::from_millis(2));
            one.give_up(Duration::from_secs(1));
            all.drain(&mut one, &mut interval);
            assert_eq!(interval.len(), 3 * round);
        }
        all.drain(&mut one, &mut interval);
        assert_eq!(interval.len(), 6);
        let (tallies, traffic) = all.into_parts();
        let told: Vec<_> = tallies
            .iter()
            .map(|(status, tally)| {
                (
                    status.name(),
                    tally.latencies.len(),
                    tally.message.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("ok", 2, None),
                ("unavailable", 2, Some("round 1")),
                ("unfinished", 2, None)
            ]
        );
        assert_eq!((traffic.bytes_sent, traffic.bytes_received), (6, 8));
    }
}
