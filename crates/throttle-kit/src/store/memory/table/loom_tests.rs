//! Every interleaving of two threads on a table of single-slot buckets.
//!
//! `RUSTFLAGS="--cfg throttle_loom" cargo test -p throttle-kit --release --lib loom`
//!
//! A word is the time at which a key's life ends, one unit per charge; all keys
//! used here have the same three slots.

use loom::sync::Arc;
use loom::thread;

use super::*;

struct Plain;

impl Life for Plain {
    fn left_ns(_: u64, word: u64, now_ns: u64) -> i64 {
        word as i64 - now_ns as i64
    }
}

const NOW: u64 = 100;
const A: u64 = 1;
const B: u64 = 2;
const C: u64 = 3;
const D: u64 = 4;

fn table() -> Table {
    Table::with_buckets(3)
}

/// Adds `cells` to what the key owes, if that stays within `burst`.
fn charge(table: &Table, key: u64, cells: u64, burst: u64) -> bool {
    let next = |word: u64| {
        let new = word.max(NOW) + cells;
        (new <= NOW + burst).then_some(new)
    };
    if table.update_first(key, next).is_some() {
        return true;
    }
    table.update::<Plain, _>(key, NOW, |word| match next(word) {
        Some(new) => Verdict::Set(new, true),
        None => Verdict::Keep(false),
    })
}

fn give_back(table: &Table, key: u64, cells: u64) {
    table.update::<Plain, _>(key, NOW, |word| match word {
        0 => Verdict::Keep(()),
        _ => Verdict::Set(word.max(NOW + cells) - cells, ()),
    });
}

/// What the key owes, or `None` if it is not there.
fn debt(table: &Table, key: u64) -> Option<u64> {
    let slots = || table.buckets.iter().flat_map(Bucket::slots);
    let found = slots().filter(|slot| slot.holds(key)).count();
    assert!(found <= 1, "a key has two slots");
    let slot = slots().find(|slot| slot.holds(key))?;
    Some(slot.word.load(Ordering::Acquire).max(NOW) - NOW)
}

fn put(table: &Table, key: u64, word: u64) {
    table.update::<Plain, _>(key, 0, |_| Verdict::Set(word, ()));
}

fn race(
    set_up: impl Fn(&Table) + Sync + Send + 'static,
    one: impl Fn(&Table) -> bool + Sync + Send + Copy + 'static,
    two: impl Fn(&Table) -> bool + Sync + Send + Copy + 'static,
    check: impl Fn(&Table, bool, bool) + Sync + Send + 'static,
) {
    loom::model(move || {
        let table = Arc::new(table());
        set_up(&table);
        let other = Arc::clone(&table);
        let first = thread::spawn(move || one(&other));
        let second = two(&table);
        let first = first.join().unwrap();
        check(&table, first, second);
    });
}

#[test]
fn loom_claim_one_new_key_has_one_budget() {
    race(
        |_| (),
        |table| charge(table, A, 1, 1),
        |table| charge(table, A, 1, 1),
        |table, first, second| {
            assert!(
                first ^ second,
                "a budget of one admitted {first} and {second}"
            );
            assert_eq!(debt(table, A), Some(1));
        },
    );
}

#[test]
fn loom_claim_two_new_keys_both_stay() {
    race(
        |_| (),
        |table| charge(table, A, 1, 1),
        |table| charge(table, B, 1, 1),
        |table, first, second| {
            assert!(first && second);
            assert_eq!((debt(table, A), debt(table, B)), (Some(1), Some(1)));
            assert_eq!(table.evicted_live(), 0);
        },
    );
}

#[test]
fn loom_reclaim_a_past_key_races_with_its_own_check() {
    race(
        |table| {
            put(table, A, NOW - 50);
            put(table, C, NOW + 50);
            put(table, D, NOW + 60);
        },
        |table| charge(table, A, 1, 9),
        |table| charge(table, B, 2, 9),
        |table, first, second| {
            assert!(first && second);
            // Either one is there, with its own charge, or both are and C went.
            assert!(debt(table, B).is_none_or(|debt| debt == 2));
            assert!(debt(table, A).is_none_or(|debt| debt == 1));
            assert!(debt(table, A).is_some() || debt(table, B).is_some());
        },
    );
}

#[test]
fn loom_evict_a_live_key_races_with_its_own_check() {
    race(
        |table| {
            put(table, A, NOW + 3);
            put(table, C, NOW + 50);
            put(table, D, NOW + 60);
        },
        |table| charge(table, A, 1, 9),
        |table| charge(table, B, 2, 9),
        |table, first, second| {
            assert!(first && second);
            assert!(debt(table, B).is_none_or(|debt| debt == 2));
            // Charged before the eviction it is gone; after it, new.
            assert!(debt(table, A).is_none_or(|debt| debt == 1));
            assert!(table.evicted_live() >= 1);
        },
    );
}

#[test]
fn loom_refund_races_with_a_check() {
    race(
        |table| put(table, A, NOW + 3),
        |table| charge(table, A, 2, 4),
        |table| {
            give_back(table, A, 1);
            true
        },
        |table, charged, _| {
            assert_eq!(debt(table, A), Some(if charged { 4 } else { 2 }));
        },
    );
}

#[test]
fn loom_refund_races_with_an_eviction() {
    race(
        |table| {
            put(table, A, NOW + 3);
            put(table, C, NOW + 50);
            put(table, D, NOW + 60);
        },
        |table| charge(table, B, 2, 9),
        |table| {
            give_back(table, A, 1);
            true
        },
        |table, _, _| {
            assert_eq!(
                debt(table, B),
                Some(2),
                "another key's refund reached this one"
            );
        },
    );
}
