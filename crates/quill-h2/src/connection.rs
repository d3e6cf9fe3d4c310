//! One end of a connection.

mod headers;
mod receive;
mod send;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};
use quill_core::SharedHead;

pub use send::OpenError;

use crate::config::{Config, Role};
use crate::error_code::ErrorCode;
use crate::event::{ConnectionError, Event};
use crate::fault::Fault;
use crate::floods::{Flood, Floods};
use crate::frame::{FrameHeader, HEADER_BYTES, flag, kind};
use crate::head::Facts;
use crate::hpack;
use crate::output::Output;
use crate::settings::{self, PeerSettings};
use crate::streams::{End, Key, Stream, Streams};
use crate::window::{ReceiveWindow, SendWindow, WINDOW_BYTES_DEFAULT, WINDOW_BYTES_MAX};

/// How a client begins (RFC 9113, section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The size that the peer's header table has unless it is told otherwise.
const TABLE_BYTES: u32 = 4096;

/// DATA up to this size is copied out of the buffer that it was read into: a quarter
/// of the usual one, so that a short message never keeps four times its size alive.
const COPIED_BYTES_MAX: usize = 8 * 1024;

/// Frames of each stream that may cross its end: a reset, an end, an update or two.
const LATE_FRAMES: u32 = 4;

/// A peer may give the room of so many bytes again in one frame, or of more.
const UPDATE_BYTES: usize = 4 * 1024;

/// How far a connection has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A server awaits the client's preface.
    Preface,
    /// The peer's first frame must be SETTINGS (RFC 9113, section 3.4).
    Settings,
    Open,
    /// A GOAWAY for an error was queued; what comes is ignored.
    Failed,
}

/// A header block that goes on in CONTINUATION frames.
#[derive(Debug)]
struct Block {
    meta: BlockMeta,
    bytes: Vec<u8>,
    continuations: u32,
}

/// What a HEADERS frame says beside its block.
#[derive(Clone, Copy, Debug)]
struct BlockMeta {
    stream: u32,
    end: bool,
    depends_on_itself: bool,
}

/// One end of an HTTP/2 connection, client or server.
///
/// Bytes that were read go through [`receive`](Self::receive), which tells what they
/// mean, one event at a time; what is to be written gathers in
/// [`output`](Self::output). A caller that stops receiving while much waits there
/// bounds it: a frame is answered with fewer bytes than it has, give or take a few.
pub struct Connection {
    role: Role,
    config: Arc<Config>,
    stage: Stage,
    streams: Streams,
    decoder: hpack::Decoder,
    encoder: hpack::Encoder,
    /// The last requests, for as long as their header blocks would mean the same.
    memo: hpack::Memo<(SharedHead, Facts)>,
    /// The last header blocks of answers.
    written: hpack::Written<send::AnswerFields>,
    output: Output,
    block: Option<Block>,
    peer: PeerSettings,
    send_window: SendWindow,
    receive_window: ReceiveWindow,
    /// What new streams' receive windows begin with: the default until the peer
    /// has acknowledged what was set.
    first_window_bytes: u32,
    /// The peer has acknowledged this side's SETTINGS, of which there is one.
    is_acknowledged: bool,
    /// Of the peer's streams, the last that was opened.
    last_peer_stream: u32,
    /// Of this side's streams, the next.
    next_stream: u32,
    /// What this side's GOAWAY named as the last stream that it will handle.
    goaway_sent: Option<u32>,
    /// The peer will handle no new streams.
    goaway_received: bool,
    floods: Floods,
    /// Frames that may still come for streams that have ended.
    late_frames: u32,
    /// Pings of this side's that were not answered.
    pings_unanswered: u32,
}

impl Connection {
    /// A server's end; its SETTINGS are queued.
    #[must_use]
    pub fn server(config: impl Into<Arc<Config>>) -> Self {
        Self::new(Role::Server, config.into())
    }

    /// A client's end; its preface and SETTINGS are queued.
    #[must_use]
    pub fn client(config: impl Into<Arc<Config>>) -> Self {
        Self::new(Role::Client, config.into())
    }

    fn new(role: Role, config: Arc<Config>) -> Self {
        let window = config.connection_window_bytes.max(WINDOW_BYTES_DEFAULT);
        let mut connection = Self {
            role,
            stage: match role {
                Role::Client => Stage::Settings,
                Role::Server => Stage::Preface,
            },
            streams: Streams::default(),
            decoder: hpack::Decoder::new(TABLE_BYTES),
            encoder: hpack::Encoder::new(),
            memo: hpack::Memo::new(),
            written: hpack::Written::default(),
            output: Output::default(),
            block: None,
            peer: PeerSettings::default(),
            send_window: SendWindow::new(WINDOW_BYTES_DEFAULT),
            receive_window: ReceiveWindow::new(window, window, window),
            first_window_bytes: WINDOW_BYTES_DEFAULT,
            is_acknowledged: false,
            last_peer_stream: 0,
            next_stream: 1,
            goaway_sent: None,
            goaway_received: false,
            floods: Floods::new(),
            late_frames: 0,
            pings_unanswered: 0,
            config,
        };
        connection.greet();
        connection
    }

