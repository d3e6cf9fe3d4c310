use super::{Decoded, Decoder, Encoder};

/// The longest block that is remembered, in bytes: a usual head takes some hundred at
/// most, and once its fields are in the table some ten.
const BLOCK_BYTES_MAX: usize = 512;

/// What the meaning of a block depends on: whose it is, and what has changed there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) decoder: u64,
    pub(super) changes: u64,
}

/// Blocks that are remembered at a time: calls of several methods take turns on a
/// connection.
const BLOCKS_MAX: usize = 4;

/// What was made of header blocks, for when the same bytes come again.
///
/// The calls of one method often have the same block, once the table holds their
/// fields. As long as the table is what it was, the same bytes are the same fields:
/// then what was made of them is found by comparing bytes. It is never found after a
/// change of the table, nor for another decoder's block, nor when the list would be
/// above the bound of now. The last few blocks are remembered.
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
pub struct Memo<T>(Recent<Remembered<T>>);

#[derive(Debug)]
struct Remembered<T> {
    block: Box<[u8]>,
    list_bytes: usize,
    stamp: Stamp,
    made: T,
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Self(Recent::default())
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
        let stamp = decoder.stamp()?;
        let mut known = self.0.iter();
        let found = known.find(|known| *known.block == *block && known.stamp == stamp)?;
        (found.list_bytes <= list_bytes_max).then_some(&found.made)
    }

    /// Remembers what was made of a block. One that would mean something else a second
    /// time, since it changed the table, that was above its bound, or is long, is not
    /// remembered, and what was before stays.
    pub fn remember(&mut self, decoded: &Decoded<'_>, made: impl FnOnce() -> T) {
        let Some(stamp) = decoded.stamp else {
            return;
        };
        if decoded.block.len() <= BLOCK_BYTES_MAX {
            let remembered = Remembered {
                block: decoded.block.into(),
                list_bytes: decoded.list_bytes,
                stamp,
                made: made(),
            };
            self.0.put(remembered, |known| known.stamp != stamp);
        }
    }
}

/// Header blocks that were written, for when the same fields are to be written again.
///
/// `K` is whatever tells one list of fields from another.
#[derive(Debug)]
pub(crate) struct Written<K>(Recent<(K, WrittenBlock)>);

#[derive(Debug)]
struct WrittenBlock {
    changes: u64,
    bytes: Box<[u8]>,
}

impl<K> Default for Written<K> {
    fn default() -> Self {
        Self(Recent::default())
    }
}

impl<K> Written<K> {
    /// The block of the list that `is_it` knows, as `encoder` would write it now.
    #[inline]
    pub(crate) fn recall(&self, encoder: &Encoder, is_it: impl Fn(&K) -> bool) -> Option<&[u8]> {
        let changes = encoder.changes()?;
        let mut known = self.0.iter();
        let (_, block) = known.find(|(key, block)| block.changes == changes && is_it(key))?;
        Some(&block.bytes)
    }

    /// Remembers the block that `encoder` has just written, of a list of which it would
    /// write the same again; see [`Encoder::changes`] and [`Encoder::literals`].
    pub(crate) fn remember(&mut self, encoder: &Encoder, key: K, block: &[u8]) {
        if let Some(changes) = encoder.changes()
            && block.len() <= BLOCK_BYTES_MAX
        {
            let bytes = block.into();
            let block = WrittenBlock { changes, bytes };
            self.0
                .put((key, block), |(_, known)| known.changes != changes);
        }
    }
}

/// The last few of something.
#[derive(Debug)]
struct Recent<T> {
    kept: Vec<T>,
    oldest: usize,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self {
            kept: Vec::new(),
            oldest: 0,
        }
    }
}

impl<T> Recent<T> {
    #[inline]
    fn iter(&self) -> std::slice::Iter<'_, T> {
        self.kept.iter()
    }

    /// Keeps another, in place of one that is of no use any more, or of the oldest.
    fn put(&mut self, new: T, is_useless: impl Fn(&T) -> bool) {
        let useless = self.kept.iter().position(is_useless);
        if useless.is_none() && self.kept.len() < BLOCKS_MAX {
            self.kept.push(new);
            return;
        }
        let at = useless.unwrap_or(self.oldest);
        if useless.is_none() {
            self.oldest = (at + 1) % BLOCKS_MAX;
        }
        if let Some(place) = self.kept.get_mut(at) {
            *place = new;
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

    #[test]
    fn the_last_few_blocks_are_remembered_and_those_of_no_use_make_room() {
        let mut decoder = Decoder::new(4096);
        let mut memo = Memo::new();
        let put = |decoder: &mut Decoder, memo: &mut Memo<u8>, index: u8| {
            let block = [0x80 | index];
            let decoded = decoder.decode(&block, LIST_BYTES_MAX, &mut Nothing);
            memo.remember(&decoded.expect("a valid block"), || index);
        };
        let known = |decoder: &Decoder, memo: &Memo<u8>| -> Vec<u8> {
            let recall = |i: &u8| memo.recall(decoder, &[0x80 | *i], LIST_BYTES_MAX) == Some(i);
            (1..10).filter(recall).collect()
        };
        for index in 1..7 {
            put(&mut decoder, &mut memo, index);
        }
        assert_eq!(known(&decoder, &memo), [3, 4, 5, 6]);
        let _ = decoder.decode(ADDING, LIST_BYTES_MAX, &mut Nothing);
        assert!(known(&decoder, &memo).is_empty());
        for index in 1..4 {
            put(&mut decoder, &mut memo, index);
        }
        assert_eq!(known(&decoder, &memo), [1, 2, 3]);
        assert_eq!(memo.0.kept.len(), BLOCKS_MAX);
    }

    #[test]
    fn what_was_written_is_recalled_until_it_would_be_written_otherwise() {
        let (mut encoder, mut written, mut out) = (Encoder::new(), Written::default(), Vec::new());
        encoder.field(b":status", b"200", false, &mut out);
        let literals = encoder.literals();
        written.remember(&encoder, 1, &out);
        assert_eq!(written.recall(&encoder, |key| *key == 1), Some(&out[..]));
        assert_eq!(written.recall(&encoder, |key| *key == 2), None);
        encoder.field(b"x", b"1", false, &mut out);
        assert_ne!(encoder.literals(), literals);
        assert_eq!(written.recall(&encoder, |key| *key == 1), None);
        written.remember(&encoder, 1, &out);
        assert!(written.recall(&encoder, |key| *key == 1).is_some());
        // The next block begins with a size update.
        encoder.set_table_bytes_max(0);
        assert_eq!(written.recall(&encoder, |key| *key == 1), None);
    }
}
