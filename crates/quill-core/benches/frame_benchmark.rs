//! What a frame costs. `cargo bench -p quill-core --bench frame_benchmark`

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use quill_core::frame::{Flags, Frame, FrameDecoder};
use quill_core::varint;

const SIZES: [(&str, usize); 3] = [("100b", 100), ("1kb", 1024), ("1mb", 1024 * 1024)];
const ROUNDTRIP_SIZES: [(&str, usize); 3] = [("100b", 100), ("1kb", 1024), ("10kb", 10 * 1024)];

fn message(payload_bytes: usize) -> Frame {
    let payload = Bytes::from(vec![0x2a; payload_bytes]);
    Frame::new(Flags::DATA, payload).expect("a payload that fits a frame")
}

/// A frame into the buffer of a connection, as a sender does it again and again.
fn encoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame_encoding");
    for (name, payload_bytes) in SIZES {
        let frame = message(payload_bytes);
        let mut out = BytesMut::with_capacity(64 * 1024);
        group.throughput(Throughput::Bytes(payload_bytes as u64));
        group.bench_function(format!("encode_{name}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                let by_reference = black_box(&frame).encode(&mut out);
                black_box((&out, by_reference));
            });
        });
    }
}

/// A frame out of bytes that arrived, by the decoder of a new stream.
fn decoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame_decoding");
    for (name, payload_bytes) in SIZES {
        let mut bytes = BytesMut::new();
        let frame = message(payload_bytes);
        let by_reference = frame.encode(&mut bytes);
        bytes.extend_from_slice(by_reference.map_or(&[], |payload| payload));
        let bytes = bytes.freeze();
        group.throughput(Throughput::Bytes(payload_bytes as u64));
        group.bench_function(format!("decode_{name}"), |bencher| {
            bencher.iter(|| {
                let mut decoder = FrameDecoder::default();
                decoder.decode(&mut black_box(&bytes).clone())
            });
        });
    }
}

/// From frame to frame: what is in the output arrives in memory of its own.
fn roundtrip(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame_roundtrip");
    for (name, payload_bytes) in ROUNDTRIP_SIZES {
        let frame = message(payload_bytes);
        let mut out = BytesMut::with_capacity(64 * 1024);
        group.throughput(Throughput::Bytes(payload_bytes as u64));
        group.bench_function(format!("roundtrip_{name}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                let by_reference = black_box(&frame).encode(&mut out).cloned();
                let mut decoder = FrameDecoder::default();
                let mut frame = decoder.decode(&mut Bytes::copy_from_slice(&out));
                if let Some(mut payload) = by_reference {
                    frame = decoder.decode(&mut payload);
                }
                assert!(matches!(frame, Ok(Some(_))));
                frame
            });
        });
    }
}

fn varint_encoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("varint_encoding");
    for (len, value) in [(1, 100), (2, 1_000), (3, 1_000_000)] {
        assert_eq!(varint::encoded_len(value), len);
        group.bench_function(
            BenchmarkId::from_parameter(format!("{len}_byte")),
            |bencher| {
                bencher.iter(|| {
                    let mut out = [0; varint::BYTES_MAX];
                    let len = varint::encode(black_box(value), &mut out);
                    (out, len)
                });
            },
        );
    }
}

criterion_group!(benches, encoding, decoding, roundtrip, varint_encoding);
criterion_main!(benches);
