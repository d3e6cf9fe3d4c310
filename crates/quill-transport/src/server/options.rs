//! What a server allows its peers.

use std::time::Duration;

use crate::bounds::{
    CONNECTION_WINDOW_BYTES, FRAME_BYTES, Http2Engine, OptionsError, WINDOW_BYTES, at_least_one,
    time, within,
};

/// Which versions of HTTP a server speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpVersions {
    /// HTTP/1.1 and HTTP/2, as ALPN or the first bytes say.
    #[default]
    All,
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/2 alone.
    Http2,
}

/// Limits and timeouts of a server's connections. The defaults are safe to
/// face the open network with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Which versions of HTTP are spoken; both by default.
    pub versions: HttpVersions,
    /// What speaks HTTP/2; Quill's own engine by default.
    pub http2_engine: Http2Engine,
    /// Connections open at a time, 1 or more. Where there are as many, or no more
    /// file descriptors, a further one takes the place of one that is cut: the one
    /// that no request ever came on, or else that has no exchange open, for the
    /// longest time, if that is a second or more. While there is none it waits, and
    /// others in the kernel's queue. 10,000 by default.
    pub connections_max: usize,
    /// Connections open at a time from one address, 1 or more; `None` for any number,
    /// as it is by default. An IPv6 network of 64 bits is one address, and so is a
    /// proxy, whatever it says of whom it speaks for. One more is closed at once, before
    /// a TLS handshake. Unix sockets have no address, and are not counted.
    pub connections_per_ip_max: Option<usize>,
    /// How old a connection may become, give or take a tenth, so that those that were
    /// made together do not end together: then its peer is told to go (GOAWAY on HTTP/2,
    /// `connection: close` in the next answer on HTTP/1.1), and what is open may end. `None`
    /// for any age, as it is by default.
    pub max_connection_age: Option<Duration>,
    /// How long exchanges may go on after that before the connection is cut; `None` for
    /// as long as they take, as it is by default.
    pub max_connection_age_grace: Option<Duration>,
    /// How long a TLS handshake may take. 10 s by default.
    pub handshake_timeout: Duration,
    /// How long the head of an HTTP/1.1 request, or the first bytes of an
    /// HTTP/2 connection, may take. 10 s by default.
    pub header_read_timeout: Duration,
    /// How long an HTTP/1.1 connection may wait for its next request; `None`
    /// for ever. 75 s by default.
    pub http1_idle_timeout: Option<Duration>,
    /// How long an HTTP/2 connection may be without an open stream before it
    /// is closed with GOAWAY; `None` for ever. 10 min by default.
    pub http2_idle_timeout: Option<Duration>,
    /// How long a peer may take nothing of an answer that waits for it, on its
    /// socket or for a stream's window; then the connection is cut, or the
    /// stream reset. `None` for ever. 2 min by default.
    pub write_timeout: Option<Duration>,
    /// Size of a request's head in bytes, 1 KiB to 1 MiB; over it the answer
    /// is 431. 16 KiB by default.
    pub headers_bytes_max: u32,
    /// Streams a peer may have open on one HTTP/2 connection, 1 or more. 250
    /// by default.
    pub http2_streams_max: u32,
    /// Bytes a peer may send on one HTTP/2 stream before they are read, 1 to
    /// 2^31-1. 1 MiB by default. A stream begins with at most 65,535 and gets more
    /// as it is read fast.
    pub http2_stream_window_bytes: u32,
    /// Bytes a peer may send on all streams of an HTTP/2 connection before
    /// they are read, 65,535 to 2^31-1. 4 MiB by default.
    pub http2_connection_window_bytes: u32,
    /// Whether windows follow bandwidth and delay up to 16 MiB, in place of the
    /// two sizes above. Off by default.
    pub http2_adaptive_window: bool,
    /// Size of the largest HTTP/2 frame a peer may send, in bytes, 2^14 to
    /// 2^24-1. 16 KiB by default.
    pub http2_frame_bytes_max: u32,
    /// Bytes that the answers of one HTTP/2 connection may have waiting for the
    /// socket, and the largest piece that is added to them, 1 to 2^32-1; with hyper,
    /// those of one stream. 256 KiB by default.
    pub http2_send_buffer_bytes_max: usize,
    /// How often an HTTP/2 peer is pinged; `None` for never. 60 s by default.
    pub http2_ping_interval: Option<Duration>,
    /// How long a peer may take to answer a ping before the connection is
    /// closed. 20 s by default.
    pub http2_ping_timeout: Duration,
    /// Streams that a peer may reset before they were handled, at once and in a
    /// second; over it the connection is closed with ENHANCE_YOUR_CALM ("rapid
    /// reset", CVE-2023-44487). 20 by default.
    pub http2_pending_resets_max: usize,
    /// Streams that a peer may make this side reset by breaking the rules;
    /// over it the connection is closed with ENHANCE_YOUR_CALM ("MadeYouReset",
    /// CVE-2025-8671). 1,024 by default; ten a second are forgiven.
    pub http2_local_resets_max: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            versions: HttpVersions::All,
            http2_engine: Http2Engine::default(),
            connections_max: 10_000,
            connections_per_ip_max: None,
            max_connection_age: None,
            max_connection_age_grace: None,
            handshake_timeout: Duration::from_secs(10),
            header_read_timeout: Duration::from_secs(10),
            http1_idle_timeout: Some(Duration::from_secs(75)),
            http2_idle_timeout: Some(Duration::from_secs(600)),
            write_timeout: Some(Duration::from_secs(120)),
            headers_bytes_max: 16 * 1024,
            http2_streams_max: 250,
            http2_stream_window_bytes: 1024 * 1024,
            http2_connection_window_bytes: 4 * 1024 * 1024,
            http2_adaptive_window: false,
            http2_frame_bytes_max: 16 * 1024,
            http2_send_buffer_bytes_max: 256 * 1024,
            http2_ping_interval: Some(Duration::from_secs(60)),
            http2_ping_timeout: Duration::from_secs(20),
            http2_pending_resets_max: 20,
            http2_local_resets_max: 1024,
        }
    }
}

