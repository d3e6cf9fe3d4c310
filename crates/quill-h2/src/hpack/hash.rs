//! A hash for the encoder's look-ups: of a few instructions whatever the length.
//!
//! It looks at the ends of a string only. What it finds is compared in full, so two
//! strings with one hash cost compression, never correctness.

/// Odd, with its bits spread (the fraction of the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of a name or of a value.
#[inline]
pub(super) const fn of(text: &[u8]) -> u64 {
    let (head, tail) =
        if let (Some(head), Some(tail)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
            (u64::from_le_bytes(*head), u64::from_le_bytes(*tail))
        } else if let (Some(head), Some(tail)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
            (
                u32::from_le_bytes(*head) as u64,
                u32::from_le_bytes(*tail) as u64,
            )
        } else {
            match *text {
                [first, .., last] => (first as u64 | (text[1] as u64) << 8, last as u64),
                [only] => (only as u64, 0),
                [] => (0, 0),
            }
        };
    let mixed = (head ^ tail.rotate_left(23) ^ text.len() as u64).wrapping_mul(SPREAD);
    mixed ^ (mixed >> 29)
}

/// The hash of a field, from those of its name and value.
#[inline]
pub(super) const fn pair(name: u64, value: u64) -> u64 {
    let mixed = (name.rotate_left(31) ^ value).wrapping_mul(SPREAD);
    mixed ^ (mixed >> 32)
}
