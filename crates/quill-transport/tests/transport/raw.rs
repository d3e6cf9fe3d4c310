//! HTTP/2 frames by hand, and what a server makes of hostile ones.

use std::time::Duration;

use quill_core::HttpVersion;
use quill_transport::{Empty, ServerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::*;

/// An HTTP/2 frame (RFC 9113, section 4.1).
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RESET: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;

    fn new(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Self {
        let payload = payload.to_vec();
        Self {
            kind,
            flags,
            stream,
            payload,
        }
    }

    pub(crate) fn data(stream: u32, flags: u8, payload: &[u8]) -> Self {
        Self::new(Self::DATA, flags, stream, payload)
    }

    pub(crate) fn headers(stream: u32, flags: u8, block: &[u8]) -> Self {
        Self::new(Self::HEADERS, flags, stream, block)
    }

    pub(crate) fn reset(stream: u32, code: u32) -> Self {
        Self::new(Self::RESET, 0, stream, &code.to_be_bytes())
    }

    pub(crate) fn window_update(stream: u32, bytes: u32) -> Self {
        Self::new(Self::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
    }

    pub(crate) fn ping(flags: u8, payload: [u8; 8]) -> Self {
        Self::new(Self::PING, flags, 0, &payload)
    }

    pub(crate) fn goaway(last: u32, code: u32) -> Self {
        let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
        Self::new(Self::GOAWAY, 0, 0, &payload)
    }

    fn error_code(&self) -> u32 {
        let at = if self.kind == Self::GOAWAY { 4 } else { 0 };
        u32::from_be_bytes(self.payload[at..at + 4].try_into().unwrap())
    }

    fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).unwrap().to_be_bytes();
        let mut bytes = length[1..].to_vec();
        bytes.extend([self.kind, self.flags]);
        bytes.extend(self.stream.to_be_bytes());
        bytes.extend(&self.payload);
        bytes
    }
}

/// One end of an HTTP/2 connection without any state.
pub(crate) struct Raw(TcpStream);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// `POST http /`, as a header block without the dynamic table.
const POST: &[u8] = &[0x83, 0x86, 0x84];

impl Raw {
    async fn client(address: std::net::SocketAddr) -> Self {
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(PREFACE).await.unwrap();
        let mut raw = Self(socket);
        raw.write(&Frame::new(Frame::SETTINGS, 0, 0, &[])).await;
        raw
    }

    pub(crate) async fn server(mut socket: TcpStream) -> Self {
        let mut preface = [0; PREFACE.len()];
        socket.read_exact(&mut preface).await.unwrap();
        assert_eq!(preface, PREFACE);
        let mut raw = Self(socket);
        raw.write(&Frame::new(Frame::SETTINGS, 0, 0, &[])).await;
        raw
    }

    /// Writes, unless the other side has closed.
    pub(crate) async fn write(&mut self, frame: &Frame) {
        let _ = self.0.write_all(&frame.bytes()).await;
    }

    /// Whether the other side is there still.
    pub(crate) async fn try_write(&mut self, frame: &Frame) -> bool {
        self.0.write_all(&frame.bytes()).await.is_ok()
    }

    /// Writes frames in one segment.
    async fn write_all(&mut self, frames: &[Frame]) {
        let bytes: Vec<u8> = frames.iter().flat_map(Frame::bytes).collect();
        self.0.write_all(&bytes).await.unwrap();
    }

    async fn read(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(Frame::new(head[3], head[4], stream, &payload))
    }

    /// The next frame that fits.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Frame) -> bool) -> Frame {
        loop {
            let frame = self.read().await.expect("the connection ended");
            if fits(&frame) {
                return frame;
            }
        }
    }

    /// Reads to the end.
    pub(crate) async fn rest(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.read().await {
            frames.push(frame);
        }
        frames
    }

    /// Writes what is given while it reads, to the end of the connection; the
    /// code of its GOAWAY, if there was one.
    async fn ended_by(self, frames: impl Iterator<Item = Frame> + Send + 'static) -> Option<u32> {
        let (mut reading, mut writing) = self.0.into_split();
        let writer = tokio::spawn(async move {
            for frame in frames {
                if writing.write_all(&frame.bytes()).await.is_err() {
                    break;
                }
            }
            writing
        });
        let mut bytes = Vec::new();
        let _ = soon(reading.read_to_end(&mut bytes)).await;
        writer.abort();
        let mut codes = None;
        let mut rest = &bytes[..];
        while rest.len() >= 9 {
            let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
            let Some(payload) = rest.get(9..9 + length) else {
                break;
            };
            if rest[3] == Frame::GOAWAY {
                codes = Some(Frame::new(Frame::GOAWAY, 0, 0, payload).error_code());
            }
            rest = &rest[9 + length..];
        }
        codes
    }
}

