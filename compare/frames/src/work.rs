//! The work itself, on both sides. Both get the same: a frame of their own kind
//! to encode, and bytes to decode by the decoder of a new stream.

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use quill_core::frame::{Flags, Frame, FrameDecoder};

use crate::copying;

/// Who does it.
#[derive(Clone, Copy)]
pub enum Side {
    Quill,
    Copying,
}

/// One thing to do with a frame of one size.
#[derive(Clone, Copy)]
pub struct Work {
    pub name: &'static str,
    step: Step,
    payload_bytes: usize,
}

#[derive(Clone, Copy)]
enum Step {
    Encode,
    Decode,
    RoundTrip,
}

impl Work {
    pub const ALL: [Self; 7] = [
        Self {
            name: "encode_100b",
            step: Step::Encode,
            payload_bytes: 100,
        },
        Self {
            name: "encode_1kb",
            step: Step::Encode,
            payload_bytes: 1 << 10,
        },
        Self {
            name: "encode_1mb",
            step: Step::Encode,
            payload_bytes: 1 << 20,
        },
        Self {
            name: "decode_100b",
            step: Step::Decode,
            payload_bytes: 100,
        },
        Self {
            name: "decode_1kb",
            step: Step::Decode,
            payload_bytes: 1 << 10,
        },
        Self {
            name: "decode_1mb",
            step: Step::Decode,
            payload_bytes: 1 << 20,
        },
        Self {
            name: "roundtrip_1kb",
            step: Step::RoundTrip,
            payload_bytes: 1 << 10,
        },
    ];

    /// Does the work as many times as it is told.
    pub fn doer(self, side: Side) -> Box<dyn FnMut(u64)> {
        let payload = Bytes::from(vec![0x2a; self.payload_bytes]);
        match (side, self.step) {
            (Side::Quill, Step::Encode) => quill_encode(payload),
            (Side::Quill, Step::Decode) => quill_decode(payload),
            (Side::Quill, Step::RoundTrip) => quill_roundtrip(payload),
            (Side::Copying, Step::Encode) => copying_encode(payload),
            (Side::Copying, Step::Decode) => copying_decode(payload),
            (Side::Copying, Step::RoundTrip) => copying_roundtrip(payload),
        }
    }
}

fn quill_frame(payload: Bytes) -> Frame {
    Frame::new(Flags::DATA, payload).expect("a payload that fits a frame")
}

fn quill_encode(payload: Bytes) -> Box<dyn FnMut(u64)> {
    let frame = quill_frame(payload);
    let mut out = BytesMut::with_capacity(4096);
    Box::new(move |turns| {
        for _ in 0..turns {
            out.clear();
            let by_reference = black_box(&frame).encode(&mut out);
            black_box((&out, by_reference));
        }
    })
}

fn quill_decode(payload: Bytes) -> Box<dyn FnMut(u64)> {
    let bytes = copying::Frame {
        flags: copying::DATA,
        payload,
    }
    .encode();
    Box::new(move |turns| {
        for _ in 0..turns {
            let mut decoder = FrameDecoder::default();
            let frame = decoder.decode(&mut black_box(&bytes).clone());
            assert!(matches!(black_box(&frame), Ok(Some(_))));
        }
    })
}

fn quill_roundtrip(payload: Bytes) -> Box<dyn FnMut(u64)> {
    let frame = quill_frame(payload);
    let mut out = BytesMut::with_capacity(4096);
    Box::new(move |turns| {
        for _ in 0..turns {
            out.clear();
            let by_reference = black_box(&frame).encode(&mut out).cloned();
            let mut decoder = FrameDecoder::default();
            let mut frame = decoder.decode(&mut Bytes::copy_from_slice(&out));
            if let Some(mut payload) = by_reference {
                frame = decoder.decode(&mut payload);
            }
            assert!(matches!(black_box(&frame), Ok(Some(_))));
        }
    })
}

fn copying_encode(payload: Bytes) -> Box<dyn FnMut(u64)> {
    let frame = copying::Frame {
        flags: copying::DATA,
        payload,
    };
    Box::new(move |turns| {
        for _ in 0..turns {
            black_box(black_box(&frame).encode());
        }
    })
}

fn copying_decode(payload: Bytes) -> Box<dyn FnMut(u64)> {
    let bytes = copying::Frame {
        flags: copying::DATA,
        payload,
    }
    .encode();
    Box::new(move |turns| {
        for _ in 0..turns {
            let mut decoder = copying::Decoder::default();
            decoder.feed(&black_box(&bytes).clone());
            let frame = decoder.decode();
            assert!(black_box(&frame).is_some());
        }
    })
}

fn copying_roundtrip(payload: Bytes) -> Box<dyn FnMut(u64)> {
    let frame = copying::Frame {
        flags: copying::DATA,
        payload,
    };
    Box::new(move |turns| {
        for _ in 0..turns {
            let bytes = black_box(&frame).encode();
            let mut decoder = copying::Decoder::default();
            decoder.feed(&bytes);
            let frame = decoder.decode();
            assert!(black_box(&frame).is_some());
        }
    })
}
