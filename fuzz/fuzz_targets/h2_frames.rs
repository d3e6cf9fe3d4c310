//! Frames of every type and what an application does meanwhile, in any order, at either
//! end of an HTTP/2 connection: whatever comes, what is written keeps to the protocol
//! and to the windows that were given, and no more is taken than was granted.
//!
//! Two bits of a frame's step say what its payload is: the input's, or a good one.
#![no_main]

use std::collections::{BTreeMap, VecDeque};
use std::io::IoSlice;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use quill_core::{Headers, RequestHead, ResponseHead};
use quill_h2::hpack::{Decoder, Field, Sink};
use quill_h2::{Config, Connection, ErrorCode, Event, Key, PREFACE};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// What a window begins with.
const WINDOW: i64 = 65_535;

const REQUEST: &[u8] = b"\x83\x86\x04\x01/\x01\x01a";
const ANSWER: &[u8] = b"\x88";
const TRAILERS: &[u8] = b"\x00\x01x\x01y";

fuzz_target!(|input: &[u8]| {
    let mut steps = Steps(input);
    let is_server = steps.byte().unwrap_or_default() & 1 == 0;
    let mut talk = Talk::new(is_server);
    while !talk.is_over {
        let Some(step) = steps.byte() else { return };
        match step & 15 {
            kind @ 0..=10 => talk.frame(kind, step, &mut steps),
            11 => talk.begin(),
            12 => talk.send(&mut steps),
            13 => talk.end(step, &mut steps),
            14 => talk.release(&mut steps),
            _ => talk.pass(step),
        }
        talk.check_written();
    }
});

/// The input, a byte or some at a time.
struct Steps<'a>(&'a [u8]);

impl<'a> Steps<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// What the peer knows of a stream, or of the connection.
#[derive(Default)]
struct Stream {
    /// What it gave beyond the first window, less what was sent to it.
    given: i64,
    /// What it was granted beyond the first window, less what was taken from it.
    granted: i64,
    has_ended: bool,
    is_reset: bool,
}

/// A connection's end, and what its peer knows.
struct Talk {
    end: Connection,
    is_server: bool,
    is_over: bool,
    now: Instant,
    keys: Vec<Key>,
    decoder: Decoder,
    streams: BTreeMap<u32, Stream>,
    /// What streams may be sent before more is given.
    first_window: i64,
    frame_bytes_max: usize,
    block: Option<(u32, Vec<u8>)>,
    pings: VecDeque<[u8; 8]>,
    settings: usize,
}

struct Ignore;

impl Sink for Ignore {
    fn field(&mut self, _: Field<'_>) {}
}

impl Talk {
    fn new(is_server: bool) -> Self {
        let mut end = if is_server {
            Connection::server(Config::default())
        } else {
            Connection::client(Config::default())
        };
        let mut preface = BytesMut::from(&PREFACE[..]);
        if is_server {
            assert!(end.receive(&mut preface).is_none());
        }
        let mut talk = Self {
            end,
            is_server,
            is_over: false,
            now: Instant::now(),
            keys: Vec::new(),
            decoder: Decoder::new(4096),
            streams: BTreeMap::new(),
            first_window: WINDOW,
            frame_bytes_max: 16_384,
            block: None,
            pings: VecDeque::new(),
            settings: 0,
        };
        let written = talk.drain();
        let preface = if is_server { 0 } else { PREFACE.len() };
        talk.check(&written[preface..]);
        talk.put(SETTINGS, 0, 0, &[]);
        talk.check_written();
        talk
    }

