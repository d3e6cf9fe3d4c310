//! Where in which trace a call is, on both sides and in between.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use quill::trace::{Flush, Sampling, Side, Span, SpanSink, Tracer};
use quill::{CallContext, Code, Error, Request, Response, Server, Stream, Streaming};

use crate::peer::{self, Http1};
use crate::probe::{
    PROTOCOLS, Probe, ProbeClient, ProbeRequest, ProbeResponse, ProbeServer, ProbeService, Served,
    ending, eventually, say, serve_with,
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const UNSAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// Keeps the spans that it is handed.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Span>>>, Arc<AtomicUsize>);

impl SpanSink for Kept {
    fn take(&self, span: Span) {
        self.0.lock().unwrap().push(span);
    }

    fn flush(&self) -> Flush {
        let Self(_, flushes) = self.clone();
        Box::pin(async move {
            flushes.fetch_add(1, Ordering::SeqCst);
        })
    }
}

impl Kept {
    fn tracer(&self) -> Tracer {
        Tracer::new(self.clone())
    }

    /// Waits for so many spans, and takes them.
    async fn spans(&self, count: usize) -> Vec<Span> {
        let what = format!("{count} spans");
        eventually(&what, || self.0.lock().unwrap().len() >= count).await;
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// Answers what another server of the same service does, which it asks while it
/// answers: in streams, when a message is asked for.
struct Front(ProbeClient);

impl Front {
    async fn ask(&self) -> Result<ProbeResponse, Error> {
        Ok(self.0.one(say("inner")).await?.into_inner())
    }
}

impl ProbeService for Front {
    async fn one(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Error> {
        Ok(self.ask().await?.into())
    }

    async fn down(
        &self,
        _: Request<ProbeRequest>,
    ) -> Result<Response<impl Stream<Item = Result<ProbeResponse, Error>> + Send>, Error> {
        Ok(Response::new(stream::once(self.ask())))
    }

    async fn up(
        &self,
        request: Request<Streaming<ProbeRequest>>,
    ) -> Result<Response<ProbeResponse>, Error> {
        let mut messages = request.into_inner();
        while messages.message().await?.is_some() {}
        Ok(self.ask().await?.into())
    }

    async fn both(
        &self,
        request: Request<Streaming<ProbeRequest>>,
    ) -> Result<Response<impl Stream<Item = Result<ProbeResponse, Error>> + Send>, Error> {
        let messages = request.into_inner();
        let answers = stream::try_unfold(messages, move |mut messages| async move {
            let Some(_) = messages.message().await? else {
                return Ok::<_, Error>(None);
            };
            Ok(Some((self.ask().await?, messages)))
        });
        Ok(Response::new(answers))
    }
}

/// A server that notes what a call of it came with.
async fn behind() -> (Served, Arc<Mutex<Vec<quill::Metadata>>>) {
    let seen = Arc::<Mutex<Vec<quill::Metadata>>>::default();
    let noted = Arc::clone(&seen);
    let layer = tower::filter::FilterLayer::new(move |request: Request<quill::Incoming>| {
        noted.lock().unwrap().push(request.metadata().clone());
        Ok::<_, tower::BoxError>(request)
    });
    (serve_with(|builder| builder.layer(layer)).await, seen)
}

fn from<T>(message: T, parent: &str) -> Request<T> {
    let mut request = Request::new(message);
    let metadata = request.metadata_mut();
    metadata.insert("traceparent", parent).unwrap();
    metadata.insert("tracestate", "vendor=1").unwrap();
    request
}

/// Makes a call of each kind with this parent.
async fn call_all(client: &ProbeClient, parent: &str) {
    client.one(from(say("x"), parent)).await.unwrap();
    let mut down = client
        .down(from(say("x"), parent))
        .await
        .unwrap()
        .into_inner();
    while down.message().await.unwrap().is_some() {}
    let messages = || stream::iter([say("x")]);
    client.up(from(messages(), parent)).await.unwrap();
    let mut both = client
        .both(from(messages(), parent))
        .await
        .unwrap()
        .into_inner();
    while both.message().await.unwrap().is_some() {}
}

#[tokio::test]
async fn a_trace_goes_through_handlers_of_every_kind_in_every_protocol() {
    for protocol in PROTOCOLS {
        let kept = Kept::default();
        let (inner, _) = behind().await;
        let client = inner
            .builder(protocol)
            .tracer(kept.tracer())
            .build()
            .unwrap();
        let front = Server::builder()
            .service(ProbeServer::new(Front(ProbeClient::new(client))))
            .tracer(kept.tracer())
            .bind("127.0.0.1:0");
        let front = front.await.unwrap().start();
        let outer = quill::QuillClient::builder()
            .base_url(format!("http://{}", front.local_addr().unwrap()))
            .protocol(protocol)
            .build()
            .unwrap();
        call_all(&ProbeClient::new(outer), PARENT).await;
        let spans = kept.spans(8).await;
        assert_eq!(spans.len(), 8, "{protocol:?}: {spans:#?}");
        let (servers, clients): (Vec<_>, Vec<_>) =
            spans.iter().partition(|span| span.side == Side::Server);
        assert_eq!((servers.len(), clients.len()), (4, 4), "{protocol:?}");
        for span in &spans {
            assert_eq!(span.context.trace_id().to_string(), TRACE);
            assert_eq!(span.context.state(), Some("vendor=1"), "{protocol:?}");
            assert_eq!(span.protocol, protocol.name());
            assert_eq!(span.failure, None);
        }
        for method in ["One", "Down", "Up", "Both"] {
            let of = |span: &&Span| span.method.as_ref().unwrap().name() == method;
            let server = servers.iter().copied().find(of).expect(method);
            let parent = server.context.parent_id().unwrap().to_string();
            assert_eq!(parent, "b7ad6b7169203331", "{protocol:?} {method}");
            assert!(server.peer.is_some() && server.target.is_none());
            let below = clients
                .iter()
                .find(|span| span.context.parent_id() == Some(server.context.span_id()));
            let below = below.expect("the call that the handler made");
            assert_eq!(below.method.as_ref().unwrap().name(), "One");
            assert_eq!(below.target.as_deref(), inner.url.strip_prefix("http://"));
            assert!(below.begun >= server.begun && below.took <= server.took);
        }
    }
}

#[tokio::test]
async fn without_tracers_the_callers_trace_goes_on_as_it_is() {
    for protocol in PROTOCOLS {
        let (inner, seen) = behind().await;
        let front = Server::builder()
            .service(ProbeServer::new(Front(inner.client(protocol))))
            .bind("127.0.0.1:0");
        let front = front.await.unwrap().start();
        let outer = quill::QuillClient::builder()
            .base_url(format!("http://{}", front.local_addr().unwrap()))
            .protocol(protocol)
            .build()
            .unwrap();
        let outer = ProbeClient::new(outer);
        call_all(&outer, PARENT).await;
        let broken = PARENT.to_uppercase();
        outer.one(from(say("x"), &broken)).await.unwrap();
        let seen = seen.lock().unwrap();
        let (last, passed) = seen.split_last().unwrap();
        assert_eq!(passed.len(), 4, "{protocol:?}");
        for metadata in passed {
            assert_eq!(metadata.get("traceparent"), Some(PARENT), "{protocol:?}");
            assert_eq!(metadata.get("tracestate"), Some("vendor=1"));
        }
        assert_eq!(last.get("traceparent"), None, "{protocol:?}: {last:?}");
        assert_eq!(last.get("tracestate"), None, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_caller_that_records_nothing_decides_for_all_that_ask_it() {
    let kept = Kept::default();
    let served = serve_with(|builder| builder.tracer(kept.tracer())).await;
    let strict = kept
        .tracer()
        .sampling(Sampling::always().ignoring_callers());
    let own = serve_with(|builder| builder.tracer(strict)).await;
    for protocol in PROTOCOLS {
        served
            .client(protocol)
            .one(from(say("x"), UNSAMPLED))
            .await
            .unwrap();
        own.client(protocol)
            .one(from(say("x"), UNSAMPLED))
            .await
            .unwrap();
        let spans = kept.spans(1).await;
        assert_eq!(
            spans.len(),
            1,
            "{protocol:?}: only the one that decides itself"
        );
        assert!(spans[0].context.is_sampled());
        assert_eq!(spans[0].context.trace_id().to_string(), TRACE);
    }
}

#[tokio::test]
async fn a_client_tells_the_server_and_is_the_parent() {
    for protocol in PROTOCOLS {
        let kept = Kept::default();
        let (inner, seen) = behind().await;
        let client = inner
            .builder(protocol)
            .tracer(kept.tracer())
            .build()
            .unwrap();
        let client = ProbeClient::new(client);
        client.one(ending("error")).await.unwrap_err();
        let [span] = kept.spans(1).await.try_into().unwrap();
        assert_eq!(span.side, Side::Client);
        assert_eq!(span.failure, Some(Code::FailedPrecondition));
        assert_eq!(span.message, "100% nö");
        let told = seen.lock().unwrap().pop().unwrap();
        let context = span.context.to_string();
        assert_eq!(told.get("traceparent"), Some(context.as_str()));
        assert_eq!(span.context.parent_id(), None, "the top of the trace");

        // A stream ends with its last message, or when it is dropped.
        let mut down = client
            .down(ProbeRequest {
                count: 2,
                ..say("x")
            })
            .await
            .unwrap();
        assert!(
            kept.0.lock().unwrap().is_empty(),
            "{protocol:?}: it goes on"
        );
        while down.message_mut().message().await.unwrap().is_some() {}
        let [span] = kept.spans(1).await.try_into().unwrap();
        assert_eq!(span.failure, None, "{protocol:?}");
        drop(client.down(say("x")).await.unwrap());
        let [span] = kept.spans(1).await.try_into().unwrap();
        assert_eq!(span.failure, Some(Code::Canceled), "{protocol:?}");

        let late = Request::new(ending("hang")).with_timeout(Duration::from_millis(30));
        client.one(late).await.unwrap_err();
        let [span] = kept.spans(1).await.try_into().unwrap();
        assert_eq!(span.failure, Some(Code::DeadlineExceeded), "{protocol:?}");
    }
}

#[tokio::test]
async fn errors_of_every_kind_name_their_trace() {
    for protocol in PROTOCOLS {
        let kept = Kept::default();
        let refusing = tower::filter::FilterLayer::new(|request: Request<quill::Incoming>| {
            match request.metadata().get("x-refuse") {
                Some(_) => Err(tower::BoxError::from(Error::unauthenticated("no"))),
                None => Ok(request),
            }
        });
        let served = serve_with(|builder| {
            let builder = builder.tracer(kept.tracer()).layer(refusing);
            let late = Duration::from_millis(50);
            builder.receive_bytes_max(1000).timeout_max(late)
        })
        .await;
        let client = served.client(protocol);
        let named = |error: &Error| error.request_id() == Some(TRACE);
        let refused = from(say("x"), PARENT)
            .with_metadata("x-refuse", "1")
            .unwrap();
        for (what, request) in [
            ("a handler's", from(ending("error"), PARENT)),
            ("a panic", from(ending("panic"), PARENT)),
            ("too late", from(ending("hang"), PARENT)),
            ("too large", from(say(&"x".repeat(2000)), PARENT)),
            ("refused", refused),
        ] {
            let error = client.one(request).await.unwrap_err();
            assert!(named(&error), "{protocol:?} {what}: {error:?}");
            let [span] = kept.spans(1).await.try_into().unwrap();
            assert_eq!(span.failure, Some(error.code()), "{protocol:?} {what}");
        }
        let failing = ProbeRequest {
            count: 1,
            ..ending("error")
        };
        let mut down = client
            .down(from(failing, PARENT))
            .await
            .unwrap()
            .into_inner();
        down.message().await.unwrap();
        let error = down.message().await.unwrap_err();
        assert!(named(&error), "{protocol:?}: {error:?}");
        let [span] = kept.spans(1).await.try_into().unwrap();
        assert_eq!(span.message, "100% nö", "{protocol:?}");

        // A trace that begins here has a name too.
        let error = client.one(ending("error")).await.unwrap_err();
        let [span] = kept.spans(1).await.try_into().unwrap();
        let id = span.context.trace_id().to_string();
        assert_eq!(error.request_id(), Some(id.as_str()), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_head_that_is_wrong_is_answered_with_the_name_of_its_trace() {
    let served = serve_with(|builder| builder.tracer(Tracer::unrecorded())).await;
    let mut connection = Http1::connect(&served.url).await;
    let fields = [
        ("content-type", "application/json"),
        ("connect-protocol-version", "1"),
        ("connect-timeout-ms", "never"),
        ("traceparent", PARENT),
    ];
    let answer = connection
        .post("/probe.v1.ProbeService/One", &fields, "{}")
        .await;
    assert_eq!(answer.status, 400);
    let details = answer.json()["details"].clone();
    assert_eq!(details[0]["type"], "google.rpc.RequestInfo", "{details}");
}

#[tokio::test]
async fn without_a_tracer_errors_have_no_name() {
    let served = crate::probe::serve().await;
    for protocol in PROTOCOLS {
        let client = served.client(protocol);
        let error = client.one(from(ending("error"), PARENT)).await.unwrap_err();
        assert_eq!(error.request_id(), None, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_drain_ends_with_a_flush() {
    let kept = Kept::default();
    let served = serve_with(|builder| builder.tracer(kept.tracer())).await;
    served.client(PROTOCOLS[0]).one(say("x")).await.unwrap();
    assert_eq!(kept.1.load(Ordering::SeqCst), 0);
    served.server.shutdown().await;
    assert_eq!(kept.1.load(Ordering::SeqCst), 1);
}

/// What a handler logs, with the trace that it is in, as a subscriber sees it.
mod events {
    use super::*;
    use ::tracing::field::{Field, Visit};
    use ::tracing::span::{Attributes, Id, Record};
    use ::tracing::{Event, Metadata, Subscriber};

    #[derive(Default)]
    struct Fields(Noted);

    /// The fields of a scope, with their values as text.
    type Noted = Vec<(&'static str, String)>;

    impl Visit for Fields {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            self.0.push((field.name(), format!("{value:?}")));
        }
    }

    /// Notes the fields of the scope that each event is in.
    #[derive(Clone, Default)]
    struct Scopes {
        scopes: Arc<Mutex<Vec<Noted>>>,
        inside: Arc<Mutex<Vec<u64>>>,
        events: Arc<Mutex<Vec<Noted>>>,
    }

    impl Subscriber for Scopes {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target().starts_with("quill::call") || metadata.target() == "handler"
        }

        fn new_span(&self, span: &Attributes<'_>) -> Id {
            let mut fields = Fields::default();
            span.record(&mut fields);
            let mut scopes = self.scopes.lock().unwrap();
            scopes.push(fields.0);
            Id::from_u64(scopes.len() as u64)
        }

        fn record(&self, span: &Id, values: &Record<'_>) {
            let mut fields = Fields::default();
            values.record(&mut fields);
            let index = usize::try_from(span.into_u64()).unwrap() - 1;
            self.scopes.lock().unwrap()[index].extend(fields.0);
        }

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {
            let inside = self.inside.lock().unwrap().last().copied();
            let scope = inside.map(|id| {
                let index = usize::try_from(id).unwrap() - 1;
                self.scopes.lock().unwrap()[index].clone()
            });
            self.events.lock().unwrap().push(scope.unwrap_or_default());
        }

        fn enter(&self, span: &Id) {
            self.inside.lock().unwrap().push(span.into_u64());
        }

        fn exit(&self, _: &Id) {
            self.inside.lock().unwrap().pop();
        }
    }

    /// Logs one event for each message that it makes.
    struct Logging(Probe);

    impl ProbeService for Logging {
        async fn one(
            &self,
            request: Request<ProbeRequest>,
        ) -> Result<Response<ProbeResponse>, Error> {
            tokio::task::yield_now().await;
            ::tracing::info!(target: "handler", "at work");
            self.0.one(request).await
        }

        async fn down(
            &self,
            request: Request<ProbeRequest>,
        ) -> Result<Response<impl Stream<Item = Result<ProbeResponse, Error>> + Send>, Error>
        {
            let answers = self.0.down(request).await?;
            Ok(answers
                .map(|answers| answers.inspect(|_| ::tracing::info!(target: "handler", "at work"))))
        }

        async fn up(
            &self,
            request: Request<Streaming<ProbeRequest>>,
        ) -> Result<Response<ProbeResponse>, Error> {
            self.0.up(request).await
        }

        async fn both(
            &self,
            request: Request<Streaming<ProbeRequest>>,
        ) -> Result<Response<impl Stream<Item = Result<ProbeResponse, Error>> + Send>, Error>
        {
            self.0.both(request).await
        }
    }

    #[tokio::test]
    async fn what_handlers_log_is_in_the_scope_of_their_trace() {
        let scopes = Scopes::default();
        let _set = ::tracing::subscriber::set_default(scopes.clone());
        let server = Server::builder()
            .service(ProbeServer::new(Logging(Probe::default())))
            .tracer(Tracer::unrecorded())
            .bind("127.0.0.1:0");
        let server = server.await.unwrap().start();
        let url = format!("http://{}", server.local_addr().unwrap());
        for protocol in PROTOCOLS {
            let client = quill::QuillClient::builder()
                .base_url(&url)
                .protocol(protocol);
            let client = ProbeClient::new(client.build().unwrap());
            client.one(from(say("x"), PARENT)).await.unwrap();
            let few = ProbeRequest {
                count: 2,
                ..say("x")
            };
            let mut down = client.down(from(few, PARENT)).await.unwrap().into_inner();
            while down.message().await.unwrap().is_some() {}
            let events = std::mem::take(&mut *scopes.events.lock().unwrap());
            assert_eq!(events.len(), 3, "{protocol:?}");
            for scope in events {
                assert!(scope.contains(&("trace_id", TRACE.to_owned())), "{scope:?}");
                assert!(scope.iter().any(|(name, _)| *name == "span_id"));
            }
        }
        let ended = |scope: &Vec<(&str, String)>| scope.contains(&("code", "\"ok\"".to_owned()));
        let scopes = scopes.scopes.lock().unwrap();
        assert!(scopes.iter().all(ended), "{scopes:?}");
    }
}

#[tokio::test]
async fn work_that_a_handler_spawns_can_go_on_in_its_trace() {
    let (inner, seen) = behind().await;
    let kept = Kept::default();
    let client = inner.client(PROTOCOLS[0]);
    let method = quill::Method::new("/front.v1.Front/Spawn", quill::MethodKind::Unary);
    let spawn = move |_: Request<quill::Incoming>| {
        let client = client.clone();
        async move {
            let call = async move { client.one(say("x")).await };
            let called = tokio::spawn(CallContext::current().scope(call)).await;
            called.expect("it does not panic")?;
            Err(Error::aborted("done"))
        }
    };
    let front = Server::builder().route(method, spawn).tracer(kept.tracer());
    let front = front.bind("127.0.0.1:0").await.unwrap().start();
    let url = format!("http://{}", front.local_addr().unwrap());
    let outer = quill::QuillClient::new(url);
    outer.call("front.v1.Front", "Spawn", "").await.unwrap_err();
    let [span] = kept.spans(1).await.try_into().unwrap();
    let told = seen.lock().unwrap().pop().unwrap();
    let context = span.context.to_string();
    assert_eq!(told.get("traceparent"), Some(context.as_str()));
}

#[tokio::test]
async fn two_parents_begin_a_trace_of_their_own() {
    let kept = Kept::default();
    let served = serve_with(|builder| builder.tracer(kept.tracer())).await;
    let channel = peer::http2(&served.url);
    let fields = [
        ("content-type", "application/grpc"),
        ("traceparent", PARENT),
        ("traceparent", PARENT),
    ];
    let head = peer::head("/probe.v1.ProbeService/One", &fields);
    peer::send(&channel, head, peer::envelope(0, b"")).await;
    let [span] = kept.spans(1).await.try_into().unwrap();
    assert_ne!(span.context.trace_id().to_string(), TRACE);
    assert_eq!(span.context.parent_id(), None);
}
