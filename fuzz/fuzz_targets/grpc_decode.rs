//! Any bytes as the body of a gRPC or gRPC-Web call, in binary and in text, on
//! either side: the same events in pieces as in one. The first byte says which
//! call, the second where to cut, the third how long the trailers are.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use quill_core::{Format, Headers, Method, MethodKind, RequestHead, ResponseHead};
use quill_fuzz::{put_lines, read_at_every_cut};
use quill_wire::{Call, Decode, Decoder, Side, Wire, WireOptions};

fuzz_target!(|input: &[u8]| {
    let [which, piece_bytes, trailers_bytes, bytes @ ..] = input else {
        return;
    };
    let (lines, body) = bytes.split_at(bytes.len().min(usize::from(*trailers_bytes)));
    let mut trailers = Headers::new();
    put_lines(lines, &mut trailers);
    let trailers = (!lines.is_empty()).then_some(&trailers);
    read_at_every_cut(|| decoder(*which, trailers), body, *piece_bytes, trailers);
});

/// Bits 0 and 1 are the form, 2 the side, 3 compression, 4 fields of the
/// trailers in the head as well.
fn decoder(which: u8, fields: Option<&Headers>) -> Option<Decoder> {
    let bit = |n: u8| which >> n & 1 == 1;
    let (wire, content_type) = match which & 3 {
        0 | 1 => (Wire::Grpc, "application/grpc"),
        2 => (Wire::GrpcWeb { text: false }, "application/grpc-web+proto"),
        _ => (
            Wire::GrpcWeb { text: true },
            "application/grpc-web-text+proto",
        ),
    };
    let method = Arc::new(Method::new("/a.B/C", MethodKind::BidiStreaming));
    let mut options = WireOptions::default();
    options.receive_bytes_max = 4096;
    let options = Arc::new(options);
    let mut headers = Headers::new();
    headers.append("content-type", content_type);
    if bit(3) {
        headers.append("grpc-encoding", "gzip");
    }
    if let (true, Some(fields)) = (bit(4), fields) {
        for (name, value) in fields.iter() {
            headers.append(name, value);
        }
    }
    if bit(2) {
        let call = Call::outgoing(wire, method, Format::Proto, options);
        let mut decoder = call.decoder(Side::Client);
        let mut head = ResponseHead::new(200);
        head.headers = headers;
        return decoder.head(&head).is_ok().then_some(decoder);
    }
    let mut head = RequestHead::post("/a.B/C");
    head.headers = headers;
    let (call, opened) = Wire::recognise(&head).open(&head, method, options).ok()?;
    opened.is_ok().then(|| call.decoder(Side::Server))
}
