//! What a server says about its HTTP/2 connection, read as the bytes go by.
//!
//! The pool asks for it in one place, whichever engine speaks HTTP/2. Hyper acts on
//! SETTINGS and GOAWAY and does not tell; Quill's own keeps them to its task.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The parts of HTTP/2's framing that are looked at (RFC 9113, sections 4.1,
/// 6.5 and 6.8).
const FRAME_HEAD_BYTES: usize = 9;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const SETTING_BYTES: usize = 6;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const ACK: u8 = 1;

/// How a connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// Nothing has come yet.
    Silent,
    /// The server's settings came, as they must (RFC 9113, section 3.4).
    Settings,
    /// An answer in HTTP/1 came.
    Http1,
    /// Something else came.
    Other,
}

/// What a server has said of its connection, and how much of it is in use.
#[derive(Debug)]
pub(super) struct Peer {
    streams_max: AtomicU32,
    is_going_away: AtomicBool,
    open: AtomicU32,
    idle_since: Mutex<Instant>,
    /// Told when there may be room for one stream more.
    room: Arc<Notify>,
}

impl Peer {
    fn new(room: Arc<Notify>) -> Self {
        Self {
            streams_max: AtomicU32::new(u32::MAX),
            is_going_away: AtomicBool::new(false),
            open: AtomicU32::new(0),
            idle_since: Mutex::new(Instant::now()),
            room,
        }
    }

    /// Whether the server lets no stream begin any more.
    pub(super) fn is_going_away(&self) -> bool {
        self.is_going_away.load(Ordering::Acquire)
    }

    /// Takes up a stream, unless the server or `streams_max` has no room for
    /// it. Only one caller at a time may ask.
    pub(super) fn take_stream(self: &Arc<Self>, streams_max: u32) -> Option<StreamSlot> {
        let allowed = self.streams_max.load(Ordering::Acquire).min(streams_max);
        if self.open.load(Ordering::Acquire) >= allowed {
            return None;
        }
        self.open.fetch_add(1, Ordering::AcqRel);
        Some(StreamSlot(Arc::clone(self)))
    }

    /// Since when no stream has been open; `None` while one is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let since = *self
            .idle_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        (self.open.load(Ordering::Acquire) == 0).then_some(since)
    }

    fn allow_streams(&self, streams: u32) {
        self.streams_max.store(streams, Ordering::Release);
        self.room.notify_waiters();
    }

    fn go_away(&self) {
        self.is_going_away.store(true, Ordering::Release);
        self.room.notify_waiters();
    }
}

/// One of the streams a connection has room for; given back when dropped.
#[derive(Debug)]
pub(super) struct StreamSlot(Arc<Peer>);

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let peer = &self.0;
        let mut idle_since = peer
            .idle_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // Most end while others are open: the time is taken for the last alone.
        if peer.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            *idle_since = Instant::now();
        }
        drop(idle_since);
        peer.room.notify_one();
    }
}

/// A byte stream on which a client speaks HTTP/2; notes what the server says
/// about the connection.
pub(super) struct Tap<T> {
    inner: T,
    frames: Frames,
}

impl<T> Tap<T> {
    /// Taps `inner`. `room` is told whenever there may be room for a stream;
    /// what comes first can be waited for, and its sender is gone when the
    /// connection is.
    pub(super) fn new(inner: T, room: Arc<Notify>) -> (Self, Arc<Peer>, watch::Receiver<Opening>) {
        let (tell, opening) = watch::channel(Opening::Silent);
        let peer = Arc::new(Peer::new(room));
        let frames = Frames {
            peer: Arc::clone(&peer),
            opening: tell,
            head: [0; FRAME_HEAD_BYTES],
            head_bytes: 0,
            rest: 0,
            setting: [0; SETTING_BYTES],
            setting_bytes: 0,
        };
        (Self { inner, frames }, peer, opening)
    }
}

/// Follows the frames; keeps no more of them than a head and a setting.
struct Frames {
    peer: Arc<Peer>,
    opening: watch::Sender<Opening>,
    head: [u8; FRAME_HEAD_BYTES],
    head_bytes: usize,
    /// Bytes of the current frame's payload that are still to come.
    rest: usize,
    setting: [u8; SETTING_BYTES],
    setting_bytes: usize,
}

impl Frames {
    fn feed(&mut self, mut bytes: &[u8]) {
        loop {
            if self.head_bytes < FRAME_HEAD_BYTES {
                fill(&mut self.head, &mut self.head_bytes, &mut bytes);
                if self.head_bytes < FRAME_HEAD_BYTES {
                    return;
                }
                self.begin_frame();
            }
            let (payload, after) = bytes.split_at(self.rest.min(bytes.len()));
            self.rest -= payload.len();
            bytes = after;
            if self.is_settings() {
                self.feed_settings(payload);
            }
            if self.rest > 0 {
                return;
            }
            self.end_frame();
        }
    }

