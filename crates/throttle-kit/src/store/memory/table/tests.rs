use super::*;

/// The word is the time at which life ends.
struct Plain;

impl Life for Plain {
    fn left_ns(_: u64, word: u64, now_ns: u64) -> i64 {
        word as i64 - now_ns as i64
    }
}

/// A sequence of numbers that are as good as random fingerprints.
fn fingerprint(n: u64) -> u64 {
    let mut z = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn set(table: &Table, fingerprint: u64, word: u64, now: u64) {
    table.update::<Plain, _>(fingerprint, now, |_| Verdict::Set(word, ()));
}

fn read(table: &Table, fingerprint: u64) -> u64 {
    table.update::<Plain, _>(fingerprint, 0, Verdict::Keep)
}

#[test]
fn filling_to_the_brim_loses_few_live_keys() {
    for keys in [10_000, 65_536, 300_000] {
        let table = Table::new(keys);
        for n in 0..keys as u64 {
            set(&table, fingerprint(n), 1000, 1);
        }
        let lost = table.evicted_live();
        assert!(lost <= 3, "{lost} of {keys} were lost");
        let missing = (0..keys as u64).filter(|n| read(&table, fingerprint(*n)) == 0);
        assert_eq!(
            missing.count() as u64,
            lost,
            "the count of lost keys is wrong"
        );
    }
}

/// Each key ends when as many came after it as the table is made for, so that
/// there are always that many alive.
#[test]
fn keys_that_come_and_go_lose_few_that_are_alive() {
    let keys = 65_536;
    let table = Table::new(keys as usize);
    for n in 0..6 * keys {
        set(&table, fingerprint(n), n + keys, n);
    }
    let lost = table.evicted_live();
    // 1 in 100,000 are expected to be lost.
    assert!(lost <= 20, "{lost} of {} were lost", 6 * keys);
}

#[test]
fn a_key_costs_21_bytes() {
    let table = Table::new(1_000_000);
    assert!((21.2..21.5).contains(&(table.bytes() as f64 / 1e6)));
}

#[test]
fn past_keys_make_room_without_being_counted() {
    let table = Table::new(0);
    let capacity = (BUCKETS_MIN * SLOTS) as u64;
    for round in 0..20 {
        for n in 0..capacity / 2 {
            set(
                &table,
                fingerprint(round * capacity + n),
                round * 10 + 10,
                round * 10 + 1,
            );
        }
    }
    assert_eq!(table.evicted_live(), 0);
    assert!(table.live_keys::<Plain>(191) > 0);
    assert_eq!(table.live_keys::<Plain>(10_000), 0);
}

#[test]
fn when_all_are_alive_the_one_that_ends_first_goes() {
    let table = Table::new(0);
    // Keys of the same three buckets: found by trying.
    let homes = |key| table.homes(key).0.map(std::ptr::from_ref);
    let same_homes: Vec<u64> = (0..)
        .map(fingerprint)
        .filter(|key| homes(*key) == homes(0))
        .take(3 * SLOTS + 1)
        .collect();
    for (index, key) in same_homes[..3 * SLOTS].iter().enumerate() {
        set(&table, *key, 1000 + (index as u64 * 7) % 24, 1);
    }
    assert_eq!(table.evicted_live(), 0, "24 keys fit into 24 slots");
    set(&table, same_homes[3 * SLOTS], 5000, 1);
    assert_eq!(table.evicted_live(), 1);
    assert_eq!(
        read(&table, same_homes[0]),
        0,
        "it was to end at 1000, before all others"
    );
    assert!(same_homes[1..].iter().all(|key| read(&table, *key) >= 1000));
}

#[test]
fn every_first_slot_attempt_agrees_with_the_whole_table() {
    let table = Table::new(1000);
    for n in 0..1000 {
        set(&table, fingerprint(n), 500 + n, 1);
    }
    for n in 0..1000 {
        let seen = table.update_first(fingerprint(n), |word| Some(word + 1));
        assert!(seen.is_none_or(|word| word == 501 + n));
        let now = read(&table, fingerprint(n));
        assert_eq!(now, if seen.is_some() { 501 + n } else { 500 + n });
    }
    // A key that is absent is never touched, whatever lies in its slot.
    assert!(table.update_first(fingerprint(5000), |_| Some(1)).is_none());
}

#[test]
fn threads_never_lose_a_charge() {
    let table = Table::new(100);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    for n in 0..10 {
                        table.update::<Plain, _>(fingerprint(n), 1, |word| {
                            Verdict::Set(word.max(1000) + 1, ())
                        });
                    }
                }
            });
        }
    });
    for n in 0..10 {
        assert_eq!(read(&table, fingerprint(n)), 1000 + 4 * 2000);
    }
}
