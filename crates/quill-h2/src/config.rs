//! What a connection allows its peer.

use crate::frame::PAYLOAD_BYTES_DEFAULT;
use crate::window::WINDOW_BYTES_DEFAULT;

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It sends requests.
    Client,
    /// It answers them.
    Server,
}

/// Sizes and limits of a connection. What is not within the RFC's bounds is
/// brought to the nearest value that is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// Streams that the peer may have open, 100 by default. A client lets a
    /// server open none, since it takes no pushes.
    pub streams_max: u32,
    /// What a stream's receive window may grow to, in bytes, as its reader keeps
    /// up; 1 MiB by default. It begins with at most 65,535.
    pub stream_window_bytes: u32,
    /// The connection's receive window in bytes, 65,535 to 2^31-1; 4 MiB by default.
    pub connection_window_bytes: u32,
    /// The largest payload of a frame from the peer, 2^14 to 2^24-1 bytes; 2^14
    /// by default.
    pub frame_bytes_max: u32,
    /// The size of a header list from the peer (RFC 9113, section 6.5.2); 16 KiB
    /// by default.
    pub headers_bytes_max: u32,
    /// What the peer may do often, and how often.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            streams_max: 100,
            stream_window_bytes: 1024 * 1024,
            connection_window_bytes: 4 * 1024 * 1024,
            frame_bytes_max: PAYLOAD_BYTES_DEFAULT,
            headers_bytes_max: 16 * 1024,
            limits: Limits::default(),
        }
    }
}

impl Config {
    /// What a stream's receive window begins with.
    pub(crate) fn first_window_bytes(&self) -> u32 {
        self.stream_window_bytes.clamp(1, WINDOW_BYTES_DEFAULT)
    }
}

/// How often something may happen: so often at once, and so often a second in
/// the long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// At once.
    pub burst: u32,
    /// A second, once the burst is used up.
    pub per_second: u32,
}

impl Rate {
    const fn new(burst: u32, per_second: u32) -> Self {
        Self { burst, per_second }
    }
}

/// Limits of what costs the peer little and this side work. Over any of them the
/// connection ends with ENHANCE_YOUR_CALM (RFC 9113, section 10.5).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Streams that the peer resets before the application has seen them ("rapid
    /// reset", CVE-2023-44487).
    pub unseen_resets: Rate,
    /// Streams that the peer resets before they have ended.
    pub resets: Rate,
    /// Streams that this side resets or refuses since the peer broke a rule
    /// ("MadeYouReset", CVE-2025-8671).
    pub stream_errors: Rate,
    /// CONTINUATION frames of one header block ("CONTINUATION flood",
    /// CVE-2024-27316); its bytes are bounded by four times the header list's.
    pub continuations_max: u32,
    /// DATA frames that bring neither bytes nor an end (CVE-2019-9518).
    pub empty_data: Rate,
    /// SETTINGS frames (CVE-2019-9515).
    pub settings: Rate,
    /// PING frames (CVE-2019-9512). Every request and every DATA frame with bytes
    /// allows one more, since some peers measure their bandwidth with them.
    pub pings: Rate,
    /// WINDOW_UPDATE frames of less than 256 bytes ("data dribble",
    /// CVE-2019-9511). Every DATA frame that was not cut by a window allows two more.
    pub small_window_updates: Rate,
    /// PRIORITY frames, frames of unknown types and answers to no PING (CVE-2019-9513).
    /// Every request allows four more. So do RST_STREAM, WINDOW_UPDATE, HEADERS
    /// and empty DATA frames count for streams that are gone, beyond four for each stream and one for
    /// every 4 KiB that were sent, which may have been on their way.
    pub ignored_frames: Rate,
    /// Fields that the peer pushes out of its header table, beyond 32 for each
    /// header block.
    pub table_evictions: Rate,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            unseen_resets: Rate::new(20, 20),
            resets: Rate::new(500, 50),
            stream_errors: Rate::new(1024, 10),
            continuations_max: 32,
            empty_data: Rate::new(100, 10),
            settings: Rate::new(50, 5),
            pings: Rate::new(200, 50),
            small_window_updates: Rate::new(1000, 100),
            ignored_frames: Rate::new(1000, 100),
            table_evictions: Rate::new(5000, 500),
        }
    }
}
