//! What a server counts, and where it tells.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::stream;
use quill::metrics::{MetricsCollector, MetricsPage};
use quill::{Code, Listener, Protocol, Request};
use tower::limit::ConcurrencyLimitLayer;

use crate::budgets::Fed;
use crate::external;
use crate::peer::{self, Http1};
use crate::probe::{PROTOCOLS, ProbeRequest, Served, ending, eventually, say, serve_with};

async fn counted(metrics: &MetricsCollector) -> Served {
    let metrics = metrics.clone();
    serve_with(move |builder| builder.metrics(&metrics)).await
}

/// The value of a series; 0 where it is not there.
fn value(metrics: &MetricsCollector, series: &str) -> u64 {
    let text = metrics.prometheus();
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line.map_or(0, |value| value.trim().parse().expect("a number"))
}

fn of(name: &str, method: &str, kind: &str, more: &str) -> String {
    format!(
        "quill_server_{name}{{service=\"probe.v1.ProbeService\",method=\"{method}\",kind=\"{kind}\"{more}}}"
    )
}

fn handled(metrics: &MetricsCollector, method: &str, kind: &str, code: &str) -> u64 {
    let code = format!(",code=\"{code}\"");
    value(metrics, &of("handled_total", method, kind, &code))
}

#[tokio::test]
async fn calls_of_every_kind_are_counted_in_every_protocol() {
    for protocol in PROTOCOLS {
        let metrics = MetricsCollector::new();
        let served = counted(&metrics).await;
        let client = served.client(protocol);

        // "hi" is four bytes as a field, in the request and in the answer.
        client.one(say("hi")).await.unwrap();
        client.one(ending("error")).await.unwrap_err();
        assert_eq!(handled(&metrics, "One", "unary", "ok"), 1, "{protocol:?}");
        let failed = handled(&metrics, "One", "unary", "failed_precondition");
        assert_eq!(failed, 1, "{protocol:?}");
        let sent = of("sent_bytes_total", "One", "unary", "");
        assert_eq!(value(&metrics, &sent), 4, "{protocol:?}");
        let received = of("received_bytes_total", "One", "unary", "");
        assert_eq!(value(&metrics, &received), 4 + 7, "{protocol:?}");
        let took = of("handling_seconds_count", "One", "unary", "");
        assert_eq!(value(&metrics, &took), 2, "{protocol:?}");

        let request = ProbeRequest {
            count: 3,
            ..say("x")
        };
        let mut answers = client.down(request).await.unwrap().into_inner();
        while answers.message().await.unwrap().is_some() {}
        let request = ProbeRequest {
            count: 2,
            ..ending("error")
        };
        let mut answers = client.down(request).await.unwrap().into_inner();
        while let Ok(Some(_)) = answers.message().await {}
        let down = |code| handled(&metrics, "Down", "server_stream", code);
        assert_eq!((down("ok"), down("failed_precondition")), (1, 1));
        let sent = of("sent_messages_total", "Down", "server_stream", "");
        assert_eq!(value(&metrics, &sent), 5, "{protocol:?}");

        let messages = stream::iter((0..7).map(|_| say("hi")));
        client.up(messages).await.unwrap();
        let received = of("received_messages_total", "Up", "client_stream", "");
        assert_eq!(value(&metrics, &received), 7, "{protocol:?}");
        let bytes = of("received_bytes_total", "Up", "client_stream", "");
        assert_eq!(value(&metrics, &bytes), 7 * 4, "{protocol:?}");
        assert_eq!(handled(&metrics, "Up", "client_stream", "ok"), 1);

        let messages = stream::iter((0..4).map(|_| say("hi")));
        let mut answers = client.both(messages).await.unwrap().into_inner();
        while answers.message().await.unwrap().is_some() {}
        let sent = of("sent_messages_total", "Both", "bidi_stream", "");
        assert_eq!(value(&metrics, &sent), 4, "{protocol:?}");
        assert_eq!(handled(&metrics, "Both", "bidi_stream", "ok"), 1);

        let snapshot = metrics.snapshot();
        assert_eq!(snapshot.requests, 6, "{protocol:?}");
        assert_eq!((snapshot.successes, snapshot.failures), (4, 2));
        assert_eq!(snapshot.in_flight, 0, "{protocol:?}");
    }
}

