//! Header blocks that came: heads and trailers.

use quill_core::{ResponseHead, SharedHead};

use super::{Block, BlockMeta, Connection};
use crate::config::Role;
use crate::error_code::ErrorCode;
use crate::event::Event;
use crate::fault::Fault;
use crate::floods::Flood;
use crate::frame::{FrameHeader, flag, kind, number, unpadded};
use crate::head::{Facts, Ignored, RequestSink, ResponseSink, TrailersSink};
use crate::hpack::Sink;
use crate::streams::{End, Key, Stream};
use crate::window::{ReceiveWindow, SendWindow};

/// Bytes that a header block may have beyond its list's: an encoder may write
/// lengths at length.
const BLOCK_FACTOR: usize = 4;

/// Fields that a block may push out of the header table before they count.
const EVICTIONS_FREE: u64 = 32;

type Outcome = Result<Option<Event>, Fault>;

impl Connection {
    /// RFC 9113, section 6.2.
    pub(super) fn headers(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        // A server's streams are opened here; no one else opens any.
        let opens = self.role == Role::Server && header.stream % 2 == 1;
        if header.stream == 0 || (!opens && self.is_idle(header.stream)) {
            return Err(Fault::protocol(
                "HEADERS came for a stream that can't be opened",
            ));
        }
        let Some(mut fragment) = unpadded(header, payload) else {
            return Err(Fault::protocol("the padding is longer than its frame"));
        };
        let mut depends_on_itself = false;
        if header.has(flag::PRIORITY) {
            let (Some(parent), Some(rest)) = (number(fragment), fragment.get(5..)) else {
                // With padding, it is that which leaves too little.
                return Err(match header.has(flag::PADDED) {
                    true => Fault::protocol("the padding is longer than its frame"),
                    false => Fault::size("HEADERS is too short for its priority"),
                });
            };
            // RFC 7540, section 5.3.1. A client's peer has no priorities to give.
            depends_on_itself = self.role == Role::Server && parent & 0x7fff_ffff == header.stream;
            fragment = rest;
        }
        let meta = BlockMeta {
            stream: header.stream,
            end: header.has(flag::END_STREAM),
            depends_on_itself,
        };
        if header.has(flag::END_HEADERS) {
            return self.block(meta, fragment);
        }
        let block = Block {
            meta,
            bytes: fragment.to_vec(),
            continuations: 0,
        };
        self.check_block(&block)?;
        self.block = Some(block);
        Ok(None)
    }

    /// RFC 9113, section 6.10.
    pub(super) fn continuation(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        let Some(mut block) = self.block.take() else {
            return Err(Fault::protocol("CONTINUATION continues no header block"));
        };
        block.bytes.extend_from_slice(payload);
        block.continuations += 1;
        self.check_block(&block)?;
        if header.has(flag::END_HEADERS) {
            return self.block(block.meta, &block.bytes);
        }
        self.block = Some(block);
        Ok(None)
    }

    fn check_block(&self, block: &Block) -> Result<(), Fault> {
        let bytes_max = (self.config.headers_bytes_max as usize).saturating_mul(BLOCK_FACTOR);
        if block.continuations > self.config.limits.continuations_max {
            return Err(Fault::calm(
                "a header block has too many CONTINUATION frames",
            ));
        }
        if block.bytes.len() > bytes_max {
            return Err(Fault::calm("a header block is too long"));
        }
        Ok(())
    }

