//! Instructions that the heads of a call take, each with a limit.
//!
//! `cargo bench -p quill-h2 --bench iai_hpack`

mod heads;

use std::hint::black_box;
use std::process::ExitCode;

use callgrind_gate::{Case, gate, repeat};
use heads::{
    Count, Fields, LIST_BYTES_MAX, REQUEST, REQUEST_WITH_METADATA, RESPONSE, TRAILERS, encode,
};
use quill_h2::hpack::{Decoder, Encoder, Memo};

/// Iterations of the shorter run.
const N: u64 = 20_000;

const CASES: &[Case] = &[
    Case {
        name: "decode_request_first",
        limit: 4_050,
        run: |n| decode_first(n, REQUEST),
    },
    Case {
        name: "decode_request_repeat",
        limit: 525,
        run: |n| decode_repeat(n, REQUEST),
    },
    Case {
        name: "decode_request_with_metadata_repeat",
        limit: 800,
        run: |n| decode_repeat(n, REQUEST_WITH_METADATA),
    },
    Case {
        name: "recall_request",
        limit: 60,
        run: recall,
    },
    Case {
        name: "encode_response_first",
        limit: 2_650,
        run: encode_first,
    },
    Case {
        name: "encode_response_repeat",
        limit: 700,
        run: |n| encode_repeat(n, &[RESPONSE, TRAILERS].concat()),
    },
    Case {
        name: "encode_request_repeat",
        limit: 1_650,
        run: |n| encode_repeat(n, REQUEST),
    },
    Case {
        name: "encode_request_with_metadata_repeat",
        limit: 2_450,
        run: |n| encode_repeat(n, REQUEST_WITH_METADATA),
    },
];

fn main() -> ExitCode {
    gate("iai_hpack", N, CASES)
}

fn decode_first(n: u64, fields: &Fields) {
    let block = encode(&mut Encoder::new(), fields);
    repeat(n, |_| {
        let (mut decoder, mut count) = (Decoder::default(), Count(0));
        let decoded = decoder.decode(black_box(&block), LIST_BYTES_MAX, &mut count);
        black_box((decoded.is_ok(), count.0));
    });
}

/// A decoder that saw the fields before, and a block of them.
fn warm(fields: &Fields) -> (Decoder, Vec<u8>) {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::default());
    for _ in 0..2 {
        let block = encode(&mut encoder, fields);
        let decoded = decoder.decode(&block, LIST_BYTES_MAX, &mut Count(0));
        assert!(decoded.is_ok());
    }
    (decoder, encode(&mut encoder, fields))
}

fn decode_repeat(n: u64, fields: &Fields) {
    let (mut decoder, block) = warm(fields);
    let mut count = Count(0);
    repeat(n, |_| {
        let decoded = decoder.decode(black_box(&block), LIST_BYTES_MAX, &mut count);
        assert!(black_box(decoded.is_ok()));
    });
}

fn recall(n: u64) {
    let (mut decoder, block) = warm(REQUEST);
    let mut memo = Memo::new();
    let decoded = decoder.decode(&block, LIST_BYTES_MAX, &mut Count(0));
    memo.remember(&decoded.expect("a valid block"), || 7);
    repeat(n, |_| {
        let recalled = memo.recall(black_box(&decoder), black_box(&block), LIST_BYTES_MAX);
        assert!(black_box(recalled).is_some());
    });
}

fn encode_first(n: u64) {
    let mut out = Vec::with_capacity(4096);
    repeat(n, |_| {
        out.clear();
        let mut encoder = Encoder::new();
        for (name, value) in RESPONSE.iter().chain(TRAILERS) {
            encoder.field(black_box(name), black_box(value), false, &mut out);
        }
        black_box(&out);
    });
}

fn encode_repeat(n: u64, fields: &Fields) {
    let (mut encoder, mut out) = (Encoder::new(), Vec::with_capacity(4096));
    for _ in 0..2 {
        encode(&mut encoder, fields);
    }
    repeat(n, |_| {
        out.clear();
        for (name, value) in fields {
            encoder.field(black_box(name), black_box(value), false, &mut out);
        }
        black_box(&out);
    });
}
