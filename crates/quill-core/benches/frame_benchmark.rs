//! What a frame costs. `cargo bench -p quill-core --bench frame_benchmark`

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use quill_core::frame::{Flags, Frame, FrameDecoder};
use quill_core::varint;

const SIZES: [(&str, usize); 3] = [("100b", 100), ("1kb", 1024), ("1mb", 1024 * 1024)];
const ROUNDTRIP_SIZES: [(&str, usize); 3] = [("100b", 100), ("1kb", 1024), ("10kb", 10 * 1024)];

fn message(payload: &Bytes) -> Frame {
    Frame::new(Flags::DATA, payload.clone()).expect("a payload that fits a frame")
}

fn payload(payload_bytes: usize) -> Bytes {
    Bytes::from(vec![0x2a; payload_bytes])
}

/// A payload into the buffer of a connection, as a sender does it again and again.
fn encoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame_encoding");
    for (name, payload_bytes) in SIZES {
        let payload = payload(payload_bytes);
        let mut out = BytesMut::with_capacity(64 * 1024);
        group.throughput(Throughput::Bytes(payload_bytes as u64));
        group.bench_function(format!("encode_{name}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                let by_reference = message(black_box(&payload)).encode(&mut out);
                black_box(&out);
                by_reference
            });
        });
    }
}

/// A frame out of the bytes of a connection.
fn decoding(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame_decoding");
    for (name, payload_bytes) in SIZES {
        let mut bytes = BytesMut::new();
        let by_reference = message(&payload(payload_bytes)).encode(&mut bytes);
        bytes.extend_from_slice(by_reference.as_deref().unwrap_or_default());
        let bytes = bytes.freeze();
        let mut decoder = FrameDecoder::default();
        group.throughput(Throughput::Bytes(payload_bytes as u64));
        group.bench_function(format!("decode_{name}"), |bencher| {
            bencher.iter(|| {
                decoder.feed(black_box(&bytes).clone());
                decoder.next_frame().expect("a legal frame")
            });
        });
    }
}

/// From payload to payload, with the bytes handed over as a transport would.
fn roundtrip(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("frame_roundtrip");
    for (name, payload_bytes) in ROUNDTRIP_SIZES {
        let payload = payload(payload_bytes);
        let mut out = BytesMut::with_capacity(64 * 1024);
        let mut decoder = FrameDecoder::default();
        group.throughput(Throughput::Bytes(payload_bytes as u64));
        group.bench_function(format!("roundtrip_{name}"), |bencher| {
            bencher.iter(|| {
                out.reserve(1024);
                let by_reference = message(black_box(&payload)).encode(&mut out);
                decoder.feed(out.split().freeze());
                if let Some(payload) = by_reference {
                    decoder.feed(payload);
                }
                let frame = decoder.next_frame().expect("a legal frame");
                assert!(frame.is_some());
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
