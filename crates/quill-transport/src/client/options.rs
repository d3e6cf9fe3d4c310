//! How a client connects.

use std::time::Duration;

use crate::bounds::{
    CONNECTION_WINDOW_BYTES, FRAME_BYTES, Http2Engine, OptionsError, WINDOW_BYTES, at_least_one,
    time, time_from, within,
};

/// Limits and timeouts of a client's connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Speaks HTTP/1.1 in place of HTTP/2, for old hops. Off by default.
    pub http1: bool,
    /// What speaks HTTP/2; Quill's own engine by default.
    pub http2_engine: Http2Engine,
    /// How long making a connection may take: the name's look-up, the attempts
    /// on its addresses and the TLS handshake together. 10 s by default.
    pub connect_timeout: Duration,
    /// How long after the start of an attempt on one address the next address
    /// is tried beside it (RFC 8305). 250 ms by default.
    pub attempt_delay: Duration,
    /// Size of an answer's head in bytes, 1 KiB to 1 MiB. 16 KiB by default.
    pub headers_bytes_max: u32,
    /// Bytes the server may send on one HTTP/2 stream before they are read, 1
    /// to 2^31-1. 1 MiB by default.
    pub http2_stream_window_bytes: u32,
    /// Bytes the server may send on all streams of an HTTP/2 connection before
    /// they are read, 65,535 to 2^31-1; what a connection may hold of answers
    /// that nobody reads. `None`, the default, is a whole
    /// `http2_stream_window_bytes` for each of `http2_streams_max` streams
    /// (250 MiB): with less, a few answers that are not read stop all others
    /// of their connection.
    pub http2_connection_window_bytes: Option<u32>,
    /// Whether windows follow bandwidth and delay up to 16 MiB, in place of the
    /// two sizes above; the connection's is then no larger than a stream's, so
    /// that one answer that is not read can stop the others. Off by default.
    pub http2_adaptive_window: bool,
    /// Exchanges at a time on one HTTP/2 connection, where the server does not
    /// allow fewer. 1 or more, 250 by default.
    pub http2_streams_max: u32,
    /// HTTP/2 connections at a time: a further one is made when all streams
    /// are in use that the others may have; where there are so many, exchanges
    /// wait. 1 or more, 8 by default.
    pub http2_connections_max: usize,
    /// Size of the largest HTTP/2 frame the server may send, in bytes, 2^14 to
    /// 2^24-1. 16 KiB by default.
    pub http2_frame_bytes_max: u32,
    /// Bytes that one HTTP/2 stream's request may have waiting for the
    /// server's window, 1 to 2^32-1. 256 KiB by default.
    pub http2_send_buffer_bytes_max: usize,
    /// After how long without a word from the server it is pinged while an
    /// exchange is open, so that a connection that leads nowhere is noticed; 10
    /// s or more, `None` for never. 6 min by default: servers may close
    /// connections that are pinged more often than every 5. Doubled when a
    /// server asks for calm (ENHANCE_YOUR_CALM; gRPC proposal A8).
    pub http2_ping_interval: Option<Duration>,
    /// How long the server may take to answer a ping before the connection is
    /// given up. 20 s by default.
    pub http2_ping_timeout: Duration,
    /// Whether to ping while no exchange is open too. Off by default.
    pub http2_ping_while_idle: bool,
    /// Exchanges at a time on HTTP/1.1, each on a connection of its own;
    /// further ones wait. 1 or more, 256 by default.
    pub http1_connections_max: usize,
    /// HTTP/1.1 connections kept for later exchanges. 16 by default.
    pub http1_idle_connections_max: usize,
    /// How long a connection is kept for a later exchange: each of HTTP/1.1, and
    /// of HTTP/2 each but one. 30 s by default, less than servers commonly wait.
    pub idle_timeout: Duration,
    /// After how long without a byte the system probes a TCP connection (every
    /// 15 s then), so that one that leads nowhere ends and one that is idle
    /// outlives the tables of routers on the way; `None` for never. 60 s by
    /// default.
    pub tcp_keepalive: Option<Duration>,
}

