//! Times that may be compared: taken in one run, in turns.

use std::time::{Duration, Instant};

/// One thing to measure: does its work `turns` times.
pub struct Subject<'a> {
    name: &'static str,
    work: Box<dyn FnMut(u64) + 'a>,
    best: Option<f64>,
}

/// Subjects measured in turns, so that whatever else the machine does meets
/// all of them alike. The least of several rounds counts: noise only adds.
pub struct Contest<'a> {
    rounds: u32,
    round_time: Duration,
    subjects: Vec<Subject<'a>>,
}

impl<'a> Contest<'a> {
    /// Measures each subject `rounds` times, for about `round_time` each.
    pub fn new(rounds: u32, round_time: Duration) -> Self {
        Self {
            rounds,
            round_time,
            subjects: Vec::new(),
        }
    }

    /// Enters a subject, which does its work as many times as it is told.
    pub fn enter(&mut self, name: &'static str, work: impl FnMut(u64) + 'a) {
        self.subjects.push(Subject {
            name,
            work: Box::new(work),
            best: None,
        });
    }

    /// The least time of one turn of each subject, in nanoseconds.
    pub fn run(mut self) -> Vec<(&'static str, f64)> {
        let turns: Vec<u64> = self
            .subjects
            .iter_mut()
            .map(|subject| turns_in(self.round_time, &mut subject.work))
            .collect();
        for _ in 0..self.rounds {
            for (subject, turns) in self.subjects.iter_mut().zip(&turns) {
                let start = Instant::now();
                (subject.work)(*turns);
                let time = start.elapsed().as_nanos() as f64 / *turns as f64;
                subject.best = Some(subject.best.map_or(time, |best| best.min(time)));
            }
        }
        let best = |subject: &Subject<'_>| (subject.name, subject.best.unwrap_or(f64::NAN));
        self.subjects.iter().map(best).collect()
    }
}

/// How many turns take about `time`; warms up on the way. One long run proves
/// little on a busy machine, so the least of three has to take that long.
fn turns_in(time: Duration, work: &mut dyn FnMut(u64)) -> u64 {
    let mut turns = 1;
    loop {
        let takes_long = (0..3).all(|_| {
            let start = Instant::now();
            work(turns);
            start.elapsed() >= time
        });
        if takes_long || turns > 1 << 40 {
            return turns;
        }
        turns *= 2;
    }
}