    /// Queues the preface, SETTINGS and the connection's window.
    fn greet(&mut self) {
        let out = self.output.buffer();
        let mut payload = Vec::with_capacity(30);
        match self.role {
            Role::Client => {
                out.extend_from_slice(PREFACE);
                settings::put(&mut payload, settings::ENABLE_PUSH, 0);
            }
            Role::Server => {
                let streams = self.config.streams_max;
                settings::put(&mut payload, settings::MAX_CONCURRENT_STREAMS, streams);
            }
        }
        let window = self.config.first_window_bytes();
        if window != WINDOW_BYTES_DEFAULT {
            settings::put(&mut payload, settings::INITIAL_WINDOW_SIZE, window);
        }
        if self.config.frame_bytes_max > crate::frame::PAYLOAD_BYTES_DEFAULT {
            let bytes = self.config.frame_bytes_max;
            settings::put(&mut payload, settings::MAX_FRAME_SIZE, bytes);
        }
        let list = self.config.headers_bytes_max;
        settings::put(&mut payload, settings::MAX_HEADER_LIST_SIZE, list);
        self.put_frame(kind::SETTINGS, 0, 0, &payload);
        let more = self
            .config
            .connection_window_bytes
            .saturating_sub(WINDOW_BYTES_DEFAULT);
        if more > 0 {
            self.put_frame(kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes());
        }
    }

    /// Lets the counts of [`Limits`](crate::Limits) leak until `now`; to be called
    /// now and then.
    pub fn advance(&mut self, now: Instant) {
        self.floods.advance(now, &self.config.limits);
    }

    /// The next event of what was read. `None` when more bytes are needed; what is
    /// left in `input` is then the beginning of a frame.
    pub fn receive(&mut self, input: &mut BytesMut) -> Option<Event> {
        loop {
            let fault = match self.step(input) {
                Ok(Step::Event(event)) => return Some(event),
                Ok(Step::Silent) => continue,
                Ok(Step::Wait) => return None,
                Err(fault) => fault,
            };
            let event = match fault {
                Fault::Connection(code, message) => Some(self.fail(code, message)),
                Fault::Stream(stream, code, message) => self.fail_stream(stream, code, message),
            };
            if event.is_some() {
                return event;
            }
        }
    }

    /// How many bytes the frame has that `input` begins with, at least.
    #[must_use]
    pub fn frame_bytes(input: &[u8]) -> usize {
        let header = input.first_chunk().map(|bytes| FrameHeader::read(*bytes));
        header.map_or(HEADER_BYTES, |header| HEADER_BYTES + header.length as usize)
    }

    /// Takes one frame.
    fn step(&mut self, input: &mut BytesMut) -> Result<Step, Fault> {
        match self.stage {
            Stage::Preface => return self.preface(input),
            Stage::Failed => {
                input.clear();
                return Ok(Step::Wait);
            }
            Stage::Settings | Stage::Open => {}
        }
        let Some(header) = input.first_chunk().map(|bytes| FrameHeader::read(*bytes)) else {
            return Ok(Step::Wait);
        };
        if header.length > self.config.frame_bytes_max {
            return Err(Fault::size("a frame is longer than was agreed"));
        }
        let end = HEADER_BYTES + header.length as usize;
        if input.len() < end {
            return Ok(Step::Wait);
        }
        if self.stage == Stage::Settings && (header.kind != kind::SETTINGS || header.has(flag::ACK))
        {
            return Err(Fault::protocol("the first frame is not SETTINGS"));
        }
        // RFC 9113, section 4.3: nothing comes between the parts of a header block.
        if let Some(block) = &self.block
            && (header.kind != kind::CONTINUATION || header.stream != block.meta.stream)
        {
            return Err(Fault::protocol("a header block is interrupted"));
        }
        let event = if header.kind == kind::DATA && end > COPIED_BYTES_MAX {
            let payload = input.split_to(end).freeze().slice(HEADER_BYTES..);
            self.data(header, &payload, |content| payload.slice_ref(content))?
        } else {
            let payload = input.get(HEADER_BYTES..end).unwrap_or_default();
            let event = match header.kind {
                kind::DATA => self.data(header, payload, Bytes::copy_from_slice),
                _ => self.frame(header, payload),
            };
            input.advance(end);
            event?
        };
        Ok(event.map_or(Step::Silent, Step::Event))
    }

    /// Checks what there is of a client's preface.
    fn preface(&mut self, input: &mut BytesMut) -> Result<Step, Fault> {
        let length = input.len().min(PREFACE.len());
        if input.get(..length) != PREFACE.get(..length) {
            return Err(Fault::protocol(
                "the client's preface is not that of HTTP/2",
            ));
        }
        if length < PREFACE.len() {
            return Ok(Step::Wait);
        }
        input.advance(length);
        self.stage = Stage::Settings;
        Ok(Step::Silent)
    }

