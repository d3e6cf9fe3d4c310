//! Both sides of the protocol against each other and against bytes by hand.

mod bytes_cut;
mod credit;
mod dialect;
mod failures;
mod golden;
mod heads;
mod round_trip;

use std::sync::Arc;

use bytes::Bytes;
use quill_core::{
    Encodable, Error, Format, Headers, HttpVersion, Idempotency, Metadata, Method, MethodKind,
    RawCodec, RequestHead, ResponseHead,
};

use crate::{Call, Decode, Decoder, Event, Out, Refusal, Side, Wire, WireOptions};

const KINDS: [MethodKind; 4] = [
    MethodKind::Unary,
    MethodKind::ClientStreaming,
    MethodKind::ServerStreaming,
    MethodKind::BidiStreaming,
];

fn method(kind: MethodKind) -> Arc<Method> {
    Arc::new(Method::new("/echo.v1.EchoService/Echo", kind))
}

fn pure() -> Arc<Method> {
    let method = Method::new("/echo.v1.EchoService/Echo", MethodKind::Unary)
        .with_idempotency(Idempotency::NoSideEffects);
    Arc::new(method)
}

fn raw(bytes: impl Into<Bytes>) -> Encodable<Bytes, RawCodec> {
    Encodable {
        message: bytes.into(),
        codec: RawCodec,
    }
}

fn options() -> WireOptions {
    WireOptions::default()
}

fn outgoing(kind: MethodKind, options: WireOptions) -> Call {
    Call::outgoing(Wire::Quill, method(kind), Format::Proto, Arc::new(options))
}

/// A head for a POST to the method of the tests.
fn post(content_type: &str, fields: &[(&str, &str)]) -> RequestHead {
    let mut head = RequestHead::post("/echo.v1.EchoService/Echo");
    head.headers.append("content-type", content_type);
    for (name, value) in fields {
        head.headers.append(name, value);
    }
    head
}

/// Opens what the wire recognises in `head`.
fn open_with(
    head: &RequestHead,
    method: Arc<Method>,
    options: WireOptions,
) -> Result<(Call, Result<(), Error>), Refusal> {
    Wire::recognise(head).open(head, method, Arc::new(options))
}

fn open(head: &RequestHead, kind: MethodKind) -> Call {
    let (call, opened) = open_with(head, method(kind), options()).unwrap();
    opened.unwrap();
    call
}

/// A head, the body's bytes, and whether the half was ended.
fn drain(out: &mut Out) -> (Option<ResponseHead>, Vec<u8>, bool) {
    let head = out.take_head();
    let mut body = Vec::new();
    while let Some(chunk) = out.take_chunk() {
        body.extend_from_slice(&chunk);
    }
    assert!(out.take_trailers().is_none(), "no trailers anywhere");
    (head, body, out.is_ended())
}

/// What a test compares of an event.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Message(Bytes),
    Credit(u32),
    Cancel,
    End(Metadata),
    Failed(String, Metadata),
    /// The bytes were refused.
    Broken(String),
}

impl Seen {
    fn message(bytes: &[u8]) -> Self {
        Seen::Message(Bytes::copy_from_slice(bytes))
    }

    fn end() -> Self {
        Seen::End(Metadata::new())
    }
}

fn next(decoder: &mut Decoder) -> Option<Seen> {
    Some(match decoder.next() {
        Ok(None) => return None,
        Ok(Some(Event::Message(bytes))) => Seen::Message(bytes),
        Ok(Some(Event::Credit(messages))) => Seen::Credit(messages),
        Ok(Some(Event::Cancel)) => Seen::Cancel,
        Ok(Some(Event::End(Ok(trailers)))) => Seen::End(trailers),
        Ok(Some(Event::End(Err(error)))) => {
            Seen::Failed(error.to_string(), error.received_metadata().clone())
        }
        Err(error) => Seen::Broken(error.to_string()),
    })
}

/// Feeds the pieces one after the other and collects what they mean, up to the
/// first refusal.
fn read(decoder: &mut Decoder, pieces: &[&[u8]], is_finished: bool) -> Vec<Seen> {
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.feed(Bytes::copy_from_slice(piece));
        while let Some(event) = next(decoder) {
            let is_broken = matches!(event, Seen::Broken(_));
            seen.push(event);
            if is_broken {
                return seen;
            }
        }
    }
    if is_finished {
        decoder.finish(None);
        while let Some(event) = next(decoder) {
            let is_broken = matches!(event, Seen::Broken(_));
            seen.push(event);
            if is_broken {
                break;
            }
        }
    }
    seen
}

/// The server's reading of this body in a call of this kind.
fn read_request(kind: MethodKind, body: &[u8]) -> Vec<Seen> {
    let streams = kind.client_streams();
    let content_type = if streams {
        "application/quill-stream+proto"
    } else {
        "application/quill+proto"
    };
    let call = open(&post(content_type, &[]), kind);
    read(&mut call.decoder(Side::Server), &[body], true)
}

/// The client's reading of this answer.
fn read_answer(call: &Call, head: &ResponseHead, body: &[u8]) -> Vec<Seen> {
    let mut decoder = call.decoder(Side::Client);
    match decoder.head(head) {
        Ok(_) => read(&mut decoder, &[body], true),
        Err(error) => vec![Seen::Broken(error.to_string())],
    }
}

fn answer_head(content_type: &str, fields: &[(&str, &str)]) -> ResponseHead {
    let mut head = ResponseHead::new(200);
    head.headers.append("content-type", content_type);
    for (name, value) in fields {
        head.headers.append(name, value);
    }
    head
}

fn broken(seen: &[Seen], code: &str) -> bool {
    matches!(seen.last(), Some(Seen::Broken(text)) if text.starts_with(code))
}

fn pairs(headers: &Headers) -> Vec<(&str, &str)> {
    let text = |value| std::str::from_utf8(value).unwrap();
    headers.iter().map(|(n, v)| (n, text(v))).collect()
}

fn metadata(pairs: &[(&str, &str)]) -> Metadata {
    let mut metadata = Metadata::new();
    for (name, value) in pairs {
        metadata.append(name, value).unwrap();
    }
    metadata
}

fn over_http1(mut head: RequestHead) -> RequestHead {
    head.version = HttpVersion::Http1;
    head
}
