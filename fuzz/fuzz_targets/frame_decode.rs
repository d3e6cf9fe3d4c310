//! Any bytes in any pieces: the same frames and the same end as in one piece,
//! and no more held than a frame. The first byte says where to cut.
#![no_main]

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use quill_core::frame::{Frame, FrameDecoder, FrameError, FrameHeader};

const PAYLOAD_BYTES_MAX: usize = 1000;

fuzz_target!(|input: &[u8]| {
    let Some((piece_bytes, bytes)) = input.split_first() else {
        return;
    };
    let piece_bytes = usize::from(*piece_bytes).max(1);
    let (frames, end) = decoded(&[bytes]);
    let pieces: Vec<&[u8]> = bytes.chunks(piece_bytes).collect();
    assert_eq!(decoded(&pieces), (frames.clone(), end));

    // What was accepted is what we would have sent.
    let mut sent = BytesMut::new();
    for frame in &frames {
        if let Some(payload) = frame.encode(&mut sent) {
            sent.extend_from_slice(payload);
        }
    }
    assert!(bytes.starts_with(&sent));
});

fn decoded(pieces: &[&[u8]]) -> (Vec<Frame>, Result<(), FrameError>) {
    let mut decoder = FrameDecoder::new(PAYLOAD_BYTES_MAX);
    let mut frames = Vec::new();
    for piece in pieces {
        let mut piece = Bytes::copy_from_slice(piece);
        loop {
            match decoder.decode(&mut piece) {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
        assert!(piece.is_empty());
        assert!(decoder.held_bytes() < PAYLOAD_BYTES_MAX.max(FrameHeader::BYTES_MAX));
    }
    (frames, decoder.finish())
}
