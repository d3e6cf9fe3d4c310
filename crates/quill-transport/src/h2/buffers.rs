//! Buffers that a thread's connections share: one has them only while there are bytes.

use std::cell::Cell;

use bytes::BytesMut;

/// What is read at once.
pub(crate) const READ_BYTES: usize = 32 * 1024;

/// What a thread keeps of either kind; a buffer that grew beyond is let go.
const KEPT_BYTES_MAX: usize = 128 * 1024;

thread_local! {
    static READ: Cell<Option<BytesMut>> = const { Cell::new(None) };
    static WRITE: Cell<Option<Vec<u8>>> = const { Cell::new(None) };
}

/// The buffers of this thread that nobody uses now.
pub(crate) struct Spare;

impl Spare {
    /// An empty buffer with room for [`READ_BYTES`].
    pub(crate) fn take_read() -> BytesMut {
        let kept = READ.try_with(Cell::take).ok().flatten();
        let mut buffer = kept.unwrap_or_default();
        // Takes the old place again where nothing of it is still held.
        buffer.reserve(READ_BYTES);
        buffer
    }

    pub(crate) fn give_read(mut buffer: BytesMut) {
        buffer.clear();
        if buffer.capacity() <= KEPT_BYTES_MAX {
            // A thread that ends keeps nothing.
            let _ = READ.try_with(|kept| kept.set(Some(buffer)));
        }
    }

    pub(crate) fn take_write() -> Vec<u8> {
        let kept = WRITE.try_with(Cell::take).ok().flatten();
        kept.unwrap_or_default()
    }

    pub(crate) fn give_write(buffer: Vec<u8>) {
        if (1..=KEPT_BYTES_MAX).contains(&buffer.capacity()) {
            let _ = WRITE.try_with(|kept| kept.set(Some(buffer)));
        }
    }
}