/// Pings more often than this are for nobody (gRPC proposal A8).
const PING_INTERVAL_MIN: Duration = Duration::from_secs(10);

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            http1: false,
            http2_engine: Http2Engine::default(),
            connect_timeout: Duration::from_secs(10),
            attempt_delay: Duration::from_millis(250),
            headers_bytes_max: 16 * 1024,
            http2_stream_window_bytes: 1024 * 1024,
            http2_connection_window_bytes: None,
            http2_adaptive_window: false,
            http2_streams_max: 250,
            http2_connections_max: 8,
            http2_frame_bytes_max: 16 * 1024,
            http2_send_buffer_bytes_max: 256 * 1024,
            http2_ping_interval: Some(Duration::from_secs(6 * 60)),
            http2_ping_timeout: Duration::from_secs(20),
            http2_ping_while_idle: false,
            http1_connections_max: 256,
            http1_idle_connections_max: 16,
            idle_timeout: Duration::from_secs(30),
            tcp_keepalive: Some(Duration::from_secs(60)),
        }
    }
}

impl ClientOptions {
    /// Whether every value is within its bounds.
    ///
    /// # Errors
    /// The first one that is not.
    pub fn check(&self) -> Result<(), OptionsError> {
        within(
            "headers_bytes_max",
            self.headers_bytes_max,
            1024..=1024 * 1024,
        )?;
        let stream = self.http2_stream_window_bytes;
        within("http2_stream_window_bytes", stream, WINDOW_BYTES)?;
        // What is not set must fit into the largest window.
        let streams_max = match self.http2_connection_window_bytes {
            Some(connection) => {
                within(
                    "http2_connection_window_bytes",
                    connection,
                    CONNECTION_WINDOW_BYTES,
                )?;
                u32::MAX
            }
            None => CONNECTION_WINDOW_BYTES.end() / stream,
        };
        within("http2_streams_max", self.http2_streams_max, 1..=streams_max)?;
        at_least_one("http2_connections_max", self.http2_connections_max)?;
        within(
            "http2_frame_bytes_max",
            self.http2_frame_bytes_max,
            FRAME_BYTES,
        )?;
        within(
            "http2_send_buffer_bytes_max",
            self.http2_send_buffer_bytes_max,
            1..=u32::MAX as usize,
        )?;
        let connections = self.http1_connections_max;
        within("http1_connections_max", connections, 1..=1_000_000)?;
        time("connect_timeout", Some(self.connect_timeout))?;
        time("attempt_delay", Some(self.attempt_delay))?;
        time_from(
            "http2_ping_interval",
            self.http2_ping_interval,
            PING_INTERVAL_MIN,
        )?;
        time("http2_ping_timeout", Some(self.http2_ping_timeout))?;
        time("idle_timeout", Some(self.idle_timeout))?;
        time_from("tcp_keepalive", self.tcp_keepalive, Duration::from_secs(1))
    }

    /// The connection's window, as it is set or as large as its streams' are
    /// together.
    pub(super) fn connection_window_bytes(&self) -> u32 {
        let all = self
            .http2_stream_window_bytes
            .saturating_mul(self.http2_streams_max)
            .max(*CONNECTION_WINDOW_BYTES.start());
        self.http2_connection_window_bytes.unwrap_or(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_within_their_bounds_and_others_are_refused() {
        ClientOptions::default().check().unwrap();
        let broken: [fn(&mut ClientOptions); 7] = [
            |o| o.http2_streams_max = 4096,
            |o| o.http2_connections_max = 0,
            |o| o.http2_ping_interval = Some(Duration::from_secs(9)),
            |o| o.http2_frame_bytes_max = 50 * 1024 * 1024,
            |o| o.http1_connections_max = 0,
            |o| o.connect_timeout = Duration::ZERO,
            |o| o.http2_connection_window_bytes = Some(u32::MAX),
        ];
        for change in broken {
            let mut options = ClientOptions::default();
            change(&mut options);
            assert!(options.check().is_err(), "{options:?}");
        }
    }
}
