//! Limits and timeouts of connections: the fields of `ServerOptions`.

use quill_config::{ConfigError, OrOff, Read, Size, Time};
use quill_transport::HttpVersions;
use serde::Deserialize;

use super::Settings;
use crate::builder::ServerBuilder;

/// As [`ServerOptions`](quill_transport::ServerOptions) has them.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Transport {
    versions: Option<Versions>,
    connections_max: Option<usize>,
    connections_per_ip_max: Option<usize>,
    max_connection_age: Option<OrOff<Time>>,
    max_connection_age_grace: Option<OrOff<Time>>,
    handshake_timeout: Option<Time>,
    header_read_timeout: Option<Time>,
    http1_idle_timeout: Option<OrOff<Time>>,
    http2_idle_timeout: Option<OrOff<Time>>,
    write_timeout: Option<OrOff<Time>>,
    headers_bytes_max: Option<Size>,
    http2_streams_max: Option<u32>,
    http2_stream_window_bytes: Option<Size>,
    http2_connection_window_bytes: Option<Size>,
    http2_adaptive_window: Option<bool>,
    http2_frame_bytes_max: Option<Size>,
    http2_send_buffer_bytes_max: Option<Size>,
    http2_ping_interval: Option<OrOff<Time>>,
    http2_ping_timeout: Option<Time>,
    http2_pending_resets_max: Option<usize>,
    http2_local_resets_max: Option<usize>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Versions {
    All,
    Http1,
    Http2,
}

impl From<Versions> for HttpVersions {
    fn from(versions: Versions) -> Self {
        match versions {
            Versions::All => Self::All,
            Versions::Http1 => Self::Http1,
            Versions::Http2 => Self::Http2,
        }
    }
}

/// Sets what was said.
pub(super) fn set<T>(target: &mut T, said: Option<impl Into<T>>) {
    if let Some(said) = said {
        *target = said.into();
    }
}

fn time(said: Option<Time>) -> Option<std::time::Duration> {
    said.map(Time::duration)
}

fn time_or_off(said: Option<OrOff<Time>>) -> Option<Option<std::time::Duration>> {
    said.map(|said| said.value().map(Time::duration))
}

impl Transport {
    /// Whether any is: a mounted server has no connections of its own, and is refused
    /// with settings of them.
    pub(super) fn is_said(&self) -> bool {
        *self != Self::default()
    }

    pub(super) fn apply<L>(
        &self,
        mut builder: ServerBuilder<L>,
        read: &Read<Settings>,
    ) -> Result<ServerBuilder<L>, ConfigError> {
        let options = builder.transport_mut();
        set(&mut options.versions, self.versions);
        set(&mut options.connections_max, self.connections_max);
        let per_ip = self.connections_per_ip_max.map(Some);
        set(&mut options.connections_per_ip_max, per_ip);
        let age = time_or_off(self.max_connection_age);
        set(&mut options.max_connection_age, age);
        let grace = time_or_off(self.max_connection_age_grace);
        set(&mut options.max_connection_age_grace, grace);
        set(&mut options.handshake_timeout, time(self.handshake_timeout));
        set(
            &mut options.header_read_timeout,
            time(self.header_read_timeout),
        );
        set(
            &mut options.http1_idle_timeout,
            time_or_off(self.http1_idle_timeout),
        );
        set(
            &mut options.http2_idle_timeout,
            time_or_off(self.http2_idle_timeout),
        );
        set(&mut options.write_timeout, time_or_off(self.write_timeout));
        let size = |said: Option<Size>| said.map(Size::bytes_u32);
        set(&mut options.headers_bytes_max, size(self.headers_bytes_max));
        set(&mut options.http2_streams_max, self.http2_streams_max);
        set(
            &mut options.http2_stream_window_bytes,
            size(self.http2_stream_window_bytes),
        );
        let window = size(self.http2_connection_window_bytes);
        set(&mut options.http2_connection_window_bytes, window);
        set(
            &mut options.http2_adaptive_window,
            self.http2_adaptive_window,
        );
        set(
            &mut options.http2_frame_bytes_max,
            size(self.http2_frame_bytes_max),
        );
        let buffer = self.http2_send_buffer_bytes_max.map(Size::bytes);
        set(&mut options.http2_send_buffer_bytes_max, buffer);
        set(
            &mut options.http2_ping_interval,
            time_or_off(self.http2_ping_interval),
        );
        set(
            &mut options.http2_ping_timeout,
            time(self.http2_ping_timeout),
        );
        set(
            &mut options.http2_pending_resets_max,
            self.http2_pending_resets_max,
        );
        set(
            &mut options.http2_local_resets_max,
            self.http2_local_resets_max,
        );
        options
            .check()
            .map_err(|error| read.error(&format!("transport.{}", error.option()), error))?;
        Ok(builder)
    }
}
