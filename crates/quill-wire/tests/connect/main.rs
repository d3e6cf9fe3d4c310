//! Connect through the public seam: exact bytes, both sides against each
//! other, and everything a peer may get wrong.

use std::sync::Arc;

use bytes::Bytes;
use proptest::sample::Index;
use quill_core::{
    Code, Encodable, Error, Format, Headers, Idempotency, Metadata, Method, MethodKind, RawCodec,
    RequestHead, ResponseHead,
};
use quill_wire::{Call, Decode, Decoder, Event, Out, Refusal, Side, Wire, WireOptions};

mod get;
mod refusal;
mod stream;
mod unary;

const PATH: &str = "/a.B/C";

/// What an encoder handed over.
struct Sent {
    head: Option<ResponseHead>,
    body: Vec<u8>,
    ended: bool,
}

impl Sent {
    fn of(mut out: Out) -> Self {
        let head = out.take_head();
        let ended = out.is_ended();
        let mut body = Vec::new();
        while let Some(chunk) = out.take_chunk() {
            body.extend_from_slice(&chunk);
        }
        assert!(out.take_trailers().is_none(), "Connect needs no trailers");
        Self { head, body, ended }
    }

    fn status(&self) -> u16 {
        self.head.as_ref().unwrap().status
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        fields(&self.head.as_ref().unwrap().headers)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.as_ref().unwrap().headers.text(name)
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

fn fields(headers: &Headers) -> Vec<(&str, &str)> {
    headers
        .iter()
        .map(|(name, value)| (name, std::str::from_utf8(value).unwrap()))
        .collect()
}

/// What a decoder found, in a form that can be compared.
#[derive(Debug, PartialEq)]
enum Seen {
    Message(Vec<u8>),
    End(Metadata),
    Failed(Code, String, Metadata),
    Broken(Code),
}

/// Feeds the pieces, then the end of the body, and takes every event.
fn events(decoder: &mut Decoder, pieces: &[&[u8]]) -> Vec<Seen> {
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.feed(Bytes::copy_from_slice(piece));
        take_events(decoder, &mut seen);
    }
    decoder.finish(None);
    take_events(decoder, &mut seen);
    assert_eq!(decoder.held_bytes(), 0, "the end holds nothing back");
    seen
}

fn take_events(decoder: &mut Decoder, seen: &mut Vec<Seen>) {
    loop {
        seen.push(match decoder.next() {
            Ok(None) => return,
            Ok(Some(Event::Message(bytes))) => Seen::Message(bytes.to_vec()),
            Ok(Some(Event::End(Ok(metadata)))) => Seen::End(metadata),
            Ok(Some(Event::End(Err(error)))) => Seen::Failed(
                error.code(),
                error.message().to_owned(),
                error.received_metadata().clone(),
            ),
            Ok(Some(other)) => panic!("Connect has no {other:?}"),
            Err(error) => Seen::Broken(error.code()),
        });
    }
}

/// The pieces of `bytes` between these places.
fn cut<'a>(bytes: &'a [u8], places: &[Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|p| p.index(bytes.len() + 1)).collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for place in places {
        pieces.push(&bytes[from..place]);
        from = place;
    }
    pieces.push(&bytes[from..]);
    pieces
}

/// Decodes `bytes` whole, cut in two at every place, and byte by byte: the
/// events must be the same.
fn events_however_cut(decoder: impl Fn() -> Decoder, bytes: &[u8]) -> Vec<Seen> {
    let whole = events(&mut decoder(), &[bytes]);
    for place in 0..=bytes.len() {
        let (one, other) = bytes.split_at(place);
        assert_eq!(events(&mut decoder(), &[one, other]), whole, "at {place}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(events(&mut decoder(), &single), whole);
    whole
}

fn method(kind: MethodKind) -> Arc<Method> {
    Arc::new(Method::new(PATH, kind))
}

fn readable() -> Arc<Method> {
    let method = Method::new(PATH, MethodKind::Unary);
    Arc::new(method.with_idempotency(Idempotency::NoSideEffects))
}

fn options(change: impl FnOnce(&mut WireOptions)) -> Arc<WireOptions> {
    let mut options = WireOptions::default();
    change(&mut options);
    Arc::new(options)
}

fn message(bytes: impl Into<Bytes>) -> Encodable<Bytes, RawCodec> {
    Encodable {
        message: bytes.into(),
        codec: RawCodec,
    }
}

fn metadata(fields: &[(&str, &str)]) -> Metadata {
    let mut metadata = Metadata::new();
    for (name, value) in fields {
        if name.ends_with("-bin") {
            metadata.append_bin(name, value).unwrap();
        } else {
            metadata.append(name, value).unwrap();
        }
    }
    metadata
}

fn post(content_type: &str, fields: &[(&str, &str)]) -> RequestHead {
    let mut head = RequestHead::post(PATH);
    head.headers.append("content-type", content_type);
    for (name, value) in fields {
        head.headers.append(name, value);
    }
    head
}

fn answer(status: u16, fields: &[(&str, &str)]) -> ResponseHead {
    let mut head = ResponseHead::new(status);
    for (name, value) in fields {
        head.headers.append(name, value);
    }
    head
}

/// Recognises and opens a request, as a server does.
fn open(
    head: &RequestHead,
    method: Arc<Method>,
    options: Arc<WireOptions>,
) -> Result<(Call, Result<(), Error>), Refusal> {
    Wire::recognise(head).open(head, method, options)
}

fn opened(head: &RequestHead, method: Arc<Method>, options: Arc<WireOptions>) -> Call {
    let (call, checked) = open(head, method, options).unwrap();
    checked.unwrap();
    call
}

fn open_code(head: &RequestHead, method: Arc<Method>) -> Code {
    let (_, checked) = open(head, method, Arc::default()).unwrap();
    checked.unwrap_err().code()
}

/// A client's call and its decoder after this head.
fn answered(call: &Call, head: &ResponseHead) -> Result<(Metadata, Decoder), Error> {
    let mut decoder = call.decoder(Side::Client);
    let leading = decoder.head(head)?;
    Ok((leading, decoder))
}

fn outgoing(wire: Wire, kind: MethodKind, format: Format) -> Call {
    Call::outgoing(wire, method(kind), format, Arc::default())
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes::BytesMut::new();
    quill_core::compression::compress(quill_core::compression::Encoding::Gzip, 3, bytes, &mut out)
        .unwrap();
    out.to_vec()
}
