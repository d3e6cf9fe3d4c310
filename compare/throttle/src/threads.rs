//! Two threads at one limiter.

use std::hint::black_box;
use std::thread;

use crate::keyed::{KeyText, Keyed, Owed};

/// Keys of each thread where they have keys of their own.
const KEYS: u64 = 1000;

/// Which keys the threads check.
#[derive(Debug, Clone, Copy)]
pub enum Shared {
    /// Both the same one.
    Same,
    /// Each a thousand of its own, in turn.
    Different,
}

/// Has two threads do `turns` checks each.
pub fn two_threads<L: Keyed>(shared: Shared) -> impl FnMut(u64) {
    let limiter = L::new(Owed::Briefly, 65_536);
    let keys: [Vec<KeyText>; 2] = match shared {
        Shared::Same => [vec![KeyText::new(7)], vec![KeyText::new(7)]],
        Shared::Different => {
            [0, KEYS].map(|first| (first..first + KEYS).map(KeyText::new).collect())
        }
    };
    move |turns| {
        thread::scope(|scope| {
            for keys in &keys {
                let limiter = &limiter;
                scope.spawn(move || {
                    for key in keys.iter().cycle().take(turns as usize) {
                        assert!(limiter.check(black_box(key)));
                    }
                });
            }
        });
    }
}
