//! What this side says.

use std::fmt;

use bytes::Bytes;
use quill_core::{Headers, HttpMethod, RequestHead, ResponseHead};

use super::{Connection, UPDATE_BYTES};
use crate::error_code::ErrorCode;
use crate::event::Sent;
use crate::floods::Flood;
use crate::frame::{FrameHeader, HEADER_BYTES, flag, kind};
use crate::head::stays_behind;
use crate::hpack::{Encoder, Written};
use crate::streams::{End, Key};
use crate::window::WINDOW_BYTES_MAX;

/// Identifiers end here (RFC 9113, section 5.1.1).
const STREAM_MAX: u32 = 0x7fff_ffff;

/// In place of a status where a list is no head.
const TRAILERS: u16 = 0;

/// The fields of an answer's head or trailers, to know them again.
#[derive(Debug)]
pub(super) struct AnswerFields {
    status: u16,
    fields: Headers,
    /// Names and values that were added to them, each with a NUL behind it, which no
    /// field may hold.
    more: Vec<u8>,
}

impl AnswerFields {
    fn of(status: u16, fields: &Headers, more: &[(&str, &[u8])]) -> Self {
        let texts = more
            .iter()
            .flat_map(|(name, value)| [name.as_bytes(), b"\0", value, b"\0"]);
        Self {
            status,
            fields: fields.clone(),
            more: texts.flatten().copied().collect(),
        }
    }

    fn is(&self, status: u16, fields: &Headers, more: &[(&str, &[u8])]) -> bool {
        let mut left = &self.more[..];
        let mut follows = |text: &[u8]| match left.split_at_checked(text.len()) {
            Some((first, [0, rest @ ..])) if first == text => {
                left = rest;
                true
            }
            _ => false,
        };
        self.status == status
            && self.fields == *fields
            && (more.iter()).all(|(name, value)| follows(name.as_bytes()) && follows(value))
            && left.is_empty()
    }
}

/// Why no stream can be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// As many are open as the peer allows: later, when one has ended.
    Full,
    /// This connection takes no new ones: the peer is closing it, it failed, or its
    /// identifiers are used up.
    Closing,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "as many streams are open as the peer allows",
            Self::Closing => "the connection takes no new streams",
        })
    }
}

impl std::error::Error for OpenError {}

impl Connection {
    /// Notes that the application has begun to answer a request: a reset of it is then
    /// none of [`Limits::unseen_resets`](crate::Limits::unseen_resets).
    pub fn accept(&mut self, key: Key) {
        if let Some(stream) = self.streams.at(key) {
            stream.is_seen = true;
        }
    }

    /// Whether a stream is still open.
    #[must_use]
    pub fn is_open(&self, key: Key) -> bool {
        self.streams.peek(key).is_some()
    }

    /// Whether the request was HEAD, whose answer has no body.
    #[must_use]
    pub fn is_head_request(&self, key: Key) -> bool {
        self.streams
            .peek(key)
            .is_some_and(|stream| stream.is_head_request)
    }

    /// A client: sends a request's head; `end` when nothing follows.
    ///
    /// # Errors
    /// No stream can be opened now, or ever.
    pub fn open(
        &mut self,
        scheme: &str,
        head: &RequestHead,
        more: &[(&str, &[u8])],
        end: bool,
    ) -> Result<Key, OpenError> {
        let id = self.next_stream;
        if self.goaway_received || self.goaway_sent.is_some() || id > STREAM_MAX {
            return Err(OpenError::Closing);
        }
        if self.streams.len() >= self.peer.streams_max as usize {
            return Err(OpenError::Full);
        }
        self.next_stream = id + 2;
        let mut stream = self.stream(id);
        stream.is_seen = true;
        stream.head_sent = true;
        stream.send_ended = end;
        stream.is_head_request = method(&head.method) == "HEAD";
        let key = self.streams.insert(stream);
        self.put_block(id, end, |encoder, _, out| {
            encoder.field(b":method", method(&head.method).as_bytes(), false, out);
            encoder.field(b":scheme", scheme.as_bytes(), false, out);
            encoder.field(b":authority", head.authority.as_bytes(), false, out);
            encoder.field(b":path", head.target.as_bytes(), false, out);
            put_fields(encoder, &head.headers, false, out);
            put_more(encoder, more, out);
        });
        Ok(key)
    }

    /// A server: sends an answer's head, with `more` fields behind its own; `end` when
    /// nothing follows. A status that can't end an exchange is a mistake of the
    /// server's, and told as one.
    pub fn send_head(&mut self, key: Key, head: &ResponseHead, more: &[(&str, &[u8])], end: bool) {
        let Some(stream) = self.streams.at(key) else {
            return;
        };
        if stream.head_sent {
            return;
        }
        stream.head_sent = true;
        let status = match head.status {
            status @ 200..1000 => status,
            _ => 500,
        };
        self.put_known_block(key, end, status, &head.headers, more);
        if end {
            self.end_sending(key);
        }
    }

