//! How a client connects.

use std::time::Duration;

use crate::bounds::{
    CONNECTION_WINDOW_BYTES, FRAME_BYTES, Http2Engine, OptionsError, WINDOW_BYTES, time, within,
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
    /// they are read, 65,535 to 2^31-1. 4 MiB by default.
    pub http2_connection_window_bytes: u32,
    /// Whether windows follow the bandwidth and delay that are measured, in
    /// place of the two sizes above. Off by default.
    pub http2_adaptive_window: bool,
    /// Size of the largest HTTP/2 frame the server may send, in bytes, 2^14 to
    /// 2^24-1. 16 KiB by default.
    pub http2_frame_bytes_max: u32,
    /// Bytes that one HTTP/2 stream's request may have waiting for the
    /// server's window, 1 to 2^32-1. 256 KiB by default.
    pub http2_send_buffer_bytes_max: usize,
    /// How often the server is pinged while calls are open; `None` for never,
    /// the default, since servers may refuse frequent pings. Doubled when a
    /// server says so (ENHANCE_YOUR_CALM; gRPC proposal A8).
    pub http2_ping_interval: Option<Duration>,
    /// How long the server may take to answer a ping before the connection is
    /// given up. 20 s by default.
    pub http2_ping_timeout: Duration,
    /// Whether to ping while no call is open too. Off by default.
    pub http2_ping_while_idle: bool,
    /// Exchanges at a time on HTTP/1.1, each on a connection of its own;
    /// further ones wait. 1 or more, 256 by default.
    pub http1_connections_max: usize,
    /// HTTP/1.1 connections kept for later exchanges. 16 by default.
    pub http1_idle_connections_max: usize,
    /// How long an HTTP/1.1 connection is kept for a later exchange. 30 s by
    /// default, less than servers commonly wait.
    pub http1_idle_timeout: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            http1: false,
            http2_engine: Http2Engine::default(),
            connect_timeout: Duration::from_secs(10),
            attempt_delay: Duration::from_millis(250),
            headers_bytes_max: 16 * 1024,
            http2_stream_window_bytes: 1024 * 1024,
            http2_connection_window_bytes: 4 * 1024 * 1024,
            http2_adaptive_window: false,
            http2_frame_bytes_max: 16 * 1024,
            http2_send_buffer_bytes_max: 256 * 1024,
            http2_ping_interval: None,
            http2_ping_timeout: Duration::from_secs(20),
            http2_ping_while_idle: false,
            http1_connections_max: 256,
            http1_idle_connections_max: 16,
            http1_idle_timeout: Duration::from_secs(30),
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
        let (stream, connection) = (
            self.http2_stream_window_bytes,
            self.http2_connection_window_bytes,
        );
        within("http2_stream_window_bytes", stream, WINDOW_BYTES)?;
        within(
            "http2_connection_window_bytes",
            connection,
            CONNECTION_WINDOW_BYTES,
        )?;
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
        time("http2_ping_interval", self.http2_ping_interval)?;
        time("http2_ping_timeout", Some(self.http2_ping_timeout))?;
        time("http1_idle_timeout", Some(self.http1_idle_timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_within_their_bounds_and_others_are_refused() {
        ClientOptions::default().check().unwrap();
        let broken: [fn(&mut ClientOptions); 4] = [
            |o| o.http2_frame_bytes_max = 50 * 1024 * 1024,
            |o| o.http1_connections_max = 0,
            |o| o.connect_timeout = Duration::ZERO,
            |o| o.http2_connection_window_bytes = u32::MAX,
        ];
        for change in broken {
            let mut options = ClientOptions::default();
            change(&mut options);
            assert!(options.check().is_err(), "{options:?}");
        }
    }
}
