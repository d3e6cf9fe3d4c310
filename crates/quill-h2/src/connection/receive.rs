//! Frames that came, but for those of header blocks.

use bytes::Bytes;

use super::{Connection, Stage};
use crate::config::Role;
use crate::error_code::ErrorCode;
use crate::event::Event;
use crate::fault::Fault;
use crate::floods::Flood;
use crate::frame::{FrameHeader, flag, kind, number, unpadded};
use crate::streams::{End, Key};

/// Window updates under this many bytes are small: they make for DATA frames that
/// cost more than they bring.
const SMALL_UPDATE_BYTES: u32 = 256;

type Outcome = Result<Option<Event>, Fault>;

impl Connection {
    /// Takes a frame of any type but DATA.
    pub(super) fn frame(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        match header.kind {
            kind::HEADERS => self.headers(header, payload),
            kind::CONTINUATION => self.continuation(header, payload),
            kind::WINDOW_UPDATE => self.take_window_update(header, payload),
            kind::RST_STREAM => self.take_rst_stream(header, payload),
            kind::SETTINGS => self.take_settings(header, payload),
            kind::PING => self.take_ping(header, payload),
            kind::GOAWAY => self.take_goaway(header, payload),
            kind::PRIORITY => self.take_priority(header, payload),
            // RFC 9113, section 8.4: clients can't push, and pushes to this client
            // were switched off.
            kind::PUSH_PROMISE => Err(Fault::protocol("pushes are not taken")),
            // RFC 9113, section 5.5.
            _ => self.ignored(),
        }
    }

    fn ignored(&mut self) -> Outcome {
        let limits = self.config.limits;
        self.floods.note(Flood::IgnoredFrame, &limits)?;
        Ok(None)
    }

    /// A frame that may have crossed the end of its stream, as some do.
    pub(super) fn late(&mut self) -> Outcome {
        match self.late_frames.checked_sub(1) {
            Some(left) => {
                self.late_frames = left;
                Ok(None)
            }
            None => self.ignored(),
        }
    }

    /// RFC 9113, section 6.1; `keep` makes what stays of the content.
    pub(super) fn data(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        keep: impl FnOnce(&[u8]) -> Bytes,
    ) -> Outcome {
        let Some(content) = unpadded(header, payload) else {
            return Err(Fault::protocol("the padding is longer than its frame"));
        };
        let length = header.length;
        let end = header.has(flag::END_STREAM);
        if header.stream == 0 || self.is_idle(header.stream) {
            return Err(Fault::protocol("DATA came for a stream that is idle"));
        }
        // RFC 9113, section 5.2.2: padding counts, and so do frames that are ignored.
        if !self.receive_window.receive(length) {
            return Err(Fault::flow("more DATA came than the connection's window"));
        }
        let Some(key) = self.streams.find(header.stream) else {
            self.release_connection(length);
            self.after_end(header.stream)?;
            // What fills the window was under way; what doesn't need not have been.
            return if content.is_empty() {
                self.late()
            } else {
                Ok(None)
            };
        };
        if let Err((code, message)) = self.take_data(key, length, content.len(), end) {
            self.release_connection(length);
            return Err(Fault::Stream(header.stream, code, message));
        }
        let padding = length - u32::try_from(content.len()).unwrap_or(length);
        if padding > 0 {
            self.release(key, padding);
        }
        if content.is_empty() && !end {
            let limits = self.config.limits;
            self.floods.note(Flood::EmptyData, &limits)?;
            return Ok(None);
        }
        if !content.is_empty() {
            self.floods.forgive(Flood::Ping, 1);
        }
        let data = keep(content);
        if end {
            self.remove_if_ended(key);
        }
        Ok(Some(Event::Data { key, data, end }))
    }

