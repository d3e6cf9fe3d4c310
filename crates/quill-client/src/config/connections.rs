//! Limits and timeouts of connections: the fields of `ClientOptions`.

use quill_config::{ConfigError, OrOff, Read, Size, Time};
use quill_transport::ClientOptions;
use serde::Deserialize;

use super::{Settings, set};

/// As [`ClientOptions`] has them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Transport {
    attempt_delay: Option<Time>,
    headers_bytes_max: Option<Size>,
    http2_stream_window_bytes: Option<Size>,
    http2_connection_window_bytes: Option<Size>,
    http2_adaptive_window: Option<bool>,
    http2_streams_max: Option<u32>,
    http2_connections_max: Option<usize>,
    http2_frame_bytes_max: Option<Size>,
    http2_send_buffer_bytes_max: Option<Size>,
    http2_ping_interval: Option<OrOff<Time>>,
    http2_ping_timeout: Option<Time>,
    http2_ping_while_idle: Option<bool>,
    http1_connections_max: Option<usize>,
    http1_idle_connections_max: Option<usize>,
    idle_timeout: Option<Time>,
    tcp_keepalive: Option<OrOff<Time>>,
}

impl Transport {
    pub(super) fn is_said(&self) -> bool {
        *self != Self::default()
    }

    pub(super) fn options(&self, read: &Read<Settings>) -> Result<ClientOptions, ConfigError> {
        let mut options = ClientOptions::default();
        let time = |said: Option<Time>| said.map(Time::duration);
        let or_off = |said: Option<OrOff<Time>>| said.map(|said| said.value().map(Time::duration));
        let size = |said: Option<Size>| said.map(Size::bytes_u32);
        set(&mut options.attempt_delay, time(self.attempt_delay));
        set(&mut options.headers_bytes_max, size(self.headers_bytes_max));
        let window = size(self.http2_stream_window_bytes);
        set(&mut options.http2_stream_window_bytes, window);
        let window = size(self.http2_connection_window_bytes).map(Some);
        set(&mut options.http2_connection_window_bytes, window);
        set(
            &mut options.http2_adaptive_window,
            self.http2_adaptive_window,
        );
        set(&mut options.http2_streams_max, self.http2_streams_max);
        set(
            &mut options.http2_connections_max,
            self.http2_connections_max,
        );
        set(
            &mut options.http2_frame_bytes_max,
            size(self.http2_frame_bytes_max),
        );
        let buffer = self.http2_send_buffer_bytes_max.map(Size::bytes);
        set(&mut options.http2_send_buffer_bytes_max, buffer);
        set(
            &mut options.http2_ping_interval,
            or_off(self.http2_ping_interval),
        );
        set(
            &mut options.http2_ping_timeout,
            time(self.http2_ping_timeout),
        );
        set(
            &mut options.http2_ping_while_idle,
            self.http2_ping_while_idle,
        );
        set(
            &mut options.http1_connections_max,
            self.http1_connections_max,
        );
        let idle = self.http1_idle_connections_max;
        set(&mut options.http1_idle_connections_max, idle);
        set(&mut options.idle_timeout, time(self.idle_timeout));
        set(&mut options.tcp_keepalive, or_off(self.tcp_keepalive));
        options
            .check()
            .map_err(|error| read.error(&format!("transport.{}", error.option()), error))?;
        Ok(options)
    }
}
