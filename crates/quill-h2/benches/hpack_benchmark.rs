//! What the heads of a call cost. `cargo bench -p quill-h2 --bench hpack_benchmark`

mod heads;

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use heads::{Count, LIST_BYTES_MAX, REQUEST, REQUEST_WITH_METADATA, RESPONSE, TRAILERS, encode};
use quill_h2::hpack::{Decoder, Encoder};

/// The head of a call, on a connection that saw it before, and on a new one.
fn decoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hpack_decoding");
    for (name, fields) in [
        ("request", REQUEST),
        ("request_with_metadata", REQUEST_WITH_METADATA),
    ] {
        let mut encoder = Encoder::new();
        let first = encode(&mut encoder, fields);
        let second = encode(&mut encoder, fields);
        let repeat = encode(&mut encoder, fields);
        group.bench_function(format!("{name}_first"), |bencher| {
            bencher.iter(|| {
                let (mut decoder, mut count) = (Decoder::default(), Count(0));
                let decoded = decoder.decode(black_box(&first), LIST_BYTES_MAX, &mut count);
                black_box((decoded.is_ok(), count.0))
            });
        });
        let (mut decoder, mut count) = (Decoder::default(), Count(0));
        for block in [&first, &second] {
            let decoded = decoder.decode(block, LIST_BYTES_MAX, &mut count);
            assert!(decoded.is_ok());
        }
        group.bench_function(format!("{name}_repeat"), |bencher| {
            bencher.iter(|| {
                let decoded = decoder.decode(black_box(&repeat), LIST_BYTES_MAX, &mut count);
                black_box(decoded.is_ok())
            });
        });
    }
    group.finish();
}

/// The head and trailers of an answer.
fn encoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hpack_encoding");
    let mut out = Vec::with_capacity(4096);
    group.bench_function("response_first", |bencher| {
        bencher.iter(|| {
            out.clear();
            let mut encoder = Encoder::new();
            for (name, value) in RESPONSE.iter().chain(TRAILERS) {
                encoder.field(name, value, false, &mut out);
            }
            black_box(out.len())
        });
    });
    let mut encoder = Encoder::new();
    group.bench_function("response_repeat", |bencher| {
        bencher.iter(|| {
            out.clear();
            for (name, value) in RESPONSE.iter().chain(TRAILERS) {
                encoder.field(black_box(name), black_box(value), false, &mut out);
            }
            black_box(out.len())
        });
    });
    group.finish();
}

criterion_group!(benches, decoding, encoding);
criterion_main!(benches);
