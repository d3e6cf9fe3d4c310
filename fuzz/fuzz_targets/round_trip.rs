//! A call with any metadata, timeout and message, from a client to a server and
//! back in each protocol: what arrives is what was sent. So all that is text on
//! the wire goes both ways: base64, percent coding, timeouts, queries.
//! The first byte says which protocol, the second how, the next eight the
//! timeout, the next how long the metadata are.
#![no_main]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use quill_core::{
    Code, Encodable, Error, Format, Idempotency, Metadata, Method, RawCodec, RequestHead,
};
use quill_fuzz::KINDS;
use quill_wire::{Call, Decode, Decoder, Encode, Event, Out, Protocol, Side, Wire, WireOptions};

/// The most that every protocol's header holds, in milliseconds.
const TIMEOUT_MAX: Duration = Duration::from_millis(9_999_999_999);

fuzz_target!(|input: &[u8]| {
    let [
        which,
        how,
        t0,
        t1,
        t2,
        t3,
        t4,
        t5,
        t6,
        t7,
        metadata_bytes,
        rest @ ..,
    ] = input
    else {
        return;
    };
    let (lines, message) = rest.split_at(rest.len().min(usize::from(*metadata_bytes)));
    let metadata = metadata(lines);
    let nanos = u64::from_le_bytes([*t0, *t1, *t2, *t3, *t4, *t5, *t6, *t7]);
    let mut call = outgoing(*which, *how);
    call.metadata = metadata.clone();
    call.timeout = (how & 1 == 1).then(|| Duration::from_nanos(nanos));
    let message = Bytes::copy_from_slice(message);

    let mut sent = Out::new();
    let head = call
        .unary_request(&raw(message.clone()), &mut sent)
        .expect("it is not too large");
    let taken = open(&head, &call);
    assert_eq!(of_ours(&taken.metadata), metadata);
    match (call.timeout, taken.timeout) {
        (Some(asked), Some(got)) => assert!(got >= asked.min(TIMEOUT_MAX)),
        (asked, got) => assert_eq!(asked, got),
    }
    assert_eq!(only(&mut taken.decoder(Side::Server), &mut sent), message);

    let text = String::from_utf8_lossy(&message).into_owned();
    let code = Code::from_number(u32::from(how >> 4) + 1).unwrap_or(Code::Unknown);
    let failed = Error::new(code, text.clone());
    let answer = raw(message.clone());
    for result in [Ok(&answer), Err(&failed)] {
        let mut out = Out::new();
        let mut encoder = taken.encoder(Side::Server);
        if call.method.kind().server_streams() {
            encoder.head(&metadata, &mut out);
            if let Ok(answer) = result {
                encoder
                    .message(answer, &mut out)
                    .expect("it is not too large");
            }
            encoder.end(result.map(|_| ()), &Metadata::new(), &mut out);
        } else {
            let result = result.map(|answer| answer as _);
            encoder.unary(result, &metadata, &Metadata::new(), &mut out);
        }
        let mut decoder = call.decoder(Side::Client);
        let head = out.take_head().expect("a head");
        let leading = decoder.head(&head).expect("our own answer");
        let (messages, end) = read(&mut decoder, &mut out);
        match (result, end) {
            (Ok(_), Ok(())) => {
                assert_eq!(of_ours(&leading), metadata);
                assert_eq!(messages, std::slice::from_ref(&message));
            }
            (Err(sent), Err(got)) => {
                assert_eq!(got.code(), sent.code());
                assert_eq!(got.message(), text);
                assert_eq!(of_ours(got.received_metadata()), metadata);
            }
            (_, end) => panic!("{end:?}"),
        }
    }
});

fn raw(message: Bytes) -> Encodable<Bytes, RawCodec> {
    Encodable {
        message,
        codec: RawCodec,
    }
}

/// Bits 1 to 3 of `how` are compression, GET and whether answers stream.
fn outgoing(which: u8, how: u8) -> Call {
    let bit = |n: u8| how >> n & 1 == 1;
    let protocol = Protocol::ALL[usize::from(which) % Protocol::ALL.len()];
    let kind = KINDS[if bit(3) { 2 } else { 0 }];
    let mut options = WireOptions::default();
    options.compress = bit(1);
    options.compress_bytes_min = 1;
    options.use_get = bit(2);
    let method = Method::new("/a.B/C", kind).with_idempotency(Idempotency::NoSideEffects);
    let format = if which >> 6 & 1 == 1 {
        Format::Json
    } else {
        Format::Proto
    };
    Call::outgoing(
        protocol.wire(kind),
        Arc::new(method),
        format,
        Arc::new(options),
    )
}

fn open(head: &RequestHead, call: &Call) -> Call {
    let opened =
        Wire::recognise(head).open(head, Arc::clone(&call.method), Arc::clone(&call.options));
    let (taken, opened) = opened.unwrap_or_else(|refusal| panic!("{refusal:?} of {head:?}"));
    opened.unwrap_or_else(|error| panic!("{error} of {head:?}"));
    taken
}

/// Lines of `name: value` as metadata, whose names all begin with `x-`; those
/// that no metadata can be are left out.
fn metadata(lines: &[u8]) -> Metadata {
    let mut metadata = Metadata::new();
    for line in lines.split(|byte| *byte == b'\n') {
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let name = format!("x-{}", String::from_utf8_lossy(name));
        let value = value.get(1..).unwrap_or_default();
        if name.ends_with("-bin") {
            let _ = metadata.append_bin(&name, value);
        } else {
            let _ = metadata.append(&name, &String::from_utf8_lossy(value));
        }
    }
    metadata
}

/// Without what the protocol itself adds.
fn of_ours(metadata: &Metadata) -> Metadata {
    let mut ours = Metadata::new();
    for (name, value) in metadata.iter().filter(|(name, _)| name.starts_with("x-")) {
        ours.receive(name, value);
    }
    ours
}

/// The one message of a body that ends well.
fn only(decoder: &mut Decoder, out: &mut Out) -> Bytes {
    let (mut messages, end) = read(decoder, out);
    assert!(end.is_ok() && messages.len() == 1, "{messages:?} {end:?}");
    messages.remove(0)
}

fn read(decoder: &mut Decoder, out: &mut Out) -> (Vec<Bytes>, Result<(), Error>) {
    while let Some(chunk) = out.take_chunk() {
        decoder.feed(chunk);
    }
    decoder.finish(out.take_trailers());
    let mut messages = Vec::new();
    loop {
        match decoder.next() {
            Ok(Some(Event::Message(message))) => messages.push(message),
            Ok(Some(Event::End(end))) => return (messages, end.map(drop)),
            Ok(Some(_)) => {}
            Ok(None) => panic!("the body has no end"),
            Err(error) => return (messages, Err(error)),
        }
    }
}
