//! The ends of a text, for the encoder's look-ups: they make a hash of a few
//! instructions, whatever the length.

/// Odd, with its bits spread (the fraction of the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The first and last bytes of a text, 8 each where it has as many; they may overlap.
#[derive(Clone, Copy)]
pub(super) struct Ends {
    head: u64,
    tail: u64,
    len: usize,
}

impl Ends {
    #[inline]
    pub(super) const fn of(text: &[u8]) -> Self {
        let len = text.len();
        if let (Some(head), Some(tail)) = (text.first_chunk::<8>(), text.last_chunk::<8>()) {
            let (head, tail) = (u64::from_le_bytes(*head), u64::from_le_bytes(*tail));
            return Self { head, tail, len };
        }
        if let (Some(head), Some(tail)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
            let (head, tail) = (u32::from_le_bytes(*head), u32::from_le_bytes(*tail));
            return Self {
                head: head as u64,
                tail: tail as u64,
                len,
            };
        }
        let (head, tail) = match *text {
            [first, second, .., last] => (first as u64 | (second as u64) << 8, last as u64),
            [first, last] => (first as u64, last as u64),
            [only] => (only as u64, 0),
            [] => (0, 0),
        };
        Self { head, tail, len }
    }

    /// The hash of a name. Texts that differ in the middle alone have one hash: that
    /// costs compression, never correctness, since what is found is compared.
    #[inline]
    pub(super) const fn hash(self) -> u64 {
        let mixed = self.head ^ self.tail.rotate_left(23) ^ ((self.len as u64) << 56);
        spread(mixed)
    }

    /// The hash of a field, from its name (`self`) and its value.
    #[inline]
    pub(super) const fn hash_with(self, value: Self) -> u64 {
        let name = self.head ^ self.tail.rotate_left(23);
        let value_ends = value.head.rotate_left(11) ^ value.tail.rotate_left(37);
        let lens = (self.len as u64) << 56 ^ (value.len as u64) << 48;
        let mixed = name.rotate_left(5) ^ value_ends ^ lens;
        spread(mixed)
    }
}

/// Lets each bit of the result depend on each of `bits`.
#[inline]
const fn spread(bits: u64) -> u64 {
    let product = bits as u128 * SPREAD as u128;
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_near_an_end_changes_the_hash() {
        let text = b"0123456789abcdef";
        let other = Ends::of(b"other");
        for len in 0..=text.len() {
            let ends = Ends::of(&text[..len]);
            for at in 0..len {
                let mut changed = text[..len].to_vec();
                changed[at] = b'x';
                let changed = Ends::of(&changed);
                assert_ne!(changed.hash(), ends.hash());
                assert_ne!(changed.hash_with(other), ends.hash_with(other));
                assert_ne!(other.hash_with(changed), other.hash_with(ends));
            }
        }
    }
}