    /// Sends a part of a body, as much of it as the windows allow and at most `most`
    /// bytes; what was queued is taken off `data`. `end` when nothing follows it: it is
    /// told once all of it is queued.
    pub fn send_data(&mut self, key: Key, data: &mut Bytes, end: bool, most: usize) -> Sent {
        let mut left = most;
        let frame_bytes_max = self.peer.frame_bytes_max as usize;
        loop {
            let connection_open = self.send_window.open();
            let Some(stream) = self.streams.at(key) else {
                data.clear();
                return Sent::All;
            };
            if stream.send_ended || (data.is_empty() && !end) {
                return Sent::All;
            }
            let stream_open = stream.send_window.open();
            let room = stream_open
                .min(connection_open)
                .min(left)
                .min(frame_bytes_max);
            if room == 0 && !data.is_empty() {
                return match () {
                    () if left == 0 => Sent::Full,
                    () if stream_open == 0 => Sent::StreamBlocked,
                    () => Sent::ConnectionBlocked,
                };
            }
            let part = data.split_to(room.min(data.len()));
            let is_last = data.is_empty();
            stream.send_window.take(part.len());
            self.send_window.take(part.len());
            left -= part.len();
            let updates = u32::try_from(part.len() / UPDATE_BYTES).unwrap_or(u32::MAX);
            self.late_frames = self.late_frames.saturating_add(updates);
            if is_last || part.len() == frame_bytes_max {
                self.floods.forgive(Flood::SmallWindowUpdate, 2);
            }
            let header = FrameHeader {
                length: u32::try_from(part.len()).unwrap_or(u32::MAX),
                kind: kind::DATA,
                flags: if is_last && end { flag::END_STREAM } else { 0 },
                stream: key.id(),
            };
            self.output.buffer().extend_from_slice(&header.bytes());
            self.output.put(part);
            if is_last {
                if end {
                    self.end_sending(key);
                }
                return Sent::All;
            }
        }
    }

    /// Bytes that a body may send now: the windows have room for them.
    #[must_use]
    pub fn may_send(&self, key: Key) -> usize {
        let stream = self.streams.peek(key);
        let open = stream.map_or(0, |stream| stream.send_window.open());
        open.min(self.send_window.open())
    }

    /// Whether the peer may send more on a stream before it is given room.
    #[must_use]
    pub fn may_receive(&self, key: Key) -> bool {
        let stream = self.streams.peek(key);
        stream.is_some_and(|stream| !stream.receive_ended && stream.receive_window.is_open())
    }

    /// Ends a body with trailers.
    pub fn send_trailers(&mut self, key: Key, trailers: &Headers) {
        match self.streams.at(key) {
            Some(stream) if !stream.send_ended => {}
            _ => return,
        }
        if trailers.is_empty() {
            self.send_data(key, &mut Bytes::new(), true, 0);
            return;
        }
        self.put_known_block(key, true, TRAILERS, trailers, &[]);
        self.end_sending(key);
    }

    /// Resets a stream: nothing more is sent on it, and what comes is ignored.
    pub fn reset(&mut self, key: Key, code: ErrorCode) {
        let Some(stream) = self.streams.peek(key) else {
            return;
        };
        let end = if stream.receive_ended {
            End::Ended
        } else {
            End::ResetHere
        };
        self.remove(key, end);
        self.put_frame(kind::RST_STREAM, 0, key.id(), &code.0.to_be_bytes());
    }

    /// Gives the room again of bytes that came on a stream and were read.
    pub fn release(&mut self, key: Key, bytes: u32) {
        let Some(stream) = self.streams.at(key) else {
            // Its room was given again when it ended.
            return;
        };
        let bytes = bytes.min(stream.receive_window.held());
        let increment = stream.receive_window.release(bytes);
        // Who sends nothing more needs no room.
        let increment = increment.filter(|_| !stream.receive_ended);
        if let Some(increment) = increment {
            self.put_frame(kind::WINDOW_UPDATE, 0, key.id(), &increment.to_be_bytes());
        }
        self.release_connection(bytes);
    }

    /// Gives the connection's room again for bytes of a stream whose reader has gone:
    /// other streams go on, this one can't send beyond its window.
    pub fn discard(&mut self, key: Key, bytes: u32) {
        if let Some(stream) = self.streams.at(key) {
            let bytes = bytes.min(stream.receive_window.held());
            stream.receive_window.drop_held(bytes);
            self.release_connection(bytes);
        }
    }

