//! What is counted.

/// Does what callgrind is to count. It counts nothing else: making a clock, say, measures
/// the counter's rate, and takes as many instructions as that takes time.
#[inline(never)]
pub fn counted<T>(run: impl FnOnce() -> T) -> T {
    run()
}

/// Counts `n` turns, each of which is told its number.
pub fn repeat(n: u64, mut run: impl FnMut(u64)) {
    counted(|| {
        for turn in 0..n {
            run(turn);
        }
    });
}
