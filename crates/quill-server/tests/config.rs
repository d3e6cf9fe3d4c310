//! What a server does with its settings.

#![cfg(feature = "config")]

use quill_server::{Server, ServerConfig};

#[test]
fn what_is_not_said_keeps_no_server_from_being_mounted() {
    for (yaml, is_mounted) in [
        ("", true),
        ("calls: {timeout_max: 1s}", true),
        ("transport: {http2_streams_max: 7}", false),
        ("transport: {versions: all}", false),
    ] {
        let config = ServerConfig::parse("a.yaml", yaml).unwrap();
        let builder = Server::builder().configure(&config).unwrap();
        let mounted = builder.into_http_service();
        assert_eq!(mounted.is_ok(), is_mounted, "{yaml:?}");
    }
}
