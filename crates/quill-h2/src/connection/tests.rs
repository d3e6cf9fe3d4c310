//! Both ends, driven by frames as bytes.

mod client;
mod floods;
mod rules;
mod streams;

use bytes::{Bytes, BytesMut};
use quill_core::{HttpMethod, RequestHead, ResponseHead};

use super::{Connection, PREFACE};
use crate::frame::{FrameHeader, HEADER_BYTES, flag, kind};
use crate::{Config, ErrorCode, Event, Key, Sent};

/// `POST http /`, out of the static table.
const POST: &[u8] = &[0x83, 0x86, 0x84];

/// A frame that an end wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    /// The number that the payload begins with.
    fn number(&self) -> u32 {
        u32::from_be_bytes(self.payload[..4].try_into().unwrap())
    }

    fn code(&self) -> ErrorCode {
        let at = if self.kind == kind::GOAWAY { 4 } else { 0 };
        ErrorCode(u32::from_be_bytes(
            self.payload[at..at + 4].try_into().unwrap(),
        ))
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader {
        length: payload.len() as u32,
        kind,
        flags,
        stream,
    };
    [&header.bytes()[..], payload].concat()
}

fn headers(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame(kind::HEADERS, flags, stream, block)
}

const END_HEADERS: u8 = flag::END_HEADERS;
const WHOLE: u8 = flag::END_HEADERS | flag::END_STREAM;

fn data(stream: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    frame(kind::DATA, flags, stream, payload)
}

fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (name, value) in pairs {
        crate::settings::put(&mut payload, *name, *value);
    }
    frame(kind::SETTINGS, 0, 0, &payload)
}

fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

fn reset(stream: u32, code: ErrorCode) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &code.0.to_be_bytes())
}

/// A field without indexing.
fn field(name: &str, value: &str) -> Vec<u8> {
    let mut block = vec![0];
    for text in [name, value] {
        assert!(text.len() < 127);
        block.push(text.len() as u8);
        block.extend(text.as_bytes());
    }
    block
}

fn post_with(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = POST.to_vec();
    for (name, value) in fields {
        block.extend(field(name, value));
    }
    block
}

/// An end under test.
struct End(Connection);

impl End {
    /// A server whose client has begun.
    fn server() -> Self {
        Self::server_with(Config::default())
    }

    fn server_with(config: Config) -> Self {
        let mut end = Self(Connection::server(config));
        end.feed(PREFACE);
        let events = end.feed(&settings(&[]));
        assert!(matches!(events[..], [Event::Settings]));
        end.feed(&frame(kind::SETTINGS, flag::ACK, 0, &[]));
        end.frames();
        end
    }

    fn client() -> Self {
        let mut end = Self(Connection::client(Config::default()));
        let out = end.written();
        assert!(out.starts_with(PREFACE));
        end.feed(&settings(&[]));
        end.frames();
        end
    }

    /// Whether the windows of a stream and of the connection are open.
    fn may_send(&self, key: Key) -> bool {
        let stream = self.0.streams.peek(key);
        let is_open = stream.is_some_and(|stream| stream.send_window.open() > 0);
        is_open && self.0.send_window.open() > 0
    }

    fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut input = BytesMut::from(bytes);
        let mut events = Vec::new();
        while let Some(event) = self.0.receive(&mut input) {
            events.push(event);
        }
        events
    }

    /// Takes what was written.
    fn written(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while !self.0.output().is_empty() {
            let mut slices = [std::io::IoSlice::new(&[]); 8];
            let filled = self.0.output().slices(&mut slices);
            let before = all.len();
            slices[..filled]
                .iter()
                .for_each(|slice| all.extend(&slice[..]));
            let written = all.len() - before;
            self.0.output_mut().advance(written);
        }
        all
    }

    fn frames(&mut self) -> Vec<Frame> {
        let written = self.written();
        let mut rest = &written[..];
        let mut frames = Vec::new();
        while let Some(header) = rest.first_chunk() {
            let header = FrameHeader::read(*header);
            let end = HEADER_BYTES + header.length as usize;
            frames.push(Frame {
                kind: header.kind,
                flags: header.flags,
                stream: header.stream,
                payload: rest[HEADER_BYTES..end].to_vec(),
            });
            rest = &rest[end..];
        }
        assert!(rest.is_empty());
        frames
    }

    /// Opens a stream with a request whose body may follow.
    fn open(&mut self, stream: u32) -> Key {
        match self.feed(&headers(stream, END_HEADERS, POST)).pop() {
            Some(Event::Request { key, .. }) => {
                self.0.accept(key);
                key
            }
            other => panic!("{other:?}"),
        }
    }

    /// Feeds what ends the connection; the code that the peer is told.
    fn failed(&mut self, bytes: &[u8]) -> Option<ErrorCode> {
        let events = self.feed(bytes);
        let Some(Event::Failed(error)) = events.last() else {
            return None;
        };
        let frames = self.frames();
        let goaway = frames.iter().find(|frame| frame.kind == kind::GOAWAY);
        assert_eq!(goaway.map(Frame::code), Some(error.code));
        // What follows is ignored.
        assert!(self.feed(&headers(99, WHOLE, POST)).is_empty());
        Some(error.code)
    }

    /// Feeds what ends one stream; the code that it is reset with.
    fn refused(&mut self, bytes: &[u8]) -> Option<(u32, ErrorCode)> {
        let events = self.feed(bytes);
        assert!(
            !events.iter().any(|event| matches!(event, Event::Failed(_))),
            "{events:?}"
        );
        let frames = self.frames();
        let reset = frames.iter().find(|frame| frame.kind == kind::RST_STREAM);
        reset.map(|frame| (frame.stream, frame.code()))
    }
}