    /// Says that no new streams will be taken from a moment on that the peer has not
    /// learned of yet: those under way still are (RFC 9113, section 6.8).
    pub fn announce_goaway(&mut self) {
        if self.goaway_sent.is_none() {
            self.put_goaway(WINDOW_BYTES_MAX, ErrorCode::NO_ERROR, &[]);
        }
    }

    /// Takes no more streams than have come: the peer may send later ones elsewhere.
    pub fn goaway(&mut self, code: ErrorCode) {
        let last = self.last_peer_stream;
        if self.goaway_sent.is_none_or(|sent| sent > last) {
            self.put_goaway(last, code, &[]);
        }
    }

    /// Sends a PING.
    pub fn send_ping(&mut self, data: [u8; 8]) {
        self.pings_unanswered = self.pings_unanswered.saturating_add(1);
        self.put_frame(kind::PING, 0, 0, &data);
    }

    fn end_sending(&mut self, key: Key) {
        if let Some(stream) = self.streams.at(key) {
            stream.send_ended = true;
        }
        self.remove_if_ended(key);
    }

    /// Queues the head of an answer with this status, or trailers. Many answers have
    /// them in common: they are written as before, if that means the same still.
    fn put_known_block(
        &mut self,
        key: Key,
        end: bool,
        status: u16,
        fields: &Headers,
        more: &[(&str, &[u8])],
    ) {
        self.put_block(key.id(), end, |encoder, written, out| {
            if let Some(block) = written.recall(encoder, |known| known.is(status, fields, more)) {
                out.extend_from_slice(block);
                return;
            }
            let (at, changes, literals) = (out.len(), encoder.changes(), encoder.literals());
            put_status(encoder, status, out);
            put_fields(encoder, fields, status == TRAILERS, out);
            put_more(encoder, more, out);
            if encoder.changes() == changes && encoder.literals() == literals {
                let block = out.get(at..).unwrap_or_default();
                written.remember(encoder, AnswerFields::of(status, fields, more), block);
            }
        });
    }

    /// Queues a header block, in as many frames as it takes.
    pub(super) fn put_block(
        &mut self,
        stream: u32,
        end: bool,
        write: impl FnOnce(&mut Encoder, &mut Written<AnswerFields>, &mut Vec<u8>),
    ) {
        let payload_bytes_max = self.peer.frame_bytes_max as usize;
        let out = self.output.buffer();
        let at = out.len();
        out.extend_from_slice(&[0; HEADER_BYTES]);
        write(&mut self.encoder, &mut self.written, out);
        let end_stream = if end { flag::END_STREAM } else { 0 };
        let length = out.len() - at - HEADER_BYTES;
        let mut header = FrameHeader {
            length: u32::try_from(length).unwrap_or(u32::MAX),
            kind: kind::HEADERS,
            flags: flag::END_HEADERS | end_stream,
            stream,
        };
        if length <= payload_bytes_max {
            if let Some(place) = out.get_mut(at..at + HEADER_BYTES) {
                place.copy_from_slice(&header.bytes());
            }
            return;
        }
        let block = out.split_off(at + HEADER_BYTES);
        out.truncate(at);
        header.flags = end_stream;
        let mut rest = &block[..];
        while !rest.is_empty() {
            let (part, after) = rest.split_at(rest.len().min(payload_bytes_max));
            rest = after;
            header.length = u32::try_from(part.len()).unwrap_or(u32::MAX);
            if rest.is_empty() {
                header.flags |= flag::END_HEADERS;
            }
            out.extend_from_slice(&header.bytes());
            out.extend_from_slice(part);
            header.kind = kind::CONTINUATION;
            header.flags = 0;
        }
    }
}

fn put_status(encoder: &mut Encoder, status: u16, out: &mut Vec<u8>) {
    if status != TRAILERS {
        let digit = |part: u16| b'0' + u8::try_from(part % 10).unwrap_or_default();
        let digits = [digit(status / 100), digit(status / 10), digit(status)];
        encoder.field(b":status", &digits, false, out);
    }
}

/// What frames the message is said in the head, never in trailers (RFC 9110, section
/// 6.5.1).
fn put_fields(encoder: &mut Encoder, headers: &Headers, are_trailers: bool, out: &mut Vec<u8>) {
    for (name, value) in headers.iter() {
        let is_late = are_trailers && name == "content-length";
        if !is_late && !stays_behind(name, value) {
            encoder.field(name.as_bytes(), value, false, out);
        }
    }
}

fn put_more(encoder: &mut Encoder, more: &[(&str, &[u8])], out: &mut Vec<u8>) {
    for (name, value) in more {
        encoder.field(name.as_bytes(), value, false, out);
    }
}

fn method(method: &HttpMethod) -> &str {
    match method {
        HttpMethod::Get => "GET",
        HttpMethod::Options => "OPTIONS",
        HttpMethod::Other(name) => name,
        _ => "POST",
    }
}