#[tokio::test]
async fn ends_that_are_no_answers_have_their_code() {
    for protocol in PROTOCOLS {
        let metrics = MetricsCollector::new();
        let served = counted(&metrics).await;
        let client = served.client(protocol);
        let one = |code| handled(&metrics, "One", "unary", code);

        let request = Request::new(ending("hang")).with_timeout(Duration::from_millis(50));
        let error = client.one(request).await.unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{protocol:?}");
        // Whoever notices first, the client or the server.
        eventually("the call has ended", || metrics.snapshot().in_flight == 0).await;
        let late = one("deadline_exceeded") + one("canceled");
        assert_eq!(late, 1, "{protocol:?}");

        client.one(ending("panic")).await.unwrap_err();
        assert_eq!(one("internal"), 1, "{protocol:?}");

        let canceled = one("canceled");
        let hanging = tokio::spawn({
            let client = client.clone();
            async move { client.one(ending("hang")).await }
        });
        let open = of("in_flight_calls", "One", "unary", "");
        eventually("the call is under way", || value(&metrics, &open) == 1).await;
        hanging.abort();
        eventually("the call is over", || value(&metrics, &open) == 0).await;
        assert_eq!(one("canceled"), canceled + 1, "{protocol:?}");

        let mut answers = client.down(say("x")).await.unwrap().into_inner();
        answers.message().await.unwrap();
        let open = of("in_flight_calls", "Down", "server_stream", "");
        assert_eq!(value(&metrics, &open), 1, "{protocol:?}");
        drop(answers);
        eventually("the stream is over", || value(&metrics, &open) == 0).await;
        let canceled = handled(&metrics, "Down", "server_stream", "canceled");
        assert_eq!(canceled, 1, "{protocol:?}");
    }
}

#[tokio::test]
async fn what_no_handler_saw_is_counted_too() {
    for protocol in PROTOCOLS {
        let metrics = MetricsCollector::new();
        let fed = metrics.clone();
        let served = serve_with(move |builder| {
            let builder = builder.metrics(&fed);
            builder.receive_bytes_max(1000).send_bytes_max(1000)
        })
        .await;
        let client = served.client(protocol);
        let exhausted = || handled(&metrics, "One", "unary", "resource_exhausted");
        client.one(say(&"x".repeat(2000))).await.unwrap_err();
        assert_eq!(exhausted(), 1, "{protocol:?}: too large a request");
        let large = ProbeRequest {
            pad_bytes: 2000,
            ..say("x")
        };
        let error = client.one(large).await.unwrap_err();
        assert_eq!(error.code(), Code::ResourceExhausted, "{protocol:?}");
        assert_eq!(exhausted(), 2, "{protocol:?}: too large an answer");

        let untyped = served.builder(protocol).build().unwrap();
        for name in ["Nope", "Other"] {
            let called = untyped.call("probe.v1.ProbeService", name, "").await;
            called.unwrap_err();
        }
        let text = metrics.prometheus();
        assert!(!text.contains("Nope") && !text.contains("Other"), "{text}");
        let unknown = "quill_server_handled_total{service=\"unknown\",method=\"unknown\",kind=\"unknown\",code=";
        let refused = ["unimplemented", "invalid_argument"]
            .map(|code| value(&metrics, &format!("{unknown}\"{code}\"}}")));
        assert_eq!(refused.iter().sum::<u64>(), 2, "{protocol:?}: {text}");
        assert_eq!(metrics.snapshot().in_flight, 0, "{protocol:?}");
    }
}

#[tokio::test]
async fn calls_that_wait_for_a_layer_are_in_the_queue_times() {
    let metrics = MetricsCollector::new();
    let fed = metrics.clone();
    let served =
        serve_with(move |builder| builder.metrics(&fed).layer(ConcurrencyLimitLayer::new(1))).await;
    let client = served.client(Protocol::Grpc);
    let hanging = tokio::spawn({
        let client = client.clone();
        async move { client.one(ending("hang")).await }
    });
    eventually("the first is under way", || {
        metrics.snapshot().in_flight == 1
    })
    .await;
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.one(say("x")).await }
    });
    // More than the bound of a bucket that the first call is in.
    tokio::time::sleep(Duration::from_millis(50)).await;
    hanging.abort();
    waiting.await.unwrap().unwrap();
    let queue = |series: &str| value(&metrics, &format!("quill_server_queue_seconds{series}"));
    assert_eq!(queue("_bucket{le=\"0.01\"}"), 1, "the first did not wait");
    assert_eq!(queue("_count"), 2);
}