impl ServerOptions {
    /// Whether every value is within its bounds.
    ///
    /// # Errors
    /// The first one that is not.
    pub fn check(&self) -> Result<(), OptionsError> {
        at_least_one("connections_max", self.connections_max)?;
        let per_ip = self.connections_per_ip_max;
        at_least_one("connections_per_ip_max", per_ip.unwrap_or(1))?;
        time("max_connection_age", self.max_connection_age)?;
        time("max_connection_age_grace", self.max_connection_age_grace)?;
        within(
            "headers_bytes_max",
            self.headers_bytes_max,
            1024..=1024 * 1024,
        )?;
        within("http2_streams_max", self.http2_streams_max, 1..=u32::MAX)?;
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
        time("handshake_timeout", Some(self.handshake_timeout))?;
        time("header_read_timeout", Some(self.header_read_timeout))?;
        time("http1_idle_timeout", self.http1_idle_timeout)?;
        time("http2_idle_timeout", self.http2_idle_timeout)?;
        time("write_timeout", self.write_timeout)?;
        time("http2_ping_interval", self.http2_ping_interval)?;
        time("http2_ping_timeout", Some(self.http2_ping_timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_within_their_bounds() {
        ServerOptions::default().check().unwrap();
    }

    #[test]
    fn values_out_of_bounds_are_errors_that_say_what_is_allowed() {
        let mut options = ServerOptions::default();
        for bytes in [1, 16_383, 16_777_216, 50 * 1024 * 1024] {
            options.http2_frame_bytes_max = bytes;
            let error = options.check().unwrap_err();
            let text =
                format!("http2_frame_bytes_max can't be {bytes}: allowed is 16384 to 16777215");
            assert_eq!(error.to_string(), text);
        }
        let broken: [fn(&mut ServerOptions); 11] = [
            |o| o.connections_max = 0,
            |o| o.connections_per_ip_max = Some(0),
            |o| o.max_connection_age = Some(Duration::ZERO),
            |o| o.headers_bytes_max = 0,
            |o| o.http2_streams_max = 0,
            |o| o.http2_stream_window_bytes = 1 << 31,
            |o| o.http2_connection_window_bytes = 1,
            |o| o.http2_send_buffer_bytes_max = 0,
            |o| o.handshake_timeout = Duration::ZERO,
            |o| o.http2_ping_interval = Some(Duration::ZERO),
            |o| o.http1_idle_timeout = Some(Duration::MAX),
        ];
        for change in broken {
            let mut options = ServerOptions::default();
            change(&mut options);
            assert!(options.check().is_err(), "{options:?}");
        }
    }
}