    /// Accounts for DATA of an open stream, or refuses it without a trace in its window.
    fn take_data(
        &mut self,
        key: Key,
        length: u32,
        content_bytes: usize,
        end: bool,
    ) -> Result<(), (ErrorCode, &'static str)> {
        let Some(stream) = self.streams.at(key) else {
            return Ok(());
        };
        if stream.receive_ended {
            let message = "DATA came after the end of its stream";
            return Err((ErrorCode::STREAM_CLOSED, message));
        }
        if !stream.has_head {
            return Err((ErrorCode::PROTOCOL_ERROR, "DATA came before a head"));
        }
        // RFC 9113, section 8.1.1.
        if let Some(left) = &mut stream.content_left {
            match left.checked_sub(content_bytes as u64) {
                Some(rest) if !end || rest == 0 => *left = rest,
                _ => {
                    let message = "the body has another length than content-length";
                    return Err((ErrorCode::PROTOCOL_ERROR, message));
                }
            }
        }
        if !stream.receive_window.receive(length) {
            let message = "more DATA came than the stream's window";
            return Err((ErrorCode::FLOW_CONTROL_ERROR, message));
        }
        stream.receive_ended = end;
        Ok(())
    }

    /// A frame for a stream that is over (RFC 9113, section 5.1, "closed").
    fn after_end(&self, stream: u32) -> Result<(), Fault> {
        // GOAWAY: what the peer opened above the last stream is ignored.
        let is_refused =
            self.role == Role::Server && self.goaway_sent.is_some_and(|last| stream > last);
        if is_refused || self.streams.end(stream) == Some(End::ResetHere) {
            return Ok(());
        }
        let message = "a frame came after the end of its stream";
        Err(Fault::Stream(stream, ErrorCode::STREAM_CLOSED, message))
    }

    /// RFC 9113, section 6.3, and 5.3 of RFC 7540: it is checked and ignored.
    fn take_priority(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        if header.stream == 0 {
            return Err(Fault::protocol("PRIORITY came for the connection"));
        }
        if payload.len() != 5 {
            let (code, message) = (ErrorCode::FRAME_SIZE_ERROR, "PRIORITY has not 5 bytes");
            return Err(Fault::Stream(header.stream, code, message));
        }
        if number(payload).is_some_and(|parent| parent & 0x7fff_ffff == header.stream) {
            let (code, message) = (ErrorCode::PROTOCOL_ERROR, "a stream depends on itself");
            return Err(Fault::Stream(header.stream, code, message));
        }
        self.ignored()
    }

    /// RFC 9113, section 6.4.
    fn take_rst_stream(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        if payload.len() != 4 {
            return Err(Fault::size("RST_STREAM has not 4 bytes"));
        }
        if header.stream == 0 || self.is_idle(header.stream) {
            return Err(Fault::protocol("RST_STREAM came for a stream that is idle"));
        }
        let code = ErrorCode(number(payload).unwrap_or_default());
        let Some(key) = self.streams.find(header.stream) else {
            return self.late();
        };
        let Some(stream) = self.remove(key, End::ResetByPeer) else {
            return Ok(None);
        };
        let limits = self.config.limits;
        if self.role == Role::Server && !stream.is_seen {
            self.floods.note(Flood::UnseenReset, &limits)?;
        } else if self.role == Role::Server && !stream.send_ended {
            self.floods.note(Flood::Reset, &limits)?;
        }
        let fault = None;
        Ok(Some(Event::Reset { key, code, fault }))
    }

    /// RFC 9113, section 6.5.
    fn take_settings(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        if header.stream != 0 {
            return Err(Fault::protocol("SETTINGS came for a stream"));
        }
        if header.has(flag::ACK) {
            if !payload.is_empty() {
                return Err(Fault::size("the acknowledgement of SETTINGS is not empty"));
            }
            self.acknowledged()?;
            return Ok(None);
        }
        let limits = self.config.limits;
        self.floods.note(Flood::Settings, &limits)?;
        let window_before = self.peer.window_bytes;
        self.peer.update(payload, self.role == Role::Client)?;
        if let Some((least, last)) = self.peer.table_bytes.take() {
            // RFC 7541, section 4.2: the peer has dropped fields at the least.
            self.encoder.set_table_bytes_max(least);
            self.encoder.set_table_bytes_max(last);
        }
        let shift = i64::from(self.peer.window_bytes) - i64::from(window_before);
        if shift != 0 {
            // RFC 9113, section 6.9.2: of streams that this side still sends on.
            let sending = self.streams.iter_mut().filter(|stream| !stream.send_ended);
            for stream in sending {
                if !stream.send_window.shift(shift) {
                    return Err(Fault::flow(
                        "INITIAL_WINDOW_SIZE takes a window over 2^31-1",
                    ));
                }
            }
        }
        self.put_frame(kind::SETTINGS, flag::ACK, 0, &[]);
        if self.stage == Stage::Settings {
            self.stage = Stage::Open;
            return Ok(Some(Event::Settings));
        }
        let event = if shift > 0 {
            Event::Writable(None)
        } else {
            Event::Settings
        };
        Ok(Some(event))
    }