#[tokio::test]
async fn calls_that_end_in_the_queue_are_counted() {
    for protocol in PROTOCOLS {
        let metrics = MetricsCollector::new();
        let fed = metrics.clone();
        let layer = ConcurrencyLimitLayer::new(1);
        let served = serve_with(move |builder| builder.metrics(&fed).layer(layer)).await;
        let client = served.client(protocol);
        let open = || metrics.snapshot().in_flight;
        let hanging = tokio::spawn({
            let client = client.clone();
            async move { client.one(ending("hang")).await }
        });
        eventually("the first is under way", || open() == 1).await;
        let late = Request::new(say("x")).with_timeout(Duration::from_millis(50));
        let error = client.one(late).await.unwrap_err();
        assert_eq!(error.code(), Code::DeadlineExceeded, "{protocol:?}");
        // Whoever notices first, the client or the server.
        let one = |code| handled(&metrics, "One", "unary", code);
        let ended = || one("deadline_exceeded") + one("canceled");
        eventually("its end is counted", || ended() == 1).await;
        hanging.abort();
        eventually("all are over", || open() == 0).await;
        assert_eq!((ended(), metrics.snapshot().requests), (2, 2));
        let queued = value(&metrics, "quill_server_queue_seconds_count");
        assert_eq!(queued, 2, "{protocol:?}");
    }
}

#[tokio::test]
async fn calls_whose_message_never_comes_are_counted() {
    for (method, kind, content_type) in [
        ("One", "unary", "application/grpc"),
        ("Down", "server_stream", "application/quill-stream+proto"),
    ] {
        let metrics = MetricsCollector::new();
        let fed = metrics.clone();
        let most = Duration::from_millis(50);
        let served = serve_with(move |builder| builder.metrics(&fed).timeout_max(most)).await;
        let path = format!("/probe.v1.ProbeService/{method}");
        let fields = [("content-type", content_type), ("quill-credits", "16")];
        let (_open, never) = tokio::sync::mpsc::channel(1);
        let channel = peer::http2(&served.url);
        peer::soon(peer::exchange(
            &channel,
            peer::head(&path, &fields),
            Fed(never),
        ))
        .await;
        let late = || handled(&metrics, method, kind, "deadline_exceeded");
        eventually("its end is counted", || late() == 1).await;
        let snapshot = metrics.snapshot();
        assert_eq!(
            (snapshot.requests, snapshot.failures),
            (1, 1),
            "{content_type}"
        );
    }
}

#[tokio::test]
async fn connections_are_counted_and_those_that_are_open() {
    let metrics = MetricsCollector::new();
    let served = counted(&metrics).await;
    let open = || value(&metrics, "quill_server_open_connections");
    let first = Http1::connect(&served.url).await;
    let second = Http1::connect(&served.url).await;
    eventually("both are open", || open() == 2).await;
    drop((first, second));
    eventually("both have ended", || open() == 0).await;
    assert_eq!(value(&metrics, "quill_server_connections_total"), 2);
}

async fn get(url: &str, path: &str) -> (u16, String) {
    let mut connection = Http1::connect(url).await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    connection.write(request).await;
    let answer = connection.answer().await;
    (answer.status, answer.text().to_owned())
}

#[tokio::test]
async fn the_page_is_on_the_same_address_where_it_is_asked_for() {
    let metrics = MetricsCollector::new();
    let served = counted(&metrics).await;
    assert_ne!(get(&served.url, "/metrics").await.0, 200, "nobody asked");

    let fed = metrics.clone();
    let served = serve_with(move |builder| {
        let builder = builder.metrics(&fed);
        builder.metrics_page(MetricsPage::here().at("/stats"))
    })
    .await;
    served.client(Protocol::Grpc).one(say("x")).await.unwrap();
    let mut connection = Http1::connect(&served.url).await;
    let asked = "GET /stats?x=1 HTTP/1.1\r\nhost: a\r\n\r\n";
    connection.write(asked).await;
    let answer = connection.answer().await;
    assert_eq!(answer.status, 200);
    let media_type = answer.header("content-type");
    assert_eq!(media_type, Some("text/plain; version=0.0.4; charset=utf-8"));
    let text = answer.text();
    let line = of("handled_total", "One", "unary", ",code=\"ok\"") + " 1";
    assert!(text.lines().any(|other| other == line), "{text}");
    assert_ne!(get(&served.url, "/metrics").await.0, 200);
    let posted = connection.post("/stats", &[], "").await;
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET")));
}

