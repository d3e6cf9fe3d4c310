//! When a circuit opens and closes, by a clock that is handed in.

use std::time::Duration;

use tokio::time::Instant;

/// The parts of a window, each of which is forgotten as a whole.
const BUCKETS: u32 = 10;

/// What a circuit breaker does with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    /// They go through.
    Closed,
    /// They fail at once.
    Open,
    /// One of them is made, to see whether the server works again; the others
    /// fail at once.
    HalfOpen,
}

/// When a circuit opens, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) failure_ratio: f64,
    pub(super) calls_min: u32,
    pub(super) window: Duration,
    pub(super) open_for: Duration,
}

/// A call that may be made, under the circuit as it was then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    /// What came of calls that an earlier state let through says nothing now.
    turn: u64,
    is_probe: bool,
}

#[derive(Debug)]
pub(super) struct Circuit {
    phase: Phase,
    turn: u64,
    counts: [Counts; BUCKETS as usize],
    /// When the newest bucket began, and which it is.
    since: Instant,
    newest: usize,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Closed,
    Open(Instant),
    Probing,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    calls: u32,
    failures: u32,
}

impl Circuit {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            phase: Phase::Closed,
            turn: 0,
            counts: [Counts::default(); BUCKETS as usize],
            since: now,
            newest: 0,
        }
    }

    pub(super) fn state(&self) -> BreakerState {
        match self.phase {
            Phase::Closed => BreakerState::Closed,
            Phase::Open(_) => BreakerState::Open,
            Phase::Probing => BreakerState::HalfOpen,
        }
    }

    /// Lets a call through; else how long it is until one will be, as far as
    /// that is known.
    pub(super) fn admit(&mut self, now: Instant) -> Result<Ticket, Duration> {
        match self.phase {
            Phase::Closed => {}
            Phase::Open(until) if now < until => return Err(until - now),
            Phase::Open(_) => self.enter(Phase::Probing),
            Phase::Probing => return Err(Duration::ZERO),
        }
        Ok(Ticket {
            turn: self.turn,
            is_probe: matches!(self.phase, Phase::Probing),
        })
    }

    /// Learns how a call ended that was let through.
    pub(super) fn ended(&mut self, ticket: Ticket, failed: bool, rules: &Rules, now: Instant) {
        if ticket.turn != self.turn {
            return;
        }
        if ticket.is_probe {
            if failed {
                self.enter(Phase::Open(now + rules.open_for));
            } else {
                self.counts = Default::default();
                self.enter(Phase::Closed);
            }
            return;
        }
        self.move_on(rules, now);
        if let Some(counts) = self.counts.get_mut(self.newest) {
            counts.calls = counts.calls.saturating_add(1);
            counts.failures = counts.failures.saturating_add(failed.into());
        }
        if failed && self.is_too_much(rules) {
            self.enter(Phase::Open(now + rules.open_for));
        }
    }

    /// A call that was let through was given up without an end: had it been the
    /// probe, the next call is.
    pub(super) fn left(&mut self, ticket: Ticket, now: Instant) {
        if ticket.turn == self.turn && ticket.is_probe {
            self.enter(Phase::Open(now));
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.turn += 1;
    }

    /// Forgets what is older than the window.
    fn move_on(&mut self, rules: &Rules, now: Instant) {
        let width = (rules.window / BUCKETS).max(Duration::from_millis(1));
        let age = now.saturating_duration_since(self.since);
        let passed = age.as_nanos() / width.as_nanos();
        if passed >= BUCKETS.into() {
            self.counts = Default::default();
            self.since = now;
            return;
        }
        for _ in 0..passed {
            self.newest = (self.newest + 1) % self.counts.len();
            if let Some(counts) = self.counts.get_mut(self.newest) {
                *counts = Counts::default();
            }
            self.since += width;
        }
    }

    fn is_too_much(&self, rules: &Rules) -> bool {
        let calls: u32 = self.counts.iter().map(|counts| counts.calls).sum();
        let failures: u32 = self.counts.iter().map(|counts| counts.failures).sum();
        calls >= rules.calls_min && f64::from(failures) >= f64::from(calls) * rules.failure_ratio
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        failure_ratio: 0.5,
        calls_min: 4,
        window: Duration::from_secs(10),
        open_for: Duration::from_secs(5),
    };

    fn call(circuit: &mut Circuit, failed: bool, now: Instant) {
        let ticket = circuit.admit(now).expect("it is let through");
        circuit.ended(ticket, failed, &RULES, now);
    }

    fn opened(now: Instant) -> Circuit {
        let mut circuit = Circuit::new(now);
        (0..4).for_each(|_| call(&mut circuit, true, now));
        assert_eq!(circuit.state(), BreakerState::Open);
        circuit
    }

    #[test]
    fn it_opens_at_the_ratio_once_there_are_enough_calls() {
        let now = Instant::now();
        let mut circuit = Circuit::new(now);
        for failed in [true, true, false] {
            call(&mut circuit, failed, now);
            assert_eq!(circuit.state(), BreakerState::Closed);
        }
        call(&mut circuit, false, now);
        assert_eq!(
            circuit.state(),
            BreakerState::Closed,
            "a success opens nothing"
        );
        call(&mut circuit, true, now);
        assert_eq!(circuit.state(), BreakerState::Open);
        assert_eq!(
            circuit.admit(now + Duration::from_secs(2)),
            Err(Duration::from_secs(3))
        );
    }

    #[test]
    fn what_is_older_than_the_window_is_forgotten() {
        let now = Instant::now();
        let mut circuit = Circuit::new(now);
        (0..3).for_each(|_| call(&mut circuit, true, now));
        let later = now + Duration::from_secs(9);
        call(&mut circuit, false, later);
        assert_eq!(circuit.state(), BreakerState::Closed);
        // The three failures have gone, one call is left of the window.
        let later = now + Duration::from_secs(12);
        (0..2).for_each(|_| call(&mut circuit, true, later));
        assert_eq!(circuit.state(), BreakerState::Closed);
        call(&mut circuit, true, later);
        assert_eq!(circuit.state(), BreakerState::Open);
        let mut circuit = Circuit::new(now);
        (0..3).for_each(|_| call(&mut circuit, true, now));
        call(&mut circuit, true, now + Duration::from_secs(1000));
        assert_eq!(circuit.state(), BreakerState::Closed);
    }

    #[test]
    fn half_open_lets_one_through_and_its_end_decides() {
        let begun = Instant::now();
        let now = begun + RULES.open_for;
        for failed in [false, true] {
            let mut circuit = opened(begun);
            let probe = circuit.admit(now).expect("the probe");
            assert_eq!(circuit.state(), BreakerState::HalfOpen);
            assert!((0..8).all(|_| circuit.admit(now).is_err()));
            circuit.ended(probe, failed, &RULES, now);
            let expected = if failed {
                BreakerState::Open
            } else {
                BreakerState::Closed
            };
            assert_eq!(circuit.state(), expected);
            assert_eq!(circuit.admit(now).is_err(), failed);
        }
    }

    #[test]
    fn a_probe_that_is_given_up_makes_room_for_the_next() {
        let begun = Instant::now();
        let now = begun + RULES.open_for;
        let mut circuit = opened(begun);
        let probe = circuit.admit(now).expect("the probe");
        circuit.left(probe, now);
        assert_eq!(circuit.state(), BreakerState::Open);
        let next = circuit.admit(now).expect("the next probe");
        assert!(circuit.admit(now).is_err());
        // The first one's end comes too late to count.
        circuit.ended(probe, true, &RULES, now);
        circuit.ended(next, false, &RULES, now);
        assert_eq!(circuit.state(), BreakerState::Closed);
    }

    #[test]
    fn calls_of_an_earlier_turn_say_nothing() {
        let now = Instant::now();
        let mut circuit = Circuit::new(now);
        let early = circuit.admit(now).expect("closed");
        (0..4).for_each(|_| call(&mut circuit, true, now));
        circuit.ended(early, false, &RULES, now);
        assert_eq!(circuit.state(), BreakerState::Open);
    }
}