    /// The peer has taken over this side's settings (RFC 9113, section 6.5.3).
    fn acknowledged(&mut self) -> Result<(), Fault> {
        if std::mem::replace(&mut self.is_acknowledged, true) {
            return Err(Fault::protocol("SETTINGS were acknowledged twice"));
        }
        let set = self.config.first_window_bytes();
        let shift = i64::from(set) - i64::from(self.first_window_bytes);
        self.first_window_bytes = set;
        if shift != 0 {
            for stream in self.streams.iter_mut() {
                stream.receive_window.shift(shift);
            }
        }
        Ok(())
    }

    /// RFC 9113, section 6.7.
    fn take_ping(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        if header.stream != 0 {
            return Err(Fault::protocol("PING came for a stream"));
        }
        let Ok(data) = <[u8; 8]>::try_from(payload) else {
            return Err(Fault::size("PING has not 8 bytes"));
        };
        if header.has(flag::ACK) {
            let Some(left) = self.pings_unanswered.checked_sub(1) else {
                return self.ignored();
            };
            self.pings_unanswered = left;
            return Ok(Some(Event::Pong(data)));
        }
        let limits = self.config.limits;
        self.floods.note(Flood::Ping, &limits)?;
        self.put_frame(kind::PING, flag::ACK, 0, &data);
        Ok(None)
    }

    /// RFC 9113, section 6.8.
    fn take_goaway(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        if header.stream != 0 {
            return Err(Fault::protocol("GOAWAY came for a stream"));
        }
        let (Some(last), Some(code)) = (number(payload), payload.get(4..).and_then(number)) else {
            return Err(Fault::size("GOAWAY has less than 8 bytes"));
        };
        let limits = self.config.limits;
        self.floods.note(Flood::Settings, &limits)?;
        self.goaway_received = true;
        let last = last & 0x7fff_ffff;
        let code = ErrorCode(code);
        Ok(Some(Event::GoAway { last, code }))
    }

    /// RFC 9113, section 6.9.
    fn take_window_update(&mut self, header: FrameHeader, payload: &[u8]) -> Outcome {
        let Ok(increment) = <[u8; 4]>::try_from(payload) else {
            return Err(Fault::size("WINDOW_UPDATE has not 4 bytes"));
        };
        let increment = u32::from_be_bytes(increment) & 0x7fff_ffff;
        if increment < SMALL_UPDATE_BYTES {
            let limits = self.config.limits;
            self.floods.note(Flood::SmallWindowUpdate, &limits)?;
        }
        let zero = "WINDOW_UPDATE has an increment of 0";
        let over = "WINDOW_UPDATE takes a window over 2^31-1";
        if header.stream == 0 {
            if increment == 0 {
                return Err(Fault::protocol(zero));
            }
            let was_open = self.send_window.open() > 0;
            if !self.send_window.shift(i64::from(increment)) {
                return Err(Fault::flow(over));
            }
            return Ok((!was_open).then_some(Event::Writable(None)));
        }
        if self.is_idle(header.stream) {
            let message = "WINDOW_UPDATE came for a stream that is idle";
            return Err(Fault::protocol(message));
        }
        let Some(key) = self.streams.find(header.stream) else {
            return self.late();
        };
        let fault = |code, message| Fault::Stream(header.stream, code, message);
        if increment == 0 {
            return Err(fault(ErrorCode::PROTOCOL_ERROR, zero));
        }
        let Some(stream) = self.streams.at(key) else {
            return Ok(None);
        };
        let was_open = stream.send_window.open() > 0;
        if !stream.send_window.shift(i64::from(increment)) {
            return Err(fault(ErrorCode::FLOW_CONTROL_ERROR, over));
        }
        Ok((!was_open).then_some(Event::Writable(Some(key))))
    }
}
