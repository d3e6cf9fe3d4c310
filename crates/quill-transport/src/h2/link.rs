//! An engine and its socket.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quill_h2::{Connection, ErrorCode};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::buffers::{READ_BYTES, Spare};
use crate::error::{TransportError, TransportErrorKind};

/// Slices that one write takes at most.
const SLICES_MAX: usize = 64;

/// A peer that does not read what it is told is not read from once so many bytes
/// wait beyond what bodies may queue.
const UNREAD_BYTES_MAX: usize = 64 * 1024;

/// Rounds of reading and writing in one turn of a connection's task, and events that
/// end it sooner; then other tasks have theirs.
pub(crate) const ROUNDS_MAX: usize = 16;
pub(crate) const EVENTS_MAX: usize = 1024;

/// How long a peer may take to acknowledge that the connection ends, or to read it.
pub(crate) const GOODBYE_TIMEOUT: Duration = Duration::from_secs(10);

/// What asks a peer whether it is there.
pub(crate) const ALIVE_PING: [u8; 8] = *b"q-alive\0";

/// An engine, the socket that it speaks on, and the beginning of a frame that was read.
pub(crate) struct Link<T> {
    pub(crate) engine: Connection,
    io: T,
    rest: BytesMut,
    /// What bodies may have waiting in the output.
    waiting_bytes_max: usize,
    /// The peer has sent its last byte.
    pub(crate) read_ended: bool,
    /// The socket was not read from, so it wakes nobody for what lies in it.
    is_held_back: bool,
}

impl<T: AsyncRead + AsyncWrite + Unpin> Link<T> {
    /// Speaks on `io`, of which `ahead` has been read: less than a frame.
    pub(crate) fn new(engine: Connection, io: T, ahead: Bytes, waiting_bytes_max: usize) -> Self {
        Self {
            engine,
            io,
            rest: BytesMut::from(ahead),
            waiting_bytes_max,
            read_ended: false,
            is_held_back: false,
        }
    }

    /// Takes buffers for a turn; what is to be read goes into the one returned.
    pub(crate) fn begin(&mut self) -> BytesMut {
        self.engine.output_mut().lend(Spare::take_write());
        let rest = std::mem::take(&mut self.rest);
        if rest.len() > READ_BYTES {
            return rest;
        }
        let mut input = Spare::take_read();
        input.extend_from_slice(&rest);
        input
    }

    /// Gives the buffers back after a turn.
    pub(crate) fn end(&mut self, input: BytesMut) {
        if input.len() > READ_BYTES {
            // A long frame is not copied again with each of its parts.
            self.rest = input;
        } else {
            if !input.is_empty() {
                self.rest = BytesMut::from(&input[..]);
            }
            Spare::give_read(input);
        }
        if let Some(buffer) = self.engine.output_mut().reclaim() {
            Spare::give_write(buffer);
        }
    }

    /// Reads once; whether something came, be it the end.
    pub(crate) fn read(&mut self, input: &mut BytesMut, cx: &mut Context<'_>) -> io::Result<bool> {
        self.is_held_back = !self.read_ended && !self.may_read();
        if self.read_ended || self.is_held_back {
            return Ok(false);
        }
        let missing = Connection::frame_bytes(input).saturating_sub(input.len());
        // No more than came already is trusted to come.
        input.reserve(missing.clamp(READ_BYTES / 4, READ_BYTES.max(input.len())));
        match pin!(self.io.read_buf(input)).poll(cx) {
            Poll::Pending => return Ok(false),
            Poll::Ready(Ok(count)) => self.read_ended = count == 0,
            Poll::Ready(Err(error)) => return Err(error),
        }
        Ok(true)
    }

    /// Writes what waits, as far as the socket takes it; whether all of it went.
    pub(crate) fn write(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        while !self.engine.output().is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let filled = self.engine.output().slices(&mut slices);
            let written = match slices.get(..filled).unwrap_or_default() {
                [slice] => Pin::new(&mut self.io).poll_write(cx, slice),
                slices => Pin::new(&mut self.io).poll_write_vectored(cx, slices),
            };
            match written {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(written)) => self.engine.output_mut().advance(written),
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(false),
            }
        }
        // TLS has a buffer of its own.
        Ok(Pin::new(&mut self.io).poll_flush(cx)?.is_ready())
    }

    /// Whether the last read was held back that may be made now: a turn goes on with it.
    pub(crate) fn owes_read(&self) -> bool {
        self.is_held_back && self.may_read()
    }

    fn may_read(&self) -> bool {
        let waiting_bytes_max = self.waiting_bytes_max.saturating_add(UNREAD_BYTES_MAX);
        self.engine.output().len() <= waiting_bytes_max
    }

    /// Bytes that bodies may queue now.
    pub(crate) fn room(&self) -> usize {
        let waiting = self.engine.output().len();
        self.waiting_bytes_max.saturating_sub(waiting)
    }

    pub(crate) fn into_io(self) -> T {
        self.io
    }
}

/// The error of an exchange whose stream was reset.
pub(crate) fn reset_error(code: ErrorCode, by_peer: bool) -> TransportError {
    let message = if by_peer {
        format!("the peer reset the stream: {code}")
    } else {
        format!("the stream was reset on this side: {code}")
    };
    TransportError::new(TransportErrorKind::Reset(code.0), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_read_that_was_held_back_is_owed_once_there_is_room() {
        let (io, mut peer) = tokio::io::duplex(1024 * 1024);
        let engine = Connection::server(quill_h2::Config::default());
        let mut link = Link::new(engine, io, Bytes::new(), 0);
        tokio::io::AsyncWriteExt::write_all(&mut peer, b"PRI")
            .await
            .unwrap();
        while link.engine.output().len() <= UNREAD_BYTES_MAX {
            link.engine.send_ping(ALIVE_PING);
        }
        std::future::poll_fn(|cx| {
            let mut input = link.begin();
            assert!(!link.read(&mut input, cx).unwrap());
            assert!(!link.owes_read(), "there is no room yet");
            assert!(link.write(cx).unwrap());
            assert!(link.owes_read(), "nobody wakes for what is there");
            assert!(link.read(&mut input, cx).unwrap());
            assert_eq!(&input[..], b"PRI");
            assert!(!link.read(&mut input, cx).unwrap());
            assert!(!link.owes_read(), "the socket wakes");
            Poll::Ready(())
        })
        .await;
    }

    #[test]
    fn a_long_beginning_of_a_frame_stays_where_it_is() {
        let engine = Connection::server(quill_h2::Config::default());
        let mut link = Link::new(engine, tokio::io::empty(), Bytes::new(), 0);
        for (bytes, stays) in [(100, false), (2 * READ_BYTES, true)] {
            let mut input = link.begin();
            input.resize(bytes, 7);
            let place = input.as_ptr();
            link.end(input);
            assert_eq!(link.rest.as_ptr() == place, stays);
            assert_eq!(link.begin(), vec![7; bytes]);
        }
    }
}