    fn is_settings(&self) -> bool {
        let [_, _, _, kind, flags, ..] = self.head;
        kind == SETTINGS && flags & ACK == 0
    }

    fn begin_frame(&mut self) {
        let [a, b, c, kind, ..] = self.head;
        self.rest = u32::from_be_bytes([0, a, b, c]) as usize;
        self.setting_bytes = 0;
        if *self.opening.borrow() == Opening::Silent && kind != SETTINGS {
            let is_http1 = self.head.starts_with(b"HTTP/1.");
            let _ = self.opening.send(if is_http1 {
                Opening::Http1
            } else {
                Opening::Other
            });
        }
    }

    fn end_frame(&mut self) {
        self.head_bytes = 0;
        let [_, _, _, kind, ..] = self.head;
        match kind {
            GOAWAY => self.peer.go_away(),
            SETTINGS if *self.opening.borrow() == Opening::Silent => {
                let _ = self.opening.send(Opening::Settings);
            }
            _ => {}
        }
    }

    fn feed_settings(&mut self, mut payload: &[u8]) {
        while !payload.is_empty() {
            fill(&mut self.setting, &mut self.setting_bytes, &mut payload);
            if self.setting_bytes < SETTING_BYTES {
                return;
            }
            self.setting_bytes = 0;
            let [id @ .., a, b, c, d] = self.setting;
            if u16::from_be_bytes(id) == MAX_CONCURRENT_STREAMS {
                self.peer.allow_streams(u32::from_be_bytes([a, b, c, d]));
            }
        }
    }
}

/// Moves bytes into what is free of `buffer`.
fn fill(buffer: &mut [u8], filled: &mut usize, bytes: &mut &[u8]) {
    let free = buffer.get_mut(*filled..).unwrap_or_default();
    let take = free.len().min(bytes.len());
    let (now, later) = bytes.split_at(take);
    for (place, byte) in free.iter_mut().zip(now) {
        *place = *byte;
    }
    *filled += take;
    *bytes = later;
}

impl<T: AsyncRead + Unpin> AsyncRead for Tap<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let read = buf.filled().get(before..).unwrap_or_default();
        self.frames.feed(read);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Tap<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> (Frames, Arc<Peer>, watch::Receiver<Opening>) {
        let (tap, peer, opening) = Tap::new((), Arc::default());
        (tap.frames, peer, opening)
    }

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u8::try_from(payload.len()).unwrap();
        let mut bytes = vec![0, 0, length, kind, flags, 0, 0, 0, 0];
        bytes.extend(payload);
        bytes
    }

    fn setting(id: u16, value: u32) -> Vec<u8> {
        [&id.to_be_bytes()[..], &value.to_be_bytes()[..]].concat()
    }

    #[test]
    fn what_is_said_of_a_connection_is_found_however_the_bytes_are_cut() {
        let bytes = [
            frame(SETTINGS, 0, &[setting(4, 9), setting(3, 2)].concat()),
            // Would be SETTINGS, were it not the payload of DATA.
            frame(0, 0, &frame(SETTINGS, 0, &setting(3, 7))),
            frame(SETTINGS, ACK, &[]),
            frame(SETTINGS, 0, &setting(5, 20_000)),
            frame(GOAWAY, 0, &[0; 8]),
        ]
        .concat();
        for cut in 1..=bytes.len() {
            let (mut frames, peer, opening) = frames();
            for part in bytes.chunks(cut) {
                frames.feed(part);
            }
            assert_eq!(*opening.borrow(), Opening::Settings, "{cut}");
            assert_eq!(peer.streams_max.load(Ordering::Relaxed), 2, "{cut}");
            assert!(peer.is_going_away(), "{cut}");
        }
    }

    #[test]
    fn what_is_no_http2_is_told_by_its_first_bytes() {
        for (bytes, said) in [
            (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], Opening::Http1),
            (b"SSH-2.0-OpenSSH_9.2\r\n", Opening::Other),
            (b"HTTP/1.1", Opening::Silent),
        ] {
            let (mut frames, _, opening) = frames();
            frames.feed(bytes);
            assert_eq!(*opening.borrow(), said);
        }
    }

    #[test]
    fn streams_are_taken_up_to_the_lower_limit_and_given_back() {
        let (mut frames, peer, _opening) = frames();
        let one = peer.take_stream(1).unwrap();
        assert!(peer.take_stream(1).is_none());
        assert!(peer.idle_since().is_none());
        frames.feed(&frame(SETTINGS, 0, &setting(3, 2)));
        let two = peer.take_stream(9).unwrap();
        assert!(peer.take_stream(9).is_none());
        drop((one, two));
        assert!(peer.idle_since().is_some());
        assert!(peer.take_stream(9).is_some());
    }
}
