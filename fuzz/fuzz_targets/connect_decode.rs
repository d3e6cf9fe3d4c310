//! Any bytes as the body of a Connect call, unary and streaming, on either
//! side, also as the document of an error: the same events in pieces as in one.
//! The first byte says which call, the second where to cut.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use quill_core::{Format, Headers, Method, MethodKind, RequestHead, ResponseHead};
use quill_fuzz::{KINDS, read_at_every_cut};
use quill_wire::{Call, Decode, Decoder, Protocol, Side, Wire, WireOptions};

fuzz_target!(|input: &[u8]| {
    let [which, piece_bytes, bytes @ ..] = input else {
        return;
    };
    read_at_every_cut(|| decoder(*which), bytes, *piece_bytes, None);
});

/// Bits 0 and 1 are the kind, 2 the side, 3 compression, 4 a failure.
fn decoder(which: u8) -> Option<Decoder> {
    let bit = |n: u8| which >> n & 1 == 1;
    let kind = KINDS[usize::from(which & 3)];
    let method = Arc::new(Method::new("/a.B/C", kind));
    let mut options = WireOptions::default();
    options.receive_bytes_max = 4096;
    let options = Arc::new(options);
    let mut headers = Headers::new();
    let (content_type, encoding) = match kind {
        MethodKind::Unary => ("application/proto", "content-encoding"),
        _ => ("application/connect+proto", "connect-content-encoding"),
    };
    headers.append("content-type", content_type);
    if bit(3) {
        headers.append(encoding, "gzip");
    }
    if bit(2) {
        let wire = Protocol::Connect.wire(kind);
        let call = Call::outgoing(wire, method, Format::Proto, options);
        let mut head = ResponseHead::new(200);
        head.headers = headers;
        if bit(4) {
            head.status = 503;
            head.headers.set("content-type", "application/json");
        }
        let mut decoder = call.decoder(Side::Client);
        return decoder.head(&head).is_ok().then_some(decoder);
    }
    let mut head = RequestHead::post("/a.B/C");
    head.headers = headers;
    let (call, opened) = Wire::recognise(&head).open(&head, method, options).ok()?;
    opened.is_ok().then(|| call.decoder(Side::Server))
}