const ENHANCE_YOUR_CALM: u32 = 11;
const PROTOCOL_ERROR: u32 = 1;

#[tokio::test]
async fn rapid_resets_end_the_connection_and_no_other() {
    let (_, running, other) = pair(HttpVersion::Http2).await;
    soon(other.connect()).await.unwrap();
    let raw = Raw::client(running.local_addr().unwrap()).await;
    let flood = (0..5000).flat_map(|index| {
        let stream = 2 * index + 1;
        [Frame::headers(stream, 4, POST), Frame::reset(stream, 8)]
    });
    assert_eq!(raw.ended_by(flood).await, Some(ENHANCE_YOUR_CALM));
    let (head, _) = soon(other.send(post("/refuse"), Empty)).await.unwrap();
    assert_eq!(head.status, 404);
}

#[tokio::test]
async fn resets_that_the_server_is_made_to_send_end_the_connection() {
    let (_, running, other) = pair(HttpVersion::Http2).await;
    let address = running.local_addr().unwrap();
    let flood = (0..5000).map(|index| Frame::headers(2 * index + 1, 5, &with_connection_field()));
    let code = Raw::client(address).await.ended_by(flood).await;
    assert_eq!(code, Some(ENHANCE_YOUR_CALM));
    // A window update of 0 is its stream's error.
    let flood = (0..5000).flat_map(|index| {
        let stream = 2 * index + 1;
        [
            Frame::headers(stream, 4, POST),
            Frame::window_update(stream, 0),
        ]
    });
    let code = Raw::client(address).await.ended_by(flood).await;
    assert_eq!(code, Some(ENHANCE_YOUR_CALM));
    let (head, _) = soon(other.send(post("/refuse"), Empty)).await.unwrap();
    assert_eq!(head.status, 404);
}

/// A request with `connection: close`, without indexing.
fn with_connection_field() -> Vec<u8> {
    let mut block = POST.to_vec();
    block.extend(b"\x00\x0aconnection\x05close");
    block
}

#[tokio::test]
async fn a_head_without_an_end_closes_the_connection() {
    for block in [&[][..], &[0; 1000]] {
        let (_, running, _) = pair(HttpVersion::Http2).await;
        let raw = Raw::client(running.local_addr().unwrap()).await;
        let block = block.to_vec();
        let flood = (0..10_000).map(move |index| match index {
            0 => Frame::headers(1, 0, POST),
            _ => Frame::new(Frame::CONTINUATION, 0, 1, &block),
        });
        assert!(raw.ended_by(flood).await.is_some());
    }
}

