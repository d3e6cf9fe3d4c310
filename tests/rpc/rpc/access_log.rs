//! A line for each call.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::stream;
use quill::auth::{ApiKeyValidator, AuthLayer, Identity};
use quill::log::RequestLogger;
use quill::trace::Tracer;
use quill::{Code, Error, Incoming, Request, ServerBuilder};
use serde_json::Value;

use crate::peer::Http1;
use crate::probe::{PROTOCOLS, ProbeRequest, Served, ending, say, serve_with};

const KEY: &str = "4f2c9a61b0d84f2c9a61b0d8";

/// What was written.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Written {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// Waits for the next lines, and takes them.
    async fn lines(&self, logger: &RequestLogger, count: usize) -> Vec<Value> {
        for _ in 0..500 {
            logger.flush().await;
            if self.text().lines().count() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let text = String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
            .collect();
        assert_eq!(lines.len(), count, "{text}");
        lines
    }
}

async fn logged(
    logger: &RequestLogger,
    settings: impl FnOnce(ServerBuilder) -> ServerBuilder,
) -> Served {
    let logger = logger.clone();
    serve_with(|builder| settings(builder).request_logger(logger)).await
}

fn json(written: &Written) -> RequestLogger {
    RequestLogger::json().to(written.clone())
}

#[tokio::test]
async fn calls_of_every_kind_have_a_line_in_every_protocol() {
    for protocol in PROTOCOLS {
        let written = Written::default();
        let logger = json(&written);
        let served = logged(&logger, |builder| builder).await;
        let client = served.client(protocol);

        client.one(say("hi")).await.unwrap();
        let [line] = written.lines(&logger, 1).await.try_into().unwrap();
        assert_eq!(line["method"], "/probe.v1.ProbeService/One");
        assert_eq!(line["code"], "ok");
        assert_eq!(line["protocol"], protocol.name());
        assert_eq!(line["http"], "2");
        assert!(line["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
        assert!(line["duration_ms"].as_f64().unwrap() >= 0.0);
        assert!(line["time"].as_str().unwrap().ends_with('Z'));
        let traffic = [
            "received_messages",
            "received_bytes",
            "sent_messages",
            "sent_bytes",
        ];
        assert_eq!(
            traffic.map(|name| line[name].as_u64().unwrap()),
            [1, 4, 1, 4]
        );
        for absent in ["identity", "trace_id", "error", "metadata"] {
            assert_eq!(line[absent], Value::Null, "{protocol:?} {absent}");
        }

        let messages = stream::iter((0..3).map(|_| say("hi")));
        let mut both = client.both(messages).await.unwrap().into_inner();
        while both.message().await.unwrap().is_some() {}
        let [line] = written.lines(&logger, 1).await.try_into().unwrap();
        assert_eq!(
            traffic.map(|name| line[name].as_u64().unwrap())[0..2],
            [3, 12]
        );
        assert_eq!(line["sent_messages"], 3, "{protocol:?}");

        let failing = ProbeRequest {
            count: 1,
            ..ending("error")
        };
        let mut down = client.down(failing).await.unwrap().into_inner();
        while let Ok(Some(_)) = down.message().await {}
        client.one(ending("panic")).await.unwrap_err();
        let lines = written.lines(&logger, 2).await;
        assert_eq!(lines[0]["code"], "failed_precondition", "{protocol:?}");
        assert_eq!(lines[0]["error"], "100% nö");
        assert_eq!(lines[1]["code"], "internal", "{protocol:?}");

        let hanging = tokio::spawn({
            let client = client.clone();
            async move { client.one(ending("hang")).await }
        });
        let seen = Arc::clone(&served.seen);
        crate::probe::eventually("it hangs", || {
            seen.hanging.load(std::sync::atomic::Ordering::SeqCst)
        })
        .await;
        hanging.abort();
        let [line] = written.lines(&logger, 1).await.try_into().unwrap();
        assert_eq!(line["code"], "canceled", "{protocol:?}");
    }
}

#[tokio::test]
async fn a_line_says_who_called_in_which_trace_and_no_secret() {
    for protocol in PROTOCOLS {
        let written = Written::default();
        let logger = json(&written).all_metadata().redact(["x-tenant"]);
        let keys = ApiKeyValidator::new().key(KEY, Identity::new("ann \"the\" boss\n"));
        let logs = logger.clone();
        let served = serve_with(|builder| {
            let builder = builder.request_logger(logs).tracer(Tracer::unrecorded());
            builder.layer(AuthLayer::new(keys))
        })
        .await;
        let client = served.client(protocol);
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut request = Request::new(say("x"));
        for (name, value) in [
            ("x-api-key", KEY),
            ("authorization", "Bearer hunter2"),
            ("cookie", "a=hunter2"),
            ("x-tenant", "hunter2"),
            ("x-shown", "yes"),
            ("traceparent", parent),
        ] {
            request.metadata_mut().insert(name, value).unwrap();
        }
        request
            .metadata_mut()
            .insert_bin("x-bin", b"hunter2")
            .unwrap();
        client.one(request).await.unwrap();
        client.one(say("x")).await.unwrap_err();
        logger.flush().await;
        let text = written.text();
        assert!(!text.contains("hunter2") && !text.contains(KEY), "{text}");
        let [good, refused] = written.lines(&logger, 2).await.try_into().unwrap();
        assert_eq!(good["identity"], "ann \"the\" boss\n", "{protocol:?}");
        assert_eq!(good["trace_id"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(good["metadata"]["x-shown"], "yes", "{protocol:?}");
        assert_eq!(good["metadata"]["authorization"], "[redacted]");
        assert_eq!(refused["code"], "unauthenticated");
        assert_eq!(refused["identity"], Value::Null, "{protocol:?}");
        assert_eq!(refused["trace_id"].as_str().unwrap().len(), 32);
    }
}

#[tokio::test]
async fn what_becomes_no_call_has_a_line_that_it_cannot_break() {
    let written = Written::default();
    let logger = json(&written);
    let served = logged(&logger, |builder| builder.receive_bytes_max(1000)).await;
    let mut connection = Http1::connect(&served.url).await;
    let long = format!("/x.Y/{}", "z".repeat(2000));
    for path in ["/x.Y/%0a{\"code\":\"ok\"}", "//", &long] {
        let answer = connection
            .post(path, &[("content-type", "application/json")], "{}")
            .await;
        assert!(answer.status >= 400, "{path}");
    }
    let lines = written.lines(&logger, 3).await;
    assert_eq!(lines[0]["method"], "/x.Y/%0a{\"code\":\"ok\"}");
    assert_eq!(lines[1]["code"], "invalid_argument");
    assert!(lines[2]["method"].as_str().unwrap().len() < 300);
    for line in lines {
        assert_eq!(line["http"], "1.1");
        assert_ne!(line["code"], "ok");
    }
    let fields = [
        ("content-type", "application/json"),
        ("connect-protocol-version", "1"),
        ("connect-timeout-ms", "never"),
    ];
    connection
        .post("/probe.v1.ProbeService/One", &fields, "{}")
        .await;
    let [line] = written.lines(&logger, 1).await.try_into().unwrap();
    assert_eq!(line["code"], "invalid_argument");
    assert_eq!(line["protocol"], "connect");
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        client.one(say(&"x".repeat(2000))).await.unwrap_err();
        let [line] = written.lines(&logger, 1).await.try_into().unwrap();
        assert_eq!(line["code"], "resource_exhausted", "{protocol:?}");
    }
}

/// Lets a call wait for so many turns, and then is not ready at all.
#[derive(Clone)]
struct Closed<S> {
    inner: S,
    turns: u32,
}

impl<S: tower::Service<Request<Incoming>, Error = Error>> tower::Service<Request<Incoming>>
    for Closed<S>
{
    type Response = S::Response;
    type Error = Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self.turns.checked_sub(1) {
            None => Poll::Ready(Err(Error::unavailable("closed"))),
            Some(turns) => {
                self.turns = turns;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn call(&mut self, request: Request<Incoming>) -> S::Future {
        self.inner.call(request)
    }
}

#[tokio::test]
async fn what_a_layer_is_not_ready_for_has_a_line_and_is_counted_once() {
    for turns in [0, 3] {
        for protocol in PROTOCOLS {
            let written = Written::default();
            let logger = json(&written);
            let logs = logger.clone();
            let metrics = quill::metrics::MetricsCollector::new();
            let closed = tower::layer::layer_fn(move |inner| Closed { inner, turns });
            let served = serve_with(|builder| {
                let builder = builder.request_logger(logs).metrics(&metrics);
                builder.layer(closed)
            })
            .await;
            let error = served.client(protocol).one(say("x")).await.unwrap_err();
            assert_eq!(error.code(), Code::Unavailable, "{protocol:?}: {error}");
            let [line] = written.lines(&logger, 1).await.try_into().unwrap();
            assert_eq!(line["method"], "/probe.v1.ProbeService/One");
            assert_eq!(line["code"], "unavailable", "{protocol:?}");
            assert_eq!(line["error"], "closed", "{protocol:?}");
            let text = metrics.prometheus();
            let refused = text.lines().filter(|line| line.contains("unavailable"));
            let refused = refused.map(|line| line.rsplit(' ').next().unwrap());
            assert_eq!(refused.collect::<Vec<_>>(), ["1"], "{text}");
        }
    }
}

#[tokio::test]
async fn a_share_of_what_goes_well_and_all_that_fails() {
    let written = Written::default();
    let logger = json(&written).sample(0.1);
    let served = logged(&logger, |builder| builder).await;
    let client = served.client(PROTOCOLS[0]);
    for _ in 0..100 {
        client.one(say("x")).await.unwrap();
        client.one(ending("error")).await.unwrap_err();
    }
    served.server.shutdown().await;
    let text = written.text();
    let of = |code: &str| text.matches(&format!("\"code\":\"{code}\"")).count();
    assert_eq!(of("failed_precondition"), 100);
    assert!(of("ok").abs_diff(10) <= 2, "{}", of("ok"));
}

#[tokio::test]
async fn a_logger_that_is_disabled_leaves_calls_alone() {
    let served = serve_with(|builder| builder.request_logger(RequestLogger::disabled())).await;
    for protocol in PROTOCOLS {
        served.client(protocol).one(say("x")).await.unwrap();
    }
}

#[tokio::test]
async fn text_is_one_line_a_call() {
    let written = Written::default();
    let logger = RequestLogger::text().to(written.clone());
    let served = logged(&logger, |builder| builder).await;
    served.client(PROTOCOLS[0]).one(say("x")).await.unwrap();
    served.server.shutdown().await;
    let text = written.text();
    assert_eq!(text.lines().count(), 1, "{text}");
    let expected = " method=\"/probe.v1.ProbeService/One\" code=ok duration_ms=";
    assert!(text.contains(expected), "{text}");
}
