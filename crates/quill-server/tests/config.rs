//! What a server does with its settings.

#![cfg(feature = "config")]

use std::time::Duration;

use quill_server::{Server, ServerConfig};

/// What is wrong with settings, when they are read or put into a builder.
fn refused(yaml: &str) -> String {
    let config = match ServerConfig::parse("a.yaml", yaml) {
        Ok(config) => config,
        Err(error) => return error.to_string(),
    };
    match Server::builder().configure(&config) {
        Ok(_) => panic!("it was taken: {yaml}"),
        Err(error) => error.to_string(),
    }
}

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

#[test]
fn a_value_out_of_its_bounds_is_told_with_its_line() {
    for (yaml, expected) in [
        (
            "per_core: 0",
            "1: per_core: 0 can't be used: allowed is 1 or more",
        ),
        (
            "messages:\n  credits: 15",
            "2: messages.credits: 15 can't be used: allowed is 16 to 65536",
        ),
        (
            "messages:\n  held_bytes_max: 1MiB",
            "2: messages.held_bytes_max: 1048576 can't be used: allowed is 4194304 or more",
        ),
        (
            "messages:\n  receive_bytes_max: 2KiB\n  connection_held_bytes_max: 1KiB",
            "3: messages.connection_held_bytes_max: 1024 can't be used: allowed is 2048 or more",
        ),
        (
            "compression:\n  level: 23",
            "2: compression.level: 23 can't be used: allowed is 1 to 22",
        ),
        (
            "access_log:\n  sample: 2",
            "2: access_log.sample: 2.0 can't be used: allowed is 0.0 to 1.0",
        ),
        (
            "metrics:\n  listen: here\n  path: metrics",
            "3: metrics.path: \"metrics\" can't be used: allowed is a path with its leading /, without a query",
        ),
        (
            "metrics:\n  path: /metrics",
            "2: metrics.path: there is no page: metrics.listen says where",
        ),
    ] {
        assert_eq!(refused(yaml), format!("a.yaml:{expected}"));
    }
    for (limit, key, expected) in [
        ("least: 0", "least", "0 can't be used: allowed is 1 or more"),
        (
            "least: 50, most: 10",
            "most",
            "10 can't be used: allowed is 50 or more",
        ),
        ("most: 5", "most", "5 can't be used: allowed is 10 or more"),
        (
            "least: 3000",
            "most",
            "2000 can't be used: allowed is 3000 or more",
        ),
        (
            "initial: 9",
            "initial",
            "9 can't be used: allowed is 10 to 2000",
        ),
        (
            "tolerance: 0.5",
            "tolerance",
            "0.5 can't be used: allowed is 1.0 or more",
        ),
    ] {
        let yaml = format!("concurrency_limits:\n  - name: a\n    adaptive: {{{limit}}}");
        let key = format!("concurrency_limits[0].adaptive.{key}");
        assert_eq!(refused(&yaml), format!("a.yaml:3: {key}: {expected}"));
    }
}

#[test]
fn what_is_within_its_bounds_is_taken() {
    let yaml = "
messages: {receive_bytes_max: 2KiB, held_bytes_max: 2KiB, credits: 16}
compression: {level: 22}
access_log: {sample: 0}
metrics: {listen: here, path: /m}
concurrency_limits:
  - {name: a, adaptive: {least: 50, most: 50, initial: 50, tolerance: 1}}
";
    let config = ServerConfig::parse("a.yaml", yaml).unwrap();
    let builder = Server::builder().configure(&config).unwrap();
    builder.check().unwrap();
}

#[test]
fn an_address_with_a_password_is_refused_when_it_is_read() {
    for (yaml, key) in [
        ("redis: {url: 'redis://:hunter2@a'}", "redis.url"),
        ("redis: {cluster: [a, 'u:hunter2@b']}", "redis.cluster[1]"),
        ("redis: {sentinels: ['u:hunter2@b']}", "redis.sentinels[0]"),
        (
            "auth: {jwt: {jwks_url: 'https://u:hunter2@a/jwks'}}",
            "auth.jwt.jwks_url",
        ),
    ] {
        let error = ServerConfig::parse("a.yaml", yaml).unwrap_err();
        assert_eq!(error.key(), key);
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn files_are_not_read_again_without_tls() {
    let builder = || Server::builder().tls_reload_every(Duration::from_secs(60));
    let told = [
        builder().check().unwrap_err().to_string(),
        builder().into_http_service().unwrap_err().to_string(),
    ];
    for error in told {
        assert!(
            error.contains("tls_reload_every has no effect without tls"),
            "{error}"
        );
    }
}