#[tokio::test]
async fn fields_that_http2_forbids_end_their_stream_alone() {
    let (shared, running, _) = pair(HttpVersion::Http2).await;
    let mut raw = Raw::client(running.local_addr().unwrap()).await;
    raw.write(&Frame::headers(1, 5, &with_connection_field()))
        .await;
    let reset = soon(raw.until(|frame| frame.kind == Frame::RESET)).await;
    assert_eq!((reset.stream, reset.error_code()), (1, PROTOCOL_ERROR));
    raw.write(&Frame::headers(3, 5, POST)).await;
    let answer = soon(raw.until(|frame| frame.kind == Frame::HEADERS)).await;
    assert_eq!(answer.stream, 3);
    assert_eq!(shared.calls.load(std::sync::atomic::Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_request_that_breaks_a_rule_in_the_same_read_reaches_no_service() {
    let (shared, running, _) = pair(HttpVersion::Http2).await;
    let mut ten = POST.to_vec();
    ten.extend(b"\x00\x0econtent-length\x0210");
    let mut raw = Raw::client(running.local_addr().unwrap()).await;
    for frames in [
        [Frame::headers(1, 4, &ten), Frame::data(1, 1, b"short")],
        // Trailers that no message may have.
        [
            Frame::headers(3, 4, POST),
            Frame::headers(3, 5, &with_connection_field()),
        ],
        [Frame::headers(5, 5, POST), Frame::window_update(5, 0)],
    ] {
        raw.write_all(&frames).await;
        let reset = soon(raw.until(|frame| frame.kind == Frame::RESET)).await;
        let expected = (frames[0].stream, PROTOCOL_ERROR);
        assert_eq!((reset.stream, reset.error_code()), expected);
    }
    raw.write(&Frame::headers(7, 5, POST)).await;
    let answer = soon(raw.until(|frame| frame.kind == Frame::HEADERS)).await;
    assert_eq!(answer.stream, 7);
    assert_eq!(shared.calls.load(std::sync::atomic::Ordering::SeqCst), 1);
}

/// `POST http /refuse`, without the end of its stream.
async fn refused(running: &quill_transport::Running) -> Raw {
    let mut raw = Raw::client(running.local_addr().unwrap()).await;
    let mut block = vec![0x83, 0x86];
    block.extend(b"\x04\x07/refuse");
    raw.write(&Frame::headers(1, 4, &block)).await;
    let answer = soon(raw.until(|frame| frame.kind == Frame::HEADERS)).await;
    assert_eq!(answer.stream, 1);
    raw
}

#[tokio::test]
async fn a_refused_body_that_goes_on_is_stopped_without_an_error() {
    let (_, running, _) = pair(HttpVersion::Http2).await;
    let mut silent = refused(&running).await;
    let reset = soon(silent.until(|frame| frame.kind == Frame::RESET)).await;
    assert_eq!((reset.stream, reset.error_code()), (1, 0));

    let mut endless = refused(&running).await;
    let begun = std::time::Instant::now();
    // As much as its window allows.
    for bytes in [16 * 1024, 16 * 1024, 16 * 1024, 16 * 1024 - 1] {
        endless.write(&Frame::data(1, 0, &vec![0; bytes])).await;
    }
    let reset = soon(endless.until(|frame| frame.kind == Frame::RESET)).await;
    assert_eq!((reset.stream, reset.error_code()), (1, 0));
    // The bound stopped it, not the time.
    assert!(begun.elapsed() < Duration::from_millis(900));
}

#[tokio::test]
async fn a_refused_body_that_ends_soon_is_not_reset() {
    let (_, running, _) = pair(HttpVersion::Http2).await;
    let mut raw = refused(&running).await;
    raw.write(&Frame::data(1, 0, &[0; 16 * 1024])).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    raw.write(&Frame::data(1, 1, b"the end")).await;
    // Were it reset, that would come before the answer to this.
    raw.write(&Frame::headers(3, 5, POST)).await;
    let seen = soon(raw.until(|frame| {
        frame.kind == Frame::RESET || (frame.kind == Frame::HEADERS && frame.stream == 3)
    }));
    assert_eq!(seen.await.kind, Frame::HEADERS);
}

#[tokio::test]
async fn a_reset_in_the_middle_of_a_body_is_no_end() {
    for code in [0, 8] {
        let (shared, running, _) = pair(HttpVersion::Http2).await;
        let mut raw = Raw::client(running.local_addr().unwrap()).await;
        let mut block = vec![0x83, 0x86];
        block.extend(b"\x04\x06/stall");
        raw.write(&Frame::headers(1, 4, &block)).await;
        soon(shared.arrived.notified()).await;
        raw.write(&Frame::data(1, 0, b"half")).await;
        raw.write(&Frame::reset(1, code)).await;
        // The handler is dropped; if it were not it would answer "0" for an
        // error and "4" for an end.
        shared.release.notify_one();
        let ping = Frame::new(Frame::PING, 0, 0, &[0; 8]);
        raw.write(&ping).await;
        let frame = soon(raw.until(|frame| matches!(frame.kind, Frame::PING | Frame::DATA))).await;
        assert_eq!(frame.kind, Frame::PING);
    }
}

#[tokio::test]
async fn a_peer_that_answers_no_ping_is_let_go() {
    let mut options = ServerOptions::default();
    options.http2_ping_interval = Some(Duration::from_millis(50));
    options.http2_ping_timeout = Duration::from_millis(50);
    let running = start(&Shared::default(), options).await;
    let mut raw = Raw::client(running.local_addr().unwrap()).await;
    soon(raw.rest()).await;
}

#[tokio::test]
async fn a_peer_does_not_end_a_connection_as_if_it_were_drained() {
    let mut options = ServerOptions::default();
    options.http2_ping_interval = Some(Duration::from_millis(50));
    let running = start(&Shared::default(), options).await;
    let mut raw = Raw::client(running.local_addr().unwrap()).await;
    // The wrong answer to another ping.
    soon(raw.until(|frame| frame.kind == Frame::PING)).await;
    raw.write(&Frame::ping(1, *b"q-drain\0")).await;
    raw.write(&Frame::headers(1, 5, POST)).await;
    let told = raw.until(|frame| matches!(frame.kind, Frame::HEADERS | Frame::GOAWAY));
    assert_eq!(soon(told).await.kind, Frame::HEADERS);
}

#[tokio::test]
async fn an_end_and_trailers_need_no_window() {
    let (_, running, _) = pair(HttpVersion::Http2).await;
    let mut raw = Raw::client(running.local_addr().unwrap()).await;
    // INITIAL_WINDOW_SIZE 0
    let settings = Frame::new(Frame::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    raw.write(&settings).await;
    let mut block = vec![0x83, 0x86];
    block.extend(b"\x04\x09/trailers");
    raw.write(&Frame::headers(1, 5, &block)).await;
    let trailers = raw.until(|frame| frame.kind == Frame::HEADERS && frame.flags & 1 == 1);
    soon(trailers).await;
    // An end behind the last byte that the window had room for.
    block.truncate(2);
    block.extend(b"\x04\x05/echo");
    raw.write(&Frame::headers(3, 4, &block)).await;
    raw.write(&Frame::window_update(3, 4)).await;
    raw.write(&Frame::data(3, 0, b"four")).await;
    let data = soon(raw.until(|frame| frame.kind == Frame::DATA)).await;
    assert_eq!((data.flags, &data.payload[..]), (0, &b"four"[..]));
    raw.write(&Frame::data(3, 1, b"")).await;
    let end = soon(raw.until(|frame| frame.kind == Frame::DATA)).await;
    assert_eq!((end.flags, end.payload.len()), (1, 0));
}

#[tokio::test]
async fn a_connection_of_short_calls_is_not_idle() {
    let mut options = ServerOptions::default();
    let timeout = Duration::from_secs(60);
    options.http2_idle_timeout = Some(timeout);
    options.http2_ping_interval = None;
    let running = start(&Shared::default(), options).await;
    let mut raw = refused(&running).await;
    raw.write(&Frame::data(1, 1, b"")).await;
    let _held = stop_clock();
    let mut block = vec![0x83, 0x86];
    block.extend(b"\x04\x07/refuse");
    for turn in 1..7 {
        tokio::time::advance(timeout / 2).await;
        raw.write(&Frame::headers(2 * turn + 1, 5, &block)).await;
        let told = raw.until(|frame| matches!(frame.kind, Frame::HEADERS | Frame::GOAWAY));
        assert_eq!(told.await.kind, Frame::HEADERS, "{turn}");
    }
    tokio::time::advance(timeout).await;
    raw.until(|frame| frame.kind == Frame::GOAWAY).await;
}

#[tokio::test]
async fn open_streams_are_bounded() {
    let mut options = ServerOptions::default();
    options.http2_streams_max = 2;
    let shared = Shared::default();
    let running = start(&shared, options).await;
    let mut raw = Raw::client(running.local_addr().unwrap()).await;
    let mut block = vec![0x83, 0x86];
    block.extend(b"\x04\x05/hang");
    for stream in [1, 3, 5] {
        raw.write(&Frame::headers(stream, 5, &block)).await;
    }
    let reset = soon(raw.until(|frame| frame.kind == Frame::RESET)).await;
    // REFUSED_STREAM: it may be sent again.
    assert_eq!((reset.stream, reset.error_code()), (5, 7));
}

/// A window that is moved and stays shut lets nothing through, however often.
#[tokio::test]
async fn a_window_that_stays_shut_is_no_progress() {
    let timeout = Duration::from_secs(60);
    let mut options = ServerOptions::default();
    options.write_timeout = Some(timeout);
    options.http2_ping_interval = None;
    let running = start(&Shared::default(), options).await;
    let mut raw = Raw::client(running.local_addr().unwrap()).await;
    // INITIAL_WINDOW_SIZE
    let window = |bytes| Frame::new(Frame::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, bytes]);
    let mut block = vec![0x83, 0x86];
    block.extend(b"\x04\x08/endless");
    raw.write_all(&[window(10), Frame::headers(1, 5, &block)])
        .await;
    let data = soon(raw.until(|frame| frame.kind == Frame::DATA)).await;
    assert_eq!(data.payload.len(), 10);
    let _held = stop_clock();
    for turn in 0..10 {
        // Ten bytes below nothing, then five: the stream is looked at all the same.
        raw.write_all(&[window(0), window(5), Frame::ping(0, [turn; 8])])
            .await;
        let told = raw.until(|frame| matches!(frame.kind, Frame::RESET | Frame::PING));
        if told.await.kind == Frame::RESET {
            assert!(turn >= 4, "{turn}");
            return;
        }
        tokio::time::advance(timeout / 4).await;
    }
    panic!("a stream that lets nothing through is kept");
}
