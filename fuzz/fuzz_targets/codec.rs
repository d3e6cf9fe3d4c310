//! Any bytes as a message with every kind of field, in binary and in JSON: what
//! is read can be written and means the same when it is read again. The first
//! byte says in which format.
#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use quill::{BuffaCodec, Codec, DecodeLimits, Format};
use quill_fuzz::Kinds;

fuzz_target!(|input: &[u8]| {
    let Some((which, bytes)) = input.split_first() else {
        return;
    };
    let from = if which & 1 == 0 {
        Format::Proto
    } else {
        Format::Json
    };
    let mut limits = DecodeLimits::default();
    // A few bytes of input reach a bound of this size.
    limits.element_bytes_max = 64 * 1024;
    limits.unknown_fields_max = 100;
    limits.depth_max = 20;
    let Ok(message) = read(from, bytes, &limits) else {
        return;
    };
    let roomy = DecodeLimits::default();
    for to in [Format::Proto, Format::Json] {
        let mut written = BytesMut::new();
        if BuffaCodec.encode(to, &message, &mut written).is_err() {
            // A Timestamp out of its range, an Any of an unknown type.
            assert_eq!(to, Format::Json);
            continue;
        }
        let again = read(to, &written, &roomy).expect("what was written is read");
        let is_comparable = to == Format::Proto || from == Format::Json;
        if is_comparable && !format!("{message:?}").contains("NaN") {
            assert_eq!(message, again);
        }
    }
});

fn read(format: Format, bytes: &[u8], limits: &DecodeLimits) -> Result<Kinds, quill::CodecError> {
    BuffaCodec.decode(format, Bytes::copy_from_slice(bytes), limits)
}