    /// The peer sends a frame: a good one, or as the input says.
    fn frame(&mut self, kind: u8, step: u8, steps: &mut Steps<'_>) {
        let variant = step >> 4 & 3;
        let stream = u32::from(steps.byte().unwrap_or_default() % 16);
        let flags = steps.byte().unwrap_or_default();
        let size = usize::from(steps.byte().unwrap_or_default());
        let zeros = vec![0; size * 64];
        let payload = match (kind, variant) {
            (DATA, 1..) => &zeros,
            (HEADERS | CONTINUATION, 1) => REQUEST,
            (HEADERS | CONTINUATION, 2) => ANSWER,
            (HEADERS | CONTINUATION, 3) => TRAILERS,
            (SETTINGS, 1..) => steps.bytes(size % 4 * 6),
            (RST_STREAM | WINDOW_UPDATE, 1..) => steps.bytes(4),
            (PING, 1..) => steps.bytes(8),
            _ => steps.bytes(size),
        };
        let (flags, stream) = match kind {
            _ if variant == 0 => (flags, stream),
            HEADERS => (flags & END_STREAM | END_HEADERS, stream),
            CONTINUATION => (END_HEADERS, stream),
            SETTINGS | PING | GOAWAY => (flags & ACK, 0),
            _ => (flags & END_STREAM, stream),
        };
        self.put(kind, flags, stream, payload);
    }

    fn put(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.note(kind, flags, stream, payload);
        let length = (payload.len() as u32).to_be_bytes();
        let mut frame = BytesMut::from(&length[1..]);
        frame.extend_from_slice(&[kind, flags]);
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        while let Some(event) = self.end.receive(&mut frame) {
            match event {
                Event::Request { key, .. } => self.keys.push(key),
                Event::Data { key, data, .. } => {
                    for number in [0, key.id()] {
                        let stream = self.streams.entry(number).or_default();
                        stream.granted -= data.len() as i64;
                        assert!(stream.granted + WINDOW >= 0, "more was taken than granted");
                    }
                }
                Event::Failed(_) => self.is_over = true,
                _ => {}
            }
        }
    }

    /// What the peer knows once it has sent this. Where that is refused, the stream or
    /// the connection is over, and it does not matter.
    fn note(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        match kind {
            SETTINGS if flags & ACK == 0 => {
                self.settings += 1;
                for setting in payload.chunks_exact(6) {
                    let value = number(&setting[2..]);
                    match number(&setting[..2]) {
                        1 => self.decoder.set_table_bytes_max(value as u32),
                        4 => self.first_window = value,
                        5 => self.frame_bytes_max = value as usize,
                        _ => {}
                    }
                }
            }
            PING if flags & ACK == 0 => self.pings.extend(<[u8; 8]>::try_from(payload).ok()),
            WINDOW_UPDATE => {
                let increment = number(payload) & 0x7fff_ffff;
                self.streams.entry(stream).or_default().given += increment;
            }
            _ => {}
        }
    }

    fn key(&self, steps: &mut Steps<'_>) -> Option<Key> {
        let which = usize::from(steps.byte()?);
        self.keys.get(which % self.keys.len().max(1)).copied()
    }

    /// A client calls, a server answers the last call.
    fn begin(&mut self) {
        if !self.is_server {
            let opened = self
                .end
                .open("http", &RequestHead::post("/a.B/C"), &[], false);
            self.keys.extend(opened.ok());
        } else if let Some(key) = self.keys.last() {
            self.end.accept(*key);
            let more: [(&str, &[u8]); 1] = [("x-more", &[b'm'; 40])];
            self.end
                .send_head(*key, &ResponseHead::new(200), &more, false);
        }
    }

    fn send(&mut self, steps: &mut Steps<'_>) {
        let Some(key) = self.key(steps) else { return };
        let size = usize::from(steps.byte().unwrap_or_default());
        // The head of an answer goes before its body.
        self.end.send_head(key, &ResponseHead::new(200), &[], false);
        let mut data = Bytes::from(vec![7; size * 300]);
        self.end.send_data(key, &mut data, size % 5 == 0, 100_000);
    }

    fn end(&mut self, step: u8, steps: &mut Steps<'_>) {
        let Some(key) = self.key(steps) else { return };
        if step & 0x10 == 0 {
            return self.end.reset(key, ErrorCode::CANCEL);
        }
        self.end.send_head(key, &ResponseHead::new(200), &[], false);
        let mut trailers = Headers::new();
        trailers.append("x-end", "1");
        self.end.send_trailers(key, &trailers);
    }

