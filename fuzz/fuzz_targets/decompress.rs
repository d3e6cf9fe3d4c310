//! Any bytes as each encoding: never more out than the bound, and the same in
//! pieces as in one. The first byte says where to cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quill_core::compression::{self, Decompressor, Encoding};

const BYTES_MAX: usize = 64 * 1024;

fuzz_target!(|input: &[u8]| {
    let Some((piece_bytes, bytes)) = input.split_first() else {
        return;
    };
    let piece_bytes = usize::from(*piece_bytes).max(1);
    for encoding in Encoding::ALL {
        let whole = compression::decompress(*encoding, bytes, BYTES_MAX);
        let mut decompressor = Decompressor::new(*encoding, BYTES_MAX);
        let mut out = Vec::new();
        let pushed = bytes
            .chunks(piece_bytes)
            .try_for_each(|piece| decompressor.push(piece, &mut out))
            .and_then(|()| decompressor.finish());
        assert!(out.capacity() <= BYTES_MAX + 4096);
        assert_eq!(pushed.is_ok(), whole.is_ok());
        if let Ok(whole) = whole {
            assert!(whole.len() <= BYTES_MAX);
            assert_eq!(whole, out);
        }
    }
});
