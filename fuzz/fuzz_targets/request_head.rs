//! Any target and fields as the head of a request, in every protocol: it is
//! opened or refused, and either can be answered; and a place in a trace that is read
//! from it is read again as it was written. The first byte says which
//! method is called and how; the rest is the target, then a field a line.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use quill_core::trace::TraceContext;
use quill_core::{Headers, HttpMethod, Idempotency, Metadata, Method, RequestHead};
use quill_fuzz::{KINDS, put_lines};
use quill_wire::{Decode, Encode, Event, Out, Side, Wire, WireOptions};

fuzz_target!(|input: &[u8]| {
    let Some((which, text)) = input.split_first() else {
        return;
    };
    let bit = |n: u8| which >> n & 1 == 1;
    let (target, fields) = match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &[][..]),
    };
    let mut head = RequestHead::post(String::from_utf8_lossy(target));
    if bit(2) {
        head.method = HttpMethod::Get;
    }
    head.headers = Headers::new();
    put_lines(fields, &mut head.headers);
    let mut method = Method::new("/a.B/C", KINDS[usize::from(which & 3)]);
    if bit(3) {
        method = method.with_idempotency(Idempotency::NoSideEffects);
    }
    let wire = Wire::recognise(&head);
    let mut out = Out::new();
    match wire.open(&head, Arc::new(method), Arc::new(WireOptions::default())) {
        Err(refusal) => wire.refuse(refusal, &mut out),
        Ok((call, opened)) => {
            if let Some(context) = TraceContext::from_metadata(&call.metadata) {
                let mut sent = Metadata::new();
                context.write_to(&mut sent);
                assert_eq!(TraceContext::from_metadata(&sent), Some(context));
            }
            let mut decoder = call.decoder(Side::Server);
            while let Ok(Some(event)) = decoder.next() {
                if let Event::End(_) = event {
                    break;
                }
            }
            let none = Metadata::new();
            let mut encoder = call.encoder(Side::Server);
            if let Err(error) = opened {
                encoder.end(Err(&error), &none, &mut out);
            } else {
                encoder.head(&call.metadata, &mut out);
                encoder.end(Ok(()), &none, &mut out);
            }
        }
    }
    assert!(out.take_head().is_some());
});