    /// Ends the connection for an error (RFC 9113, section 5.4.1).
    fn fail(&mut self, code: ErrorCode, message: &'static str) -> Event {
        self.put_goaway(self.last_peer_stream, code, message.as_bytes());
        self.stage = Stage::Failed;
        Event::Failed(ConnectionError { code, message })
    }

    /// Ends a stream for an error (RFC 9113, section 5.4.2).
    fn fail_stream(
        &mut self,
        stream: u32,
        code: ErrorCode,
        message: &'static str,
    ) -> Option<Event> {
        // An idle stream can't be reset (section 6.4).
        if self.is_idle(stream) {
            return Some(self.fail(code, message));
        }
        let limits = self.config.limits;
        if let Err(Fault::Connection(code, message)) = self.floods.note(Flood::StreamError, &limits)
        {
            return Some(self.fail(code, message));
        }
        self.put_frame(kind::RST_STREAM, 0, stream, &code.0.to_be_bytes());
        let Some(key) = self.streams.find(stream) else {
            self.streams.remember(stream, End::ResetHere);
            return None;
        };
        self.remove(key, End::ResetHere);
        let fault = Some(message);
        Some(Event::Reset { key, code, fault })
    }

    /// Removes a stream; what it held of the connection's window is free again.
    fn remove(&mut self, key: Key, end: End) -> Option<Stream> {
        let stream = self.streams.remove(key, end)?;
        self.late_frames = self.late_frames.saturating_add(LATE_FRAMES);
        self.release_connection(stream.receive_window.held());
        Some(stream)
    }

    /// Removes a stream whose halves have both ended.
    fn remove_if_ended(&mut self, key: Key) {
        let stream = self.streams.peek(key);
        if stream.is_some_and(|stream| stream.receive_ended && stream.send_ended) {
            self.remove(key, End::Ended);
        }
    }

    /// Whether nobody has used this stream yet (RFC 9113, section 5.1).
    fn is_idle(&self, stream: u32) -> bool {
        let is_of_client = stream % 2 == 1;
        match self.role {
            Role::Server => !is_of_client || stream > self.last_peer_stream,
            Role::Client => !is_of_client || stream >= self.next_stream,
        }
    }

    /// Gives room of the connection's window again.
    fn release_connection(&mut self, bytes: u32) {
        if let Some(increment) = self.receive_window.release(bytes) {
            self.put_frame(kind::WINDOW_UPDATE, 0, 0, &increment.to_be_bytes());
        }
    }

    fn put_frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let header = FrameHeader {
            length: u32::try_from(payload.len()).unwrap_or(u32::MAX),
            kind,
            flags,
            stream,
        };
        let out = self.output.buffer();
        out.extend_from_slice(&header.bytes());
        out.extend_from_slice(payload);
    }

    fn put_goaway(&mut self, last: u32, code: ErrorCode, debug: &[u8]) {
        self.goaway_sent = Some(last);
        let mut payload = Vec::with_capacity(8 + debug.len());
        payload.extend_from_slice(&last.to_be_bytes());
        payload.extend_from_slice(&code.0.to_be_bytes());
        payload.extend_from_slice(debug);
        self.put_frame(kind::GOAWAY, 0, 0, &payload);
    }

    /// What waits to be written.
    #[must_use]
    pub fn output(&self) -> &Output {
        &self.output
    }

    /// What waits to be written, to note what has been.
    pub fn output_mut(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Streams that are open.
    #[must_use]
    pub fn streams_open(&self) -> usize {
        self.streams.len()
    }

    /// Whether the peer's preface and SETTINGS have come.
    #[must_use]
    pub fn is_greeted(&self) -> bool {
        matches!(self.stage, Stage::Open | Stage::Failed)
    }

    /// Whether the peer was told which of its streams is the last.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.goaway_sent.is_some_and(|last| last < WINDOW_BYTES_MAX)
    }

    /// Whether the peer takes no new streams.
    #[must_use]
    pub fn is_told_to_go(&self) -> bool {
        self.goaway_received
    }

    /// Whether it ended for an error.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        self.stage == Stage::Failed
    }

    /// Gives memory back that only a busy connection needs.
    pub fn shrink(&mut self) {
        self.streams.shrink();
        self.decoder.release_scratch();
        self.encoder.release_scratch();
        self.memo = hpack::Memo::new();
        self.written = hpack::Written::default();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("role", &self.role)
            .field("stage", &self.stage)
            .field("streams_open", &self.streams.len())
            .finish_non_exhaustive()
    }
}

/// What one step over the input came to.
enum Step {
    Event(Event),
    /// A frame that nobody is told of.
    Silent,
    /// More bytes are needed.
    Wait,
}

#[cfg(test)]
mod tests;
