//! Any bytes: what is accepted is the shortest form, and what is not yet decided
//! is shorter than the longest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use quill_core::varint;

fuzz_target!(|bytes: &[u8]| {
    match varint::decode(bytes) {
        Ok(Some((value, len))) => {
            let mut again = [0; varint::BYTES_MAX];
            assert_eq!(varint::encode(value, &mut again), len);
            assert_eq!(again[..len], bytes[..len]);
        }
        Ok(None) => assert!(bytes.len() < varint::BYTES_MAX),
        Err(_) => {}
    }
});
