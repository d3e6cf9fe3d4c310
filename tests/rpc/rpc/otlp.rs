//! What goes to a collector.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use quill::metrics::MetricsCollector;
use quill::{
    Code, Error, Incoming, Method, MethodKind, Otlp, Protocol, RawCodec, Reply, Request, Response,
    RunningServer, Server,
};
use quill_core::Encodable;
use serde_json::Value;

use crate::external;
use crate::probe::{PROTOCOLS, ProbeClient, ending, eventually, say, serve_with};

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// The OpenTelemetry collector's own receiver, ended with the test.
struct Receiver {
    child: Child,
    url: String,
    lines: mpsc::Receiver<Value>,
}

impl Receiver {
    async fn start() -> Option<Self> {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut receiver = Command::new("otlp-receiver");
        receiver.arg(address.to_string()).stdout(Stdio::piped());
        let mut child = external::start(&mut receiver)?;
        let output = child.stdout.take().expect("it has an output");
        let (send, lines) = mpsc::sync_channel(1000);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("a line of JSON");
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let receiver = Self {
            child,
            url: format!("http://{address}"),
            lines,
        };
        let mut connected = false;
        for _ in 0..600 {
            if tokio::net::TcpStream::connect(address).await.is_ok() {
                connected = true;
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(connected, "the receiver never listened");
        Some(receiver)
    }

    /// All that was received, once nothing more is to come.
    fn received(mut self) -> Vec<Value> {
        // Its lines end with it.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.lines.iter().collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value of an attribute, as text.
fn attribute(of: &Value, key: &str) -> Option<String> {
    let all = of["attributes"].as_array()?;
    let found = all.iter().find(|attribute| attribute["key"] == key)?;
    let value = &found["value"];
    let text = value["stringValue"].as_str();
    text.or_else(|| value["intValue"].as_str())
        .map(str::to_owned)
}

#[tokio::test]
async fn the_collectors_own_receiver_takes_spans_and_metrics() {
    let Some(receiver) = Receiver::start().await else {
        return;
    };
    let metrics = MetricsCollector::new();
    let otlp = Otlp::builder("prober")
        .endpoint(&receiver.url)
        .attribute("deployment.environment.name", "test")
        .metrics(&metrics)
        .start()
        .unwrap();
    let (tracer, fed) = (otlp.tracer(), metrics.clone());
    let served = serve_with(|builder| builder.tracer(tracer).metrics(&fed)).await;
    let mut names = Vec::new();
    for protocol in PROTOCOLS {
        let client = served.builder(protocol).tracer(&otlp).build().unwrap();
        let client = ProbeClient::new(client);
        client.one(say("x")).await.unwrap();
        let error = client.one(ending("error")).await.unwrap_err();
        names.push(error.request_id().expect("its trace").to_owned());
    }
    // A drain flushes.
    served.server.shutdown().await;
    let counts = otlp.counts();
    assert_eq!((counts.sent_spans, counts.failed_spans), (20, 0));
    assert!(counts.sent_metrics > 0 && counts.failed_metrics == 0);
    let received = receiver.received();
    check_spans(&received, &names);
    check_metrics(&received, &metrics);
}

fn check_spans(received: &[Value], failed: &[String]) {
    let groups = received
        .iter()
        .filter_map(|line| line["resourceSpans"].as_array());
    let groups: Vec<&Value> = groups.flatten().collect();
    let mut spans = Vec::new();
    for group in groups {
        let resource = &group["resource"];
        assert_eq!(
            attribute(resource, "service.name").as_deref(),
            Some("prober")
        );
        let environment = attribute(resource, "deployment.environment.name");
        assert_eq!(environment.as_deref(), Some("test"));
        for scope in group["scopeSpans"].as_array().unwrap() {
            assert_eq!(scope["scope"]["name"], "quill");
            spans.extend(scope["spans"].as_array().unwrap().clone());
        }
    }
    assert_eq!(spans.len(), 20);
    let servers = spans.iter().filter(|span| span["kind"] == 2);
    let servers: Vec<&Value> = servers.collect();
    assert_eq!(servers.len(), 10);
    let mut systems = std::collections::BTreeMap::new();
    for server in servers {
        assert_eq!(server["name"], "probe.v1.ProbeService/One");
        assert_eq!(
            attribute(server, "rpc.method").as_deref(),
            Some("probe.v1.ProbeService/One")
        );
        assert_eq!(
            attribute(server, "client.address").as_deref(),
            Some("127.0.0.1")
        );
        let system = attribute(server, "rpc.system.name").unwrap();
        *systems.entry(system).or_insert(0) += 1;
        // Its parent is the client's span of the same trace.
        let parent = spans
            .iter()
            .find(|span| span["spanId"] == server["parentSpanId"])
            .expect("its parent");
        assert_eq!(
            (&parent["kind"], &parent["traceId"]),
            (&3.into(), &server["traceId"])
        );
        let is_failed = failed.iter().any(|id| server["traceId"] == id.as_str());
        assert_eq!(parent["status"]["code"] == 2, is_failed, "{parent}");
        assert_eq!(server["status"]["code"], Value::Null, "{server}");
        let begun = |span: &Value| span["startTimeUnixNano"].as_str().unwrap().to_owned();
        let ended = |span: &Value| span["endTimeUnixNano"].as_str().unwrap().to_owned();
        assert!(begun(parent) <= begun(server) && begun(server) <= ended(server));
    }
    let expected = [("connectrpc", 2), ("grpc", 6), ("quill", 2)];
    assert_eq!(
        systems,
        expected.map(|(name, n)| (name.to_owned(), n)).into()
    );
}

fn check_metrics(received: &[Value], metrics: &MetricsCollector) {
    let last = received
        .iter()
        .rfind(|line| line["resourceMetrics"].is_array());
    let last = last.expect("metrics were sent");
    let sent = last
        .pointer("/resourceMetrics/0/scopeMetrics/0/metrics")
        .unwrap();
    let sent = sent.as_array().unwrap();
    let of = |name: &str| {
        sent.iter()
            .find(|metric| metric["name"] == name)
            .expect(name)
    };
    for family in metrics.families() {
        assert_eq!(of(family.name)["description"], family.help);
    }
    let handled = of("quill_server_handled_total");
    assert_eq!(handled.pointer("/sum/isMonotonic"), Some(&true.into()));
    let points = handled
        .pointer("/sum/dataPoints")
        .unwrap()
        .as_array()
        .unwrap();
    let of_code = |code: &str| {
        let is_it = |point: &&Value| {
            attribute(point, "code").as_deref() == Some(code)
                && attribute(point, "method").as_deref() == Some("One")
        };
        points.iter().find(is_it).expect(code)["asInt"].clone()
    };
    assert_eq!(of_code("ok"), "5");
    assert_eq!(of_code("failed_precondition"), "5");
    let took = of("quill_server_handling_seconds");
    let point = took.pointer("/histogram/dataPoints/0").unwrap();
    assert_eq!(
        (&point["count"], &took["unit"]),
        (&"10".into(), &"s".into())
    );
    assert_eq!(point["bucketCounts"].as_array().unwrap().len(), 18);
}

/// A collector of ours, which answers as it is told.
async fn collector<F, Fut>(answer: F) -> RunningServer
where
    F: Fn(u32) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<&'static [u8], Error>> + Send + 'static,
{
    let asked = AtomicU32::new(0);
    let answer = Arc::new(answer);
    let export = move |_: Request<Incoming>| {
        let answered = answer(asked.fetch_add(1, Ordering::SeqCst));
        async move {
            let message = bytes::Bytes::from_static(answered.await?);
            let codec = RawCodec;
            Ok(Response::new(Reply::One(Box::new(Encodable {
                message,
                codec,
            }))))
        }
    };
    let server = Server::builder().route(Method::new(TRACES, MethodKind::Unary), export);
    server.bind("127.0.0.1:0").await.unwrap().start()
}

fn to(collector: &RunningServer) -> quill::OtlpBuilder {
    let address = collector.local_addr().unwrap();
    Otlp::builder("prober").endpoint(format!("http://{address}"))
}

async fn make_calls(otlp: &Otlp, calls: usize) {
    let tracer = otlp.tracer();
    let served = serve_with(|builder| builder.tracer(tracer)).await;
    let client = served.client(Protocol::Grpc);
    for _ in 0..calls {
        client.one(say("x")).await.unwrap();
    }
}

#[tokio::test]
async fn a_collector_that_never_answers_costs_spans_and_nobody_waits() {
    let hanging = collector(|_| std::future::pending()).await;
    let spans_every = Duration::from_millis(10);
    let otlp = to(&hanging)
        .spans_max(8)
        .spans_every(spans_every)
        .start()
        .unwrap();
    make_calls(&otlp, 4).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    // The first are on their way, and what comes now waits, up to the bound.
    make_calls(&otlp, 20).await;
    eventually("some are dropped", || otlp.counts().dropped_spans > 0).await;
    assert!(otlp.counts().dropped_spans >= 12, "{:?}", otlp.counts());
    let begun = Instant::now();
    tokio::time::timeout(Duration::from_secs(8), otlp.flush())
        .await
        .expect("a flush ends");
    assert!(begun.elapsed() >= Duration::from_secs(4), "it waited first");
}

#[tokio::test]
async fn what_may_be_tried_again_is_and_what_is_rejected_is_counted() {
    let answers = collector(|asked| async move {
        match asked {
            0 => Err(Error::new(Code::Unavailable, "busy")),
            // { partial_success { rejected_spans: 2 error_message: "odd" } }
            1 => Ok(&b"\x0a\x07\x08\x02\x12\x03odd"[..]),
            2 => Err(Error::new(Code::InvalidArgument, "never again")),
            _ => Ok(&b""[..]),
        }
    })
    .await;
    let otlp = to(&answers).start().unwrap();
    make_calls(&otlp, 3).await;
    otlp.flush().await;
    let counts = otlp.counts();
    assert_eq!((counts.sent_spans, counts.failed_spans), (1, 2));
    make_calls(&otlp, 3).await;
    otlp.flush().await;
    assert_eq!(otlp.counts().failed_spans, 5);
    make_calls(&otlp, 3).await;
    otlp.flush().await;
    assert_eq!(otlp.counts().sent_spans, 4);
}

#[tokio::test]
async fn what_waits_is_sent_when_all_have_gone() {
    let taken = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&taken);
    let answers = collector(move |_| {
        *counted.lock().unwrap() += 1;
        async { Ok(&b""[..]) }
    })
    .await;
    let otlp = to(&answers).start().unwrap();
    otlp.tracer().record(quill::trace::Span::begin(
        Arc::new(otlp.tracer().begin(None)),
        quill::trace::Side::Server,
    ));
    drop(otlp);
    eventually("it is sent", || *taken.lock().unwrap() == 1).await;
}