    fn release(&mut self, steps: &mut Steps<'_>) {
        let Some(key) = self.key(steps) else { return };
        let bytes = u32::from(steps.byte().unwrap_or_default()) * 1000;
        self.end.release(key, bytes);
    }

    /// Time passes, or the connection is asked about or to end.
    fn pass(&mut self, step: u8) {
        match step >> 4 & 7 {
            0 => self.end.announce_goaway(),
            1 => self.end.goaway(ErrorCode::NO_ERROR),
            2 => self.end.send_ping([9; 8]),
            3 => self.end.shrink(),
            _ => {
                self.now += Duration::from_secs(1);
                self.end.advance(self.now);
            }
        }
    }

    fn check_written(&mut self) {
        let written = self.drain();
        self.check(&written);
    }

    fn check(&mut self, mut rest: &[u8]) {
        while !rest.is_empty() {
            let (header, tail) = rest.split_at(9);
            let (payload, tail) = tail.split_at(number(&header[..3]) as usize);
            rest = tail;
            assert!(payload.len() <= self.frame_bytes_max.max(16_384));
            self.read(header[3], header[4], number(&header[5..]) as u32, payload);
        }
    }

    /// The peer reads a frame.
    fn read(&mut self, kind: u8, flags: u8, number_of: u32, payload: &[u8]) {
        assert!(self.block.is_none() || kind == CONTINUATION);
        let stream = self.streams.entry(number_of).or_default();
        let is_of_connection = matches!(kind, SETTINGS | PING | GOAWAY);
        assert!(is_of_connection == (number_of == 0) || kind == WINDOW_UPDATE);
        assert!(
            !stream.is_reset || kind == RST_STREAM,
            "{kind} after a reset"
        );
        match kind {
            DATA | HEADERS => {
                assert!(!stream.has_ended, "{kind} after the end");
                stream.has_ended = flags & END_STREAM != 0;
            }
            RST_STREAM => stream.is_reset = true,
            WINDOW_UPDATE => stream.granted += number(payload),
            SETTINGS if flags & ACK != 0 => {
                self.settings = self
                    .settings
                    .checked_sub(1)
                    .expect("SETTINGS to acknowledge");
            }
            PING if flags & ACK != 0 => {
                assert_eq!(
                    self.pings.pop_front().as_ref().map(|data| &data[..]),
                    Some(payload)
                );
            }
            SETTINGS | PING | GOAWAY | CONTINUATION => {}
            kind => panic!("a frame of type {kind}"),
        }
        match kind {
            DATA => self.take(number_of, payload.len() as i64),
            HEADERS => self.take_block(flags, number_of, Vec::new(), payload),
            CONTINUATION => {
                let (begun, block) = self.block.take().expect("a block that goes on");
                assert_eq!(begun, number_of);
                self.take_block(flags, number_of, block, payload);
            }
            _ => {}
        }
    }

    fn take(&mut self, number: u32, bytes: i64) {
        for (number, first) in [(0, WINDOW), (number, self.first_window)] {
            let stream = self.streams.entry(number).or_default();
            stream.given -= bytes;
            assert!(bytes == 0 || stream.given + first >= 0, "over the window");
        }
    }

    fn take_block(&mut self, flags: u8, stream: u32, mut block: Vec<u8>, payload: &[u8]) {
        block.extend_from_slice(payload);
        if flags & END_HEADERS == 0 {
            self.block = Some((stream, block));
            return;
        }
        let decoded = self.decoder.decode(&block, 1 << 20, &mut Ignore);
        let _ = decoded.expect("a header block that its peer can read");
    }

    fn drain(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        while !self.end.output().is_empty() {
            let mut slices = [IoSlice::new(&[]); 16];
            let filled = self.end.output().slices(&mut slices);
            let before = all.len();
            for slice in &slices[..filled] {
                all.extend_from_slice(slice);
            }
            let count = all.len() - before;
            self.end.output_mut().advance(count);
        }
        all
    }
}

fn number(bytes: &[u8]) -> i64 {
    bytes
        .iter()
        .take(7)
        .fold(0, |n, byte| n << 8 | i64::from(*byte))
}
