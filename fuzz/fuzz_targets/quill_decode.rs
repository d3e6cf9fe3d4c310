//! Any bytes as the body of a Quill call, on either side, in every kind, with
//! and without credits: the same events in pieces as in one, and no more held
//! than was fed. The first byte says which call, the second where to cut.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use quill_core::{Format, Method, RequestHead, ResponseHead};
use quill_fuzz::{KINDS, read_at_every_cut};
use quill_wire::{Call, Decode, Decoder, Side, Wire, WireOptions};

fuzz_target!(|input: &[u8]| {
    let [which, piece_bytes, bytes @ ..] = input else {
        return;
    };
    read_at_every_cut(|| decoder(*which), bytes, *piece_bytes, None);
});

/// Bits 0 and 1 are the kind, 2 the side, 3 credits, 4 compression, 5 a failure.
fn decoder(which: u8) -> Option<Decoder> {
    let bit = |n: u8| which >> n & 1 == 1;
    let kind = KINDS[usize::from(which & 3)];
    let method = Arc::new(Method::new("/a.B/C", kind));
    let mut options = WireOptions::default();
    options.receive_bytes_max = 4096;
    options.credits = bit(3).then_some(20);
    let options = Arc::new(options);
    if bit(2) {
        let call = Call::outgoing(Wire::Quill, method, Format::Proto, options);
        let framed = kind.server_streams() || call.credits().is_some();
        let mut head = ResponseHead::new(if bit(5) { 503 } else { 200 });
        put_fields(&mut head.headers, framed, bit(3), bit(4));
        if bit(5) {
            head.headers.set("content-type", "application/problem+json");
        }
        let mut decoder = call.decoder(Side::Client);
        return decoder.head(&head).is_ok().then_some(decoder);
    }
    let mut head = RequestHead::post("/a.B/C");
    put_fields(
        &mut head.headers,
        kind.client_streams() || bit(3),
        bit(3),
        bit(4),
    );
    let (call, opened) = Wire::recognise(&head).open(&head, method, options).ok()?;
    opened.is_ok().then(|| call.decoder(Side::Server))
}

fn put_fields(headers: &mut quill_core::Headers, framed: bool, credits: bool, zstd: bool) {
    let (content_type, encoding) = if framed {
        ("application/quill-stream+proto", "quill-encoding")
    } else {
        ("application/quill+proto", "content-encoding")
    };
    headers.append("content-type", content_type);
    if credits {
        headers.append("quill-credits", "20");
    }
    if zstd {
        headers.append(encoding, "zstd");
    }
}