#[tokio::test]
async fn the_page_is_on_an_address_of_its_own() {
    let metrics = MetricsCollector::new();
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    let served = serve_with(move |builder| {
        let builder = builder.metrics(&metrics);
        builder.metrics_page(MetricsPage::on(listener))
    })
    .await;
    let page = format!("http://{}", served.server.metrics_addr().unwrap());
    let (status, text) = get(&page, "/metrics").await;
    assert_eq!(status, 200);
    assert!(text.contains("quill_server_started_total"), "{text}");
    assert_eq!(get(&page, "/probe.v1.ProbeService/One").await.0, 404);
    assert_ne!(get(&served.url, "/metrics").await.0, 200);
    served.server.shutdown().await;
    let address = page.strip_prefix("http://").unwrap();
    let gone = tokio::net::TcpStream::connect(address).await;
    assert!(gone.is_err(), "it ends with the server");
}

#[tokio::test]
async fn a_page_that_cannot_be_is_told() {
    let metrics = MetricsCollector::new();
    for (path, why) in [
        ("metrics", "leading /"),
        ("/a?b", "query"),
        ("/probe.v1.ProbeService/One", "a method is there"),
    ] {
        let builder = quill::Server::builder()
            .service(crate::probe::ProbeServer::new(
                crate::probe::Probe::default(),
            ))
            .metrics(&metrics)
            .metrics_page(MetricsPage::here().at(path));
        let error = builder.bind("127.0.0.1:0").await.unwrap_err();
        assert!(
            error.is_setting() && error.to_string().contains(why),
            "{error}"
        );
    }
    let alone = quill::Server::builder().metrics_page(MetricsPage::here());
    let error = alone.bind("127.0.0.1:0").await.unwrap_err();
    assert!(error.to_string().contains("set metrics too"), "{error}");
}

/// Prometheus' own linter has nothing to say.
#[tokio::test]
async fn promtool_finds_nothing() {
    let metrics = MetricsCollector::new();
    let fed = metrics.clone();
    let served = serve_with(move |builder| {
        builder
            .metrics(&fed)
            .layer(quill::rate_limit::RateLimitLayer::new(1e6, 1e6).metrics(&fed))
            .layer(quill::concurrency::ConcurrencyLimitLayer::new(10).metrics(&fed))
    })
    .await;
    let client = served.client(Protocol::Grpc);
    client.one(say("x")).await.unwrap();
    client.one(ending("error")).await.unwrap_err();
    let mut tool = Command::new("promtool");
    tool.args(["check", "metrics"]);
    tool.stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let Some(mut tool) = external::start(&mut tool) else {
        return;
    };
    let mut input = tool.stdin.take().expect("it has an input");
    input.write_all(metrics.prometheus().as_bytes()).unwrap();
    drop(input);
    let output = tool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// A Prometheus server of its own, ended with the test.
struct Prometheus {
    child: Child,
    folder: PathBuf,
    url: String,
}

impl Prometheus {
    /// One that scrapes `target`.
    fn start(target: &str) -> Option<Self> {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let folder = std::env::temp_dir().join(format!("quill-prometheus-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let config = folder.join("prometheus.yml");
        let scrape = "global: {scrape_interval: 200ms, scrape_timeout: 200ms}";
        let job = format!("{{job_name: quill, static_configs: [{{targets: [\"{target}\"]}}]}}");
        std::fs::write(&config, format!("{scrape}\nscrape_configs: [{job}]\n")).unwrap();
        let mut server = Command::new("prometheus");
        server
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = external::start(&mut server);
        Some(Self {
            child: child?,
            folder,
            url: format!("http://{address}"),
        })
    }

    /// What a query finds; `None` while there is no server or no answer.
    async fn query(&self, query: &str) -> Option<String> {
        let address = self.url.strip_prefix("http://").expect("a plain URL");
        tokio::net::TcpStream::connect(address).await.ok()?;
        let path = format!("/api/v1/query?query={query}");
        let (_, text) = get(&self.url, &path).await;
        let answer: serde_json::Value = serde_json::from_str(&text).ok()?;
        let value = answer.pointer("/data/result/0/value/1")?;
        value.as_str().map(str::to_owned)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[tokio::test]
async fn a_real_prometheus_scrapes_it() {
    let metrics = MetricsCollector::new();
    let fed = metrics.clone();
    let served = serve_with(move |builder| {
        let builder = builder.metrics(&fed);
        builder.metrics_page(MetricsPage::here())
    })
    .await;
    served.client(Protocol::Grpc).one(say("x")).await.unwrap();
    let target = served.url.strip_prefix("http://").expect("a plain URL");
    let Some(prometheus) = Prometheus::start(target) else {
        return;
    };
    for _ in 0..600 {
        let scraped = prometheus.query("sum(quill_server_handled_total)").await;
        if scraped.as_deref() == Some("1") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never scraped the call");
}
