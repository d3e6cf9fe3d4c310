use super::{Decoded, Decoder};

/// The longest block that is remembered, in bytes: a usual head takes some hundred at
/// most, and once its fields are in the table some ten.
const BLOCK_BYTES_MAX: usize = 512;

/// What the meaning of a block depends on: whose it is, and what has changed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) decoder: u64,
    pub(super) changes: u64,
}

/// What was made of a header block, for when the same bytes come again.
///
/// The calls of one method often have the same block, once the table holds their
/// fields. As long as the table is what it was, the same bytes are the same fields:
/// then what was made of them is found by one comparison. It is never found after a
/// change of the table, nor for another decoder's block, nor when the list would be
/// above the bound of now.
///
/// ```
/// # use quill_h2::hpack::{Decoder, Error, Field, Memo, Sink};
/// # struct Count(usize);
/// # impl Sink for Count { fn field(&mut self, _: Field<'_>) { self.0 += 1; } }
/// # let (mut decoder, block, list_bytes_max) = (Decoder::new(4096), [0x82, 0x86], 16_384);
/// # let mut memo: Memo<usize> = Memo::new();
/// # for _ in 0..2 {
/// let fields = match memo.recall(&decoder, &block, list_bytes_max) {
///     Some(fields) => *fields,
///     None => {
///         let mut count = Count(0);
///         let decoded = decoder.decode(&block, list_bytes_max, &mut count)?;
///         memo.remember(&decoded, || count.0);
///         count.0
///     }
/// };
/// # assert_eq!(fields, 2); }
/// # assert!(memo.recall(&decoder, &block, list_bytes_max).is_some());
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Memo<T>(Option<Remembered<T>>);

#[derive(Debug)]
struct Remembered<T> {
    block: Box<[u8]>,
    list_bytes: usize,
    stamp: Stamp,
    made: T,
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Memo<T> {
    /// A memo of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What was made of these bytes, when decoding them now would give the same fields
    /// and leave `decoder` as it is. They then need not be decoded.
    #[inline]
    #[must_use]
    pub fn recall(&self, decoder: &Decoder, block: &[u8], list_bytes_max: usize) -> Option<&T> {
        let remembered = self.0.as_ref()?;
        let same = *remembered.block == *block
            && Some(remembered.stamp) == decoder.stamp()
            && remembered.list_bytes <= list_bytes_max;
        same.then_some(&remembered.made)
    }

    /// Remembers what was made of a block instead of what it had before. A block that
    /// would mean something else a second time, since it changed the table, that was
    /// above its bound, or is long, is not remembered, and what was before stays.
    pub fn remember(&mut self, decoded: &Decoded<'_>, made: impl FnOnce() -> T) {
        let Some(stamp) = decoded.stamp else {
            return;
        };
        if decoded.block.len() <= BLOCK_BYTES_MAX {
            self.0 = Some(Remembered {
                block: decoded.block.into(),
                list_bytes: decoded.list_bytes,
                stamp,
                made: made(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::hpack::{Field, Sink};

    use super::*;

    struct Nothing;

    impl Sink for Nothing {
        fn field(&mut self, _: Field<'_>) {}
    }

    const LIST_BYTES_MAX: usize = 1000;

    /// `x: 1`, into the table.
    const ADDING: &[u8] = b"\x40\x01x\x011";
    /// `:method: GET`, and the newest entry of the table.
    const PLAIN: &[u8] = &[0x82, 0xbe];

    fn remembered(decoder: &mut Decoder, block: &[u8]) -> Memo<&'static str> {
        let mut memo = Memo::new();
        let decoded = decoder.decode(block, LIST_BYTES_MAX, &mut Nothing);
        memo.remember(&decoded.expect("a valid block"), || "made");
        memo
    }

    #[test]
    fn the_same_bytes_are_recalled_until_the_table_changes() {
        let mut decoder = Decoder::new(4096);
        let adding = remembered(&mut decoder, ADDING);
        assert_eq!(adding.recall(&decoder, ADDING, LIST_BYTES_MAX), None);
        let memo = remembered(&mut decoder, PLAIN);
        let recall = |decoder: &Decoder| memo.recall(decoder, PLAIN, LIST_BYTES_MAX).copied();
        assert_eq!(recall(&decoder), Some("made"));
        assert_eq!(memo.recall(&decoder, &[0x82], LIST_BYTES_MAX), None);
        assert_eq!(memo.recall(&decoder, PLAIN, 40), None);
        let _ = remembered(&mut decoder, ADDING);
        assert_eq!(recall(&decoder), None);
    }

    #[test]
    fn an_owed_size_update_is_not_passed_over() {
        let mut decoder = Decoder::new(4096);
        let _ = remembered(&mut decoder, ADDING);
        let memo = remembered(&mut decoder, PLAIN);
        decoder.set_table_bytes_max(100);
        assert_eq!(memo.recall(&decoder, PLAIN, LIST_BYTES_MAX), None);
    }

    #[test]
    fn a_block_is_not_taken_for_another_connections() {
        let mut decoders = [Decoder::new(4096), Decoder::new(4096)];
        for decoder in &mut decoders {
            let _ = remembered(decoder, ADDING);
        }
        let memo = remembered(&mut decoders[0], PLAIN);
        assert_eq!(memo.recall(&decoders[1], PLAIN, LIST_BYTES_MAX), None);
    }

    #[test]
    fn a_list_above_its_bound_is_not_remembered() {
        let mut decoder = Decoder::new(4096);
        let mut memo = Memo::new();
        let decoded = decoder.decode(&[0x82], 10, &mut Nothing);
        memo.remember(&decoded.expect("a valid block"), || "made");
        assert_eq!(memo.recall(&decoder, &[0x82], LIST_BYTES_MAX), None);
    }
}