    /// Takes a whole header block. It is decoded whatever becomes of its stream,
    /// since the next block refers to it (RFC 9113, section 4.3).
    fn block(&mut self, meta: BlockMeta, bytes: &[u8]) -> Outcome {
        if let Some(key) = self.streams.find(meta.stream) {
            let stream = self.streams.peek(key);
            if stream.is_some_and(|stream| stream.receive_ended) {
                self.decode(bytes, &mut Ignored)?;
                let message = "HEADERS came after the end of their stream";
                return Err(Fault::Stream(
                    meta.stream,
                    ErrorCode::STREAM_CLOSED,
                    message,
                ));
            }
            if meta.depends_on_itself {
                self.decode(bytes, &mut Ignored)?;
                return Err(malformed(meta, "a stream depends on itself"));
            }
            return if stream.is_some_and(|stream| stream.has_head) {
                self.trailers(key, meta, bytes)
            } else {
                self.response(key, meta, bytes)
            };
        }
        let is_new = self.role == Role::Server && meta.stream > self.last_peer_stream;
        if is_new {
            return self.open_block(meta, bytes);
        }
        self.decode(bytes, &mut Ignored)?;
        let message = "HEADERS came after the end of their stream";
        match self.streams.end(meta.stream) {
            Some(End::ResetHere) => self.late(),
            // RFC 9113, section 5.1, lets it be an error of the connection. A client's
            // other answers need not pay for it.
            Some(End::Ended) if self.role == Role::Server => {
                Err(Fault::Connection(ErrorCode::STREAM_CLOSED, message))
            }
            Some(End::Ended | End::ResetByPeer) => Err(Fault::Stream(
                meta.stream,
                ErrorCode::STREAM_CLOSED,
                message,
            )),
            None if self.role == Role::Client => self.late(),
            // RFC 9113, section 5.1.1: identifiers only grow.
            None => Err(Fault::protocol(
                "a new stream has a lower number than one before",
            )),
        }
    }

    /// A block that opens a stream.
    fn open_block(&mut self, meta: BlockMeta, bytes: &[u8]) -> Outcome {
        self.last_peer_stream = meta.stream;
        if self.goaway_sent.is_some_and(|last| meta.stream > last) {
            self.decode(bytes, &mut Ignored)?;
            return Ok(None);
        }
        if self.streams.len() >= self.config.streams_max as usize {
            self.decode(bytes, &mut Ignored)?;
            let message = "more streams are open than was agreed";
            return Err(Fault::Stream(
                meta.stream,
                ErrorCode::REFUSED_STREAM,
                message,
            ));
        }
        if meta.depends_on_itself {
            self.decode(bytes, &mut Ignored)?;
            return Err(malformed(meta, "a stream depends on itself"));
        }
        let Some((head, facts)) = self.request_head(meta, bytes)? else {
            return self.answer_too_large(meta);
        };
        if meta.end && facts.content_length.is_some_and(|length| length > 0) {
            return Err(malformed(meta, "a body was announced and none comes"));
        }
        self.floods.forgive(Flood::Ping, 1);
        self.floods.forgive(Flood::IgnoredFrame, 4);
        let mut stream = self.stream(meta.stream);
        stream.has_head = true;
        stream.content_left = facts.content_length;
        stream.is_head_request = facts.is_head_request;
        stream.receive_ended = meta.end;
        let key = self.streams.insert(stream);
        Ok(Some(Event::Request {
            key,
            head,
            content_length: facts.content_length,
            end: meta.end,
        }))
    }

    /// Reads a request's head; `None` when it is larger than allowed.
    fn request_head(
        &mut self,
        meta: BlockMeta,
        bytes: &[u8],
    ) -> Result<Option<(SharedHead, Facts)>, Fault> {
        let list_bytes_max = self.config.headers_bytes_max as usize;
        if let Some(made) = self.memo.recall(&self.decoder, bytes, list_bytes_max) {
            return Ok(Some(made.clone()));
        }
        let mut sink = RequestSink::default();
        let evictions = self.decoder.churn().evictions;
        let decoded = self.decoder.decode(bytes, list_bytes_max, &mut sink);
        let decoded = decoded.map_err(undecodable)?;
        if decoded.is_too_large() {
            self.count_evictions(evictions)?;
            return Ok(None);
        }
        let (head, facts) = sink.finish().map_err(|message| malformed(meta, message))?;
        let made = (SharedHead::new(head), facts);
        self.memo.remember(&decoded, || made.clone());
        self.count_evictions(evictions)?;
        Ok(Some(made))
    }

