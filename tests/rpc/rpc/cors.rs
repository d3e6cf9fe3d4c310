//! What browsers ask for before they let a page call: CORS, over real sockets.

use http::HeaderValue;
use quill::{Cors, Protocol, QuillClient, Server};
use quill_core::HttpMethod;
use tower::ServiceBuilder;

use crate::peer::{Answer, Http1, head, http2, send};
use crate::probe::{
    PROTOCOLS, Probe, ProbeClient, ProbeServer, Served, ending, say, serve, serve_with,
};

const APP: &str = "https://app.example";
const OTHER: &str = "https://other.example";
const ONE: &str = "/probe.v1.ProbeService/One";

async fn serve_app() -> Served {
    serve_with(|builder| builder.cors(Cors::origins([APP, "http://localhost:3000"]))).await
}

/// An `OPTIONS` on each version of HTTP.
async fn options(url: &str, path: &str, fields: &[(&str, &str)]) -> [Answer; 2] {
    let mut text = format!("OPTIONS {path} HTTP/1.1\r\nhost: a\r\n");
    for (name, value) in fields {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    let mut connection = Http1::connect(url).await;
    connection.write(&text).await;
    let mut request = head(path, fields);
    request.method = HttpMethod::Options;
    [
        connection.answer().await,
        send(&http2(url), request, "").await,
    ]
}

async fn preflight(url: &str, path: &str, origin: &str, asked: &str) -> [Answer; 2] {
    let fields = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", asked),
    ];
    options(url, path, &fields).await
}

fn listed<'a>(answer: &'a Answer, field: &str) -> Vec<&'a str> {
    let list = answer.header(field).unwrap_or_default();
    list.split(", ").collect()
}

fn assert_bare(answer: &Answer) {
    let mut names = answer.headers.iter().map(|(name, _)| name);
    assert!(
        names.all(|name| !name.starts_with("access-control")),
        "{answer:?}"
    );
}

async fn post(served: &Served, origin: Option<&str>, path: &str, json: &str) -> Answer {
    let mut fields = vec![("content-type", "application/json")];
    fields.extend(origin.map(|origin| ("origin", origin)));
    let mut connection = Http1::connect(&served.url).await;
    connection.post(path, &fields, json).await
}

#[tokio::test]
async fn a_preflight_is_answered_for_each_protocol_of_browsers() {
    let served = serve_app().await;
    for asked in [
        "connect-protocol-version,connect-timeout-ms,content-type",
        "content-type,x-grpc-web,x-user-agent,grpc-timeout",
        "content-type,content-encoding,accept-encoding,authorization",
        "quill-timeout-ms,quill-encoding,content-type",
    ] {
        for answer in preflight(&served.url, ONE, APP, asked).await {
            assert_eq!(answer.status, 204, "{answer:?}");
            assert_eq!(answer.header("access-control-allow-origin"), Some(APP));
            assert_eq!(answer.header("access-control-max-age"), Some("7200"));
            assert_eq!(answer.header("vary"), Some("origin"));
            assert_eq!(
                listed(&answer, "access-control-allow-methods"),
                ["GET", "POST"]
            );
            let allowed = listed(&answer, "access-control-allow-headers");
            for name in asked.split(',') {
                assert!(allowed.contains(&name), "{name}: {allowed:?}");
            }
            assert_eq!(answer.header("access-control-allow-credentials"), None);
            assert!(answer.body.is_empty());
        }
    }
}

/// What a page asks for is not echoed: the answer is what the deployer named, and the
/// browser compares.
#[tokio::test]
async fn a_preflight_is_told_what_is_named_whatever_it_asks_for() {
    let served = serve_app().await;
    let method = "access-control-request-method";
    let names = "access-control-request-headers";
    for asked in [
        &[(method, "POST")][..],
        &[(method, "POST"), (names, "")],
        &[(method, "POST"), (names, "X-GRPC-WEB, x-secret ,cookie")],
        &[(method, "POST"), (names, "*")],
        &[(method, "DELETE"), (names, "content-type")],
        &[(method, "*")],
        &[(method, "")],
        &[
            (method, "POST"),
            ("access-control-request-private-network", "true"),
        ],
    ] {
        let fields = [&[("origin", APP)], asked].concat();
        for answer in options(&served.url, ONE, &fields).await {
            assert_eq!(answer.status, 204, "{asked:?}: {answer:?}");
            let methods = listed(&answer, "access-control-allow-methods");
            assert_eq!(methods, ["GET", "POST"], "{asked:?}");
            let allowed = listed(&answer, "access-control-allow-headers");
            assert!(allowed.contains(&"x-grpc-web"), "{asked:?}: {allowed:?}");
            for name in ["x-secret", "cookie", "*", ""] {
                assert!(!allowed.contains(&name), "{asked:?}: {allowed:?}");
            }
            let network = answer.header("access-control-allow-private-network");
            assert_eq!(network, None, "{asked:?}");
        }
    }
}

