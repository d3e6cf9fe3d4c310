//! Servers that can't be built, and what a drain says to streams.

use std::time::Duration;

use quill::auth::{ApiKeyValidator, AuthLayer};
use quill::rate_limit::RateLimitLayer;
use quill::{
    Code, Method, MethodKind, Protocol, RawCodec, Request, Response, Server, ServerBuilder,
    ServerOptions, Service,
};
use tower::ServiceBuilder;

use crate::peer::soon;
use crate::probe::{Probe, ProbeServer, serve_with};

fn probe() -> ServerBuilder {
    Server::builder().service(ProbeServer::new(Probe::default()))
}

async fn refusal(builder: ServerBuilder) -> String {
    let bound = builder.bind("127.0.0.1:0").await;
    bound.expect_err("it is wrong").to_string()
}

/// Says that its method streams, and handles it as one that does not.
struct Mistaken;

impl Service for Mistaken {
    fn name(&self) -> &str {
        "a.Mistaken"
    }

    fn routes(self, routes: &mut quill::Routes) {
        let method = Method::new("/a.Mistaken/Go", MethodKind::ServerStreaming);
        routes.unary(
            &method,
            RawCodec,
            RawCodec,
            |request: Request<bytes::Bytes>| async { Ok(Response::new(request.into_inner())) },
        );
    }
}

#[tokio::test]
async fn a_method_is_registered_once() {
    let again = ProbeServer::new(Probe::default());
    let text = refusal(probe().service(again)).await;
    assert_eq!(
        text,
        "the method /probe.v1.ProbeService/One is registered twice"
    );
    let again = Server::builder().service(ProbeServer::new(Probe::default()));
    let again = again.service(ProbeServer::new(Probe::default()));
    assert!(again.into_http_service().is_err());
}

#[tokio::test]
async fn a_handler_is_of_its_methods_kind() {
    let text = refusal(Server::builder().service(Mistaken)).await;
    assert!(text.contains("/a.Mistaken/Go"), "{text}");
    assert!(text.contains("ServerStreaming"), "{text}");
}

#[tokio::test]
async fn a_mounted_server_refuses_the_settings_of_connections() {
    let second = Duration::from_secs(1);
    for (name, builder) in [
        ("transport", probe().transport(ServerOptions::default())),
        ("drain_limit", probe().drain_limit(second)),
        (
            "connection_held_bytes_max",
            probe().connection_held_bytes_max(8 * 1024 * 1024),
        ),
        ("compression level", probe().compression_level(23)),
    ] {
        let error = builder.into_http_service().expect_err(name);
        assert!(error.to_string().contains(name), "{error}");
    }
    assert!(
        probe()
            .held_bytes_max(8 * 1024 * 1024)
            .into_http_service()
            .is_ok()
    );
}

#[tokio::test]
async fn watchers_of_health_do_not_hold_up_a_drain() {
    let (health, _reporter) = quill_health::reporter();
    let served = serve_with(|builder| builder.service(health)).await;
    let mut watching = Vec::new();
    for protocol in [Protocol::Grpc, Protocol::Quill] {
        let client = served.builder(protocol).build().unwrap();
        let watched = client.call_server_stream("grpc.health.v1.Health", "Watch", "");
        let mut statuses = watched.await.unwrap();
        assert!(statuses.message().await.unwrap().is_some());
        watching.push((client, statuses));
    }
    // The drain's own limit is 10 s.
    let drained = tokio::time::timeout(Duration::from_secs(5), served.server.shutdown()).await;
    assert_eq!(drained.expect("it waits for watchers").cut_connections, 0);
    for (_client, mut statuses) in watching {
        let told = soon(statuses.message()).await.unwrap();
        assert_eq!(told.unwrap(), "\x08\x02", "not serving");
        let error = soon(statuses.message()).await.unwrap_err();
        assert_eq!(error.code(), Code::Unavailable, "{error}");
    }
}

#[tokio::test]
async fn a_rule_that_names_no_method_keeps_a_server_from_being_built() {
    let auth = |path: &str| {
        let keys = ApiKeyValidator::new();
        probe().layer(AuthLayer::new(keys).scopes(path, ["admin"]))
    };
    let limited = |path: &str| probe().layer(RateLimitLayer::new(1.0, 1.0).method(path, 1.0, 1.0));
    for good in [
        "probe.v1.ProbeService/One",
        "/probe.v1.ProbeService/*",
        "/*",
    ] {
        auth(good).into_http_service().expect(good);
    }
    limited("probe.v1.ProbeService/One")
        .into_http_service()
        .expect("it is there");
    for (path, registered) in [
        (
            "/probe.v1.ProbeService/None",
            "/probe.v1.ProbeService/One, ",
        ),
        (
            "/probe.v1.Probeservice/One",
            "services probe.v1.ProbeService",
        ),
        ("/probe.ProbeService/*", "are probe.v1.ProbeService"),
    ] {
        let text = auth(path).into_http_service().unwrap_err().to_string();
        assert!(text.contains("AuthLayer") && text.contains(path), "{text}");
        assert!(text.contains(registered), "{text}");
    }
    for path in ["/probe.v1.ProbeService/*", "/*", "/One"] {
        let text = limited(path).into_http_service().unwrap_err().to_string();
        assert!(
            text.contains("RateLimitLayer") && text.contains(path),
            "{text}"
        );
    }
    // Also where it is within another, and one mistake is not another server's.
    let keys = ApiKeyValidator::new();
    let wrong = AuthLayer::new(keys).public("/none.v1.None/*");
    let text = probe()
        .layer(ServiceBuilder::new().layer(wrong).into_inner())
        .bind("127.0.0.1:0")
        .await;
    let text = text.unwrap_err().to_string();
    assert!(text.contains("/none.v1.None/*"), "{text}");
    auth("/*").into_http_service().expect("it is good");
}