    fn decode(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<bool, Fault> {
        let evictions = self.decoder.churn().evictions;
        let list_bytes_max = self.config.headers_bytes_max as usize;
        let decoded = self.decoder.decode(bytes, list_bytes_max, sink);
        let is_too_large = decoded.map_err(undecodable)?.is_too_large();
        self.count_evictions(evictions)?;
        Ok(is_too_large)
    }

    fn count_evictions(&mut self, before: u64) -> Result<(), Fault> {
        let evictions = self.decoder.churn().evictions.saturating_sub(before);
        let counted = evictions.saturating_sub(EVICTIONS_FREE);
        if counted == 0 {
            return Ok(());
        }
        let counted = u32::try_from(counted).unwrap_or(u32::MAX);
        let limits = self.config.limits;
        self.floods
            .note_many(Flood::TableEviction, counted, &limits)
    }

    /// Answers a request whose head is too large: 431 (RFC 6585, section 5).
    fn answer_too_large(&mut self, meta: BlockMeta) -> Outcome {
        let limits = self.config.limits;
        self.floods.note(Flood::StreamError, &limits)?;
        self.put_block(meta.stream, true, |encoder, _, out| {
            encoder.field(b":status", b"431", false, out);
        });
        let end = if meta.end {
            End::Ended
        } else {
            let code = ErrorCode::NO_ERROR.0.to_be_bytes();
            self.put_frame(kind::RST_STREAM, 0, meta.stream, &code);
            End::ResetHere
        };
        self.streams.remember(meta.stream, end);
        Ok(None)
    }

    fn trailers(&mut self, key: Key, meta: BlockMeta, bytes: &[u8]) -> Outcome {
        let mut sink = TrailersSink::default();
        let is_too_large = self.decode(bytes, &mut sink)?;
        if is_too_large {
            return Err(malformed(meta, "the trailers are larger than allowed"));
        }
        // RFC 9113, section 8.1.
        if !meta.end {
            return Err(malformed(meta, "a second head, or trailers without an end"));
        }
        let trailers = sink.finish().map_err(|message| malformed(meta, message))?;
        if let Some(stream) = self.streams.at(key) {
            if stream.content_left.is_some_and(|left| left > 0) {
                let message = "the body has another length than content-length";
                return Err(malformed(meta, message));
            }
            stream.receive_ended = true;
        }
        self.remove_if_ended(key);
        Ok(Some(Event::Trailers { key, trailers }))
    }

    fn response(&mut self, key: Key, meta: BlockMeta, bytes: &[u8]) -> Outcome {
        let mut sink = ResponseSink::default();
        let is_too_large = self.decode(bytes, &mut sink)?;
        if is_too_large {
            return Err(malformed(meta, "the answer's head is larger than allowed"));
        }
        let (head, facts) = sink.finish().map_err(|message| malformed(meta, message))?;
        if (100..200).contains(&head.status) {
            // RFC 9113, section 8.1: an interim answer ends nothing.
            if meta.end {
                return Err(malformed(meta, "an interim answer ends its stream"));
            }
            let limits = self.config.limits;
            self.floods.note(Flood::IgnoredFrame, &limits)?;
            return Ok(None);
        }
        self.answer(key, meta, head, facts)
    }

    fn answer(&mut self, key: Key, meta: BlockMeta, head: ResponseHead, facts: Facts) -> Outcome {
        let Some(stream) = self.streams.at(key) else {
            return Ok(None);
        };
        // RFC 9110, sections 6.4.1 and 8.6: these say what length a body would have.
        let has_body = !stream.is_head_request && !matches!(head.status, 204 | 304);
        let length = facts.content_length.filter(|_| has_body);
        if meta.end && length.is_some_and(|length| length > 0) {
            return Err(malformed(meta, "a body was announced and none comes"));
        }
        stream.has_head = true;
        stream.content_left = if has_body { length } else { Some(0) };
        stream.receive_ended = meta.end;
        self.remove_if_ended(key);
        Ok(Some(Event::Response {
            key,
            head,
            content_length: length,
            end: meta.end,
        }))
    }

    /// A stream that has just been opened.
    pub(super) fn stream(&self, id: u32) -> Stream {
        let window = self.first_window_bytes;
        let target = self.config.first_window_bytes();
        Stream {
            id,
            send_window: SendWindow::new(self.peer.window_bytes),
            receive_window: ReceiveWindow::new(window, target, self.config.stream_window_bytes),
            content_left: None,
            has_head: false,
            is_head_request: false,
            is_seen: false,
            head_sent: false,
            receive_ended: false,
            send_ended: false,
        }
    }
}

/// RFC 9113, section 8.1.1.
fn malformed(meta: BlockMeta, message: &'static str) -> Fault {
    Fault::Stream(meta.stream, ErrorCode::PROTOCOL_ERROR, message)
}

fn undecodable(error: crate::hpack::Error) -> Fault {
    if error.is_flood() {
        Fault::calm("a header list is far larger than allowed")
    } else {
        let message = "a header block can't be decoded";
        Fault::Connection(ErrorCode::COMPRESSION_ERROR, message)
    }
}