#[tokio::test]
async fn a_preflight_meets_neither_routes_nor_layers() {
    let refuse =
        tower::filter::FilterLayer::new(|_: http::Request<_>| -> Result<http::Request<_>, _> {
            Err(tower::BoxError::from("nobody passes"))
        });
    // The layer is added first, and CORS stands before it all the same.
    let served = serve_with(|builder| builder.http_layer(refuse).cors(Cors::origins([APP]))).await;
    for path in [ONE, "/no.Such/Method", "/"] {
        for answer in preflight(&served.url, path, APP, "content-type").await {
            assert_eq!(answer.status, 204, "{path}: {answer:?}");
        }
    }
    let failed = post(&served, Some(APP), ONE, "{}").await;
    assert_eq!(failed.status, 500, "{failed:?}");
    assert_eq!(failed.header("access-control-allow-origin"), Some(APP));
}

#[tokio::test]
async fn answers_and_errors_may_be_read_by_the_page() {
    let served = serve_app().await;
    for (path, json, status) in [
        (ONE, r#"{"text": "x"}"#, 200),
        (ONE, r#"{"ending": "error"}"#, 400),
        (ONE, r#"{"ending": "panic"}"#, 500),
        (ONE, "{", 400),
        ("/no.Such/Method", "{}", 404),
    ] {
        let answer = post(&served, Some(APP), path, json).await;
        assert_eq!(answer.status, status, "{json}: {answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(APP));
        assert_eq!(answer.headers.all("access-control-allow-origin").count(), 1);
        assert!(
            answer.headers.all("vary").any(|value| value == b"origin"),
            "{answer:?}"
        );
        let exposed = listed(&answer, "access-control-expose-headers");
        for name in [
            "grpc-status",
            "grpc-message",
            "grpc-status-details-bin",
            "grpc-encoding",
            "content-encoding",
            "connect-content-encoding",
            "retry-after",
        ] {
            assert!(exposed.contains(&name), "{name}: {exposed:?}");
        }
    }
    let fields = [
        ("origin", APP),
        ("content-type", "application/grpc-web+proto"),
    ];
    let answer = send(&http2(&served.url), head("/no.Such/Method", &fields), "").await;
    assert_eq!(answer.grpc_status(), Some("12"), "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some(APP));
}

#[tokio::test]
async fn other_origins_are_refused() {
    let served = serve_app().await;
    for origin in [
        OTHER,
        "null",
        "http://app.example",
        "https://app.example:8443",
        "https://app.example.evil.example",
        "https://evil-app.example",
        "https://app.example, https://other.example",
        "https://APP.example",
        "",
    ] {
        for answer in preflight(&served.url, ONE, origin, "content-type").await {
            assert_eq!(answer.status, 403, "{origin}: {answer:?}");
            assert_bare(&answer);
            assert_eq!(answer.header("vary"), Some("origin"));
        }
        let answer = post(&served, Some(origin), ONE, "{}").await;
        assert_bare(&answer);
        assert!(answer.headers.all("vary").any(|value| value == b"origin"));
    }
    // Two origins are none.
    let fields = [
        ("origin", APP),
        ("origin", OTHER),
        ("access-control-request-method", "POST"),
    ];
    for answer in options(&served.url, ONE, &fields).await {
        assert_eq!(answer.status, 403, "{answer:?}");
        assert_bare(&answer);
    }
}

#[tokio::test]
async fn without_an_origin_or_without_cors_nothing_is_said() {
    let served = serve_app().await;
    let answer = post(&served, None, ONE, "{}").await;
    assert_eq!(answer.status, 200);
    assert_bare(&answer);
    // A cache may not give this answer to a page.
    assert!(answer.headers.all("vary").any(|value| value == b"origin"));
    for fields in [&[("origin", APP)][..], &[("accept", "*/*")]] {
        for answer in options(&served.url, ONE, fields).await {
            assert_eq!(answer.status, 405, "no preflight: {answer:?}");
        }
    }
    let plain = serve().await;
    assert_bare(&post(&plain, Some(APP), ONE, "{}").await);
    for answer in preflight(&plain.url, ONE, APP, "content-type").await {
        assert_eq!(answer.status, 405, "{answer:?}");
        assert_bare(&answer);
    }
}

#[tokio::test]
async fn metadata_that_the_deployer_names_goes_both_ways() {
    let cors = Cors::origins([APP])
        .request_metadata(["X-Echo", "x-echo-bin"])
        .response_metadata(["x-echo", "X-Trailer"])
        .max_age(std::time::Duration::from_secs(60))
        .allow_credentials();
    let served = serve_with(|builder| builder.cors(cors)).await;
    for answer in preflight(&served.url, ONE, APP, "x-echo").await {
        let allowed = listed(&answer, "access-control-allow-headers");
        assert!(allowed.contains(&"x-echo") && allowed.contains(&"x-echo-bin"));
        assert_eq!(answer.header("access-control-max-age"), Some("60"));
        assert_eq!(
            answer.header("access-control-allow-credentials"),
            Some("true")
        );
    }
    let fields = [
        ("origin", APP),
        ("content-type", "application/json"),
        ("x-echo", "heard"),
    ];
    let mut connection = Http1::connect(&served.url).await;
    let answer = connection.post(ONE, &fields, "{}").await;
    let exposed = listed(&answer, "access-control-expose-headers");
    for name in ["x-echo", "trailer-x-trailer"] {
        assert_eq!(answer.header(name), Some("heard"));
        assert!(exposed.contains(&name), "{name}: {exposed:?}");
    }
    assert_eq!(
        answer.header("access-control-allow-credentials"),
        Some("true")
    );
}

#[tokio::test]
async fn any_origin_is_a_star_without_credentials() {
    let served = serve_with(|builder| builder.cors(Cors::any_origin())).await;
    for origin in [APP, "null", OTHER] {
        for answer in preflight(&served.url, ONE, origin, "authorization").await {
            assert_eq!(answer.status, 204);
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
            assert_eq!(answer.header("vary"), None);
        }
    }
    let answer = post(&served, Some(OTHER), ONE, "{}").await;
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert_eq!(answer.header("access-control-allow-credentials"), None);
}

#[tokio::test]
async fn what_would_be_unsafe_or_never_match_is_refused_when_the_server_binds() {
    for cors in [
        Cors::any_origin().allow_credentials(),
        Cors::origins(["*"]),
        Cors::origins(["https://app.example/"]),
        Cors::origins([APP]).response_metadata(["*"]),
    ] {
        let bound = Server::builder()
            .cors(cors.clone())
            .bind("127.0.0.1:0")
            .await;
        let error = bound.expect_err("it is refused");
        assert!(error.is_setting() && error.to_string().contains("CORS"));
    }
}

#[tokio::test]
async fn an_inner_services_own_fields_are_replaced() {
    let star = ServiceBuilder::new().map_response(|mut response: http::Response<_>| {
        let headers = response.headers_mut();
        headers.insert("access-control-allow-origin", HeaderValue::from_static("*"));
        response
    });
    let served = serve_with(|builder| builder.cors(Cors::origins([APP])).http_layer(star)).await;
    let answer = post(&served, Some(APP), ONE, "{}").await;
    let origins: Vec<_> = answer.headers.all("access-control-allow-origin").collect();
    assert_eq!(origins, [APP.as_bytes()]);
}

/// What our own client sends is let through, and what it needs is exposed.
#[tokio::test]
async fn every_protocol_stays_within_what_is_named() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::<String>::new()));
    let (asked, answered) = (seen.clone(), seen.clone());
    let note = ServiceBuilder::new()
        .map_request(move |request: http::Request<_>| {
            let names = request.headers().keys().map(ToString::to_string);
            asked.lock().unwrap().extend(names);
            request
        })
        .map_response(move |response: http::Response<_>| {
            let names = response.headers().keys().map(ToString::to_string);
            answered.lock().unwrap().extend(names);
            response
        });
    let served = serve_with(|builder| builder.cors(Cors::any_origin()).http_layer(note)).await;
    for protocol in PROTOCOLS {
        if protocol == Protocol::Grpc {
            continue; // no browser can speak it
        }
        let client = served.client(protocol);
        let timed = quill::Request::new(say(&"x".repeat(5000)))
            .with_timeout(std::time::Duration::from_secs(60));
        assert!(client.one(timed).await.is_ok());
        assert!(client.one(ending("error")).await.is_err());
        let mut stream = client.down(ending("error")).await.unwrap().into_inner();
        stream.message().await.unwrap();
    }
    let [answer, _] = preflight(&served.url, ONE, APP, "x").await;
    let plain = post(&served, Some(APP), ONE, "{}").await;
    let mut named = listed(&answer, "access-control-allow-headers");
    named.extend(listed(&plain, "access-control-expose-headers"));
    for name in seen.lock().unwrap().iter() {
        // The browser's own business, safelisted, or the application's.
        let is_free = [
            "cache-control",
            "content-length",
            "content-type",
            "date",
            "host",
            "origin",
            "te",
            "user-agent",
            "vary",
            "x-why",
        ];
        assert!(
            is_free.contains(&name.as_str()) || named.contains(&name.as_str()),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_server_mounted_in_axum_answers_preflights_too() {
    let quill = Server::builder()
        .cors(Cors::origins([APP]))
        .service(ProbeServer::new(Probe::default()))
        .into_http_service()
        .unwrap();
    let router = axum::Router::new().fallback_service(quill);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    for answer in preflight(&url, ONE, APP, "content-type").await {
        assert_eq!(answer.status, 204, "{answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), Some(APP));
    }
    let client = ProbeClient::new(QuillClient::new(&url));
    assert!(client.one(say("x")).await.is_ok());
    serving.abort();
}
