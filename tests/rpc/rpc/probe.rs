//! The service under test, and how to reach it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::stream;
use quill::{
    ClientBuilder, Code, Error, Protocol, QuillClient, Request, Response, RunningServer, Server,
    ServerBuilder, Stream, Streaming,
};

#[allow(missing_docs, unreachable_pub, clippy::all)]
pub(crate) mod proto {
    quill::include_proto!("probe.v1");
}

pub(crate) use proto::{ProbeClient, ProbeRequest, ProbeResponse, ProbeServer, ProbeService};

/// Every protocol a client can speak.
pub(crate) const PROTOCOLS: [Protocol; 5] = Protocol::ALL;

/// What the service saw, for the tests to look at.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Messages that a handler of Down or Both was asked to make.
    pub(crate) made: AtomicU32,
    /// A handler that never ends has begun.
    pub(crate) hanging: AtomicBool,
    /// A handler that never ends, or one of Down, was dropped.
    pub(crate) dropped: AtomicBool,
    /// The token of a call fired.
    pub(crate) token_fired: AtomicBool,
}

/// Ends a call as the request's `ending` says: empty ends well, `error` fails
/// with a rich error, `panic` panics, `hang` never ends.
#[derive(Clone, Debug, Default)]
pub(crate) struct Probe(pub(crate) Arc<Seen>);

/// Notes that the future it lives in was dropped.
struct NoteDrop(Arc<Seen>);

impl Drop for NoteDrop {
    fn drop(&mut self) {
        self.0.dropped.store(true, Ordering::SeqCst);
    }
}

pub(crate) fn rich_error() -> Error {
    let detail = ProbeResponse {
        text: "why".into(),
        number: 7,
        ..Default::default()
    };
    Error::failed_precondition("100% nö")
        .with_detail(&detail)
        .with_metadata("x-why", "because")
        .expect("the metadata is valid")
}

impl Probe {
    async fn end<T>(&self, ending: &str, well: T) -> Result<T, Error> {
        match ending {
            "" => Ok(well),
            "error" => Err(rich_error()),
            "panic" => panic!("asked to"),
            "hang" => {
                let _note = NoteDrop(Arc::clone(&self.0));
                self.0.hanging.store(true, Ordering::SeqCst);
                std::future::pending::<()>().await;
                Ok(well)
            }
            other => Err(Error::invalid_argument(format!("no ending {other}"))),
        }
    }

    fn answer(&self, request: &ProbeRequest, number: u32) -> ProbeResponse {
        self.0.made.fetch_add(1, Ordering::SeqCst);
        ProbeResponse {
            text: request.text.clone(),
            number,
            pad: vec![0; request.pad_bytes as usize],
            ..Default::default()
        }
    }
}

/// Whether the answer is asked to hold a secret.
fn is_secret<T>(request: &Request<T>) -> bool {
    request.metadata().get("x-secret").is_some()
}

fn heed<T>(is_secret: bool, response: Response<T>) -> Response<T> {
    if is_secret {
        return response.without_compression();
    }
    response
}

impl ProbeService for Probe {
    async fn one(
        &self,
        mut request: Request<ProbeRequest>,
    ) -> Result<Response<ProbeResponse>, Error> {
        let is_secret = is_secret(&request);
        let token = request.cancellation();
        let seen = Arc::clone(&self.0);
        tokio::spawn(async move {
            token.cancelled().await;
            seen.token_fired.store(true, Ordering::SeqCst);
        });
        let echoed = request.metadata().get("x-echo").map(str::to_owned);
        let bytes = request.metadata().get_bin("x-echo-bin").map(<[u8]>::to_vec);
        let left = request.remaining();
        let mut answer = self.answer(request.message(), 0);
        if let Some(left) = left {
            answer.number = u32::try_from(left.as_millis()).unwrap_or(u32::MAX);
        }
        let ending = request.message().ending.clone();
        let mut response = Response::new(self.end(&ending, answer).await?);
        if let Some(echoed) = echoed {
            response = response
                .with_metadata("x-echo", &echoed)?
                .with_trailer("x-trailer", &echoed)?;
        }
        if let Some(bytes) = bytes {
            response.metadata_mut().insert_bin("x-echo-bin", bytes)?;
        }
        Ok(heed(is_secret, response))
    }

    async fn down(
        &self,
        request: Request<ProbeRequest>,
    ) -> Result<Response<impl Stream<Item = Result<ProbeResponse, Error>> + Send>, Error> {
        let is_secret = is_secret(&request);
        let request = request.into_inner();
        let note = NoteDrop(Arc::clone(&self.0));
        let first = (request, 0_u32, note);
        let answers = stream::try_unfold(first, move |(request, made, note)| async move {
            if request.count != 0 && made >= request.count {
                self.end(&request.ending, ()).await?;
                return Ok(None);
            }
            let answer = self.answer(&request, made);
            Ok(Some((answer, (request, made + 1, note))))
        });
        heed(is_secret, Response::new(answers))
            .with_trailer("x-trailer", "down")
            .map_err(Error::from)
    }

    async fn up(
        &self,
        request: Request<Streaming<ProbeRequest>>,
    ) -> Result<Response<ProbeResponse>, Error> {
        let is_secret = is_secret(&request);
        let mut messages = request.into_inner();
        let mut last = ProbeRequest::default();
        let mut count = 0;
        while let Some(message) = messages.message().await? {
            count += 1;
            if message.ending == "stall" {
                std::future::pending::<()>().await;
            }
            last = message;
        }
        let answer = self.answer(&last, count);
        let answer = self.end(&last.ending, answer).await?;
        Ok(heed(is_secret, answer.into()))
    }

    async fn both(
        &self,
        request: Request<Streaming<ProbeRequest>>,
    ) -> Result<Response<impl Stream<Item = Result<ProbeResponse, Error>> + Send>, Error> {
        let is_secret = is_secret(&request);
        let messages = request.into_inner();
        let answers =
            stream::try_unfold((messages, 0_u32), move |(mut messages, made)| async move {
                let Some(message) = messages.message().await? else {
                    return Ok(None);
                };
                self.end(&message.ending, ()).await?;
                let answer = self.answer(&message, made);
                Ok::<_, Error>(Some((answer, (messages, made + 1))))
            });
        Ok(heed(is_secret, Response::new(answers)))
    }
}

/// A server under test and what it saw.
pub(crate) struct Served {
    pub(crate) server: RunningServer,
    pub(crate) seen: Arc<Seen>,
    pub(crate) url: String,
}

pub(crate) async fn serve() -> Served {
    serve_with(|builder| builder).await
}

pub(crate) async fn serve_with<L: quill::RpcLayers>(
    settings: impl FnOnce(ServerBuilder) -> ServerBuilder<L>,
) -> Served {
    let probe = Probe::default();
    let seen = Arc::clone(&probe.0);
    let builder = Server::builder().service(ProbeServer::new(probe));
    let bound = settings(builder)
        .bind("127.0.0.1:0")
        .await
        .expect("it binds");
    let server = bound.start();
    let address = server.local_addr().expect("a TCP socket");
    Served {
        server,
        seen,
        url: format!("http://{address}"),
    }
}

impl Served {
    pub(crate) fn builder(&self, protocol: Protocol) -> ClientBuilder {
        QuillClient::builder()
            .base_url(&self.url)
            .protocol(protocol)
    }

    pub(crate) fn client(&self, protocol: Protocol) -> ProbeClient {
        ProbeClient::new(self.builder(protocol).build().expect("a client"))
    }
}

pub(crate) fn say(text: &str) -> ProbeRequest {
    ProbeRequest {
        text: text.to_owned(),
        ..Default::default()
    }
}

pub(crate) fn ending(ending: &str) -> ProbeRequest {
    ProbeRequest {
        ending: ending.to_owned(),
        ..Default::default()
    }
}

/// Waits until something holds; at most a few seconds.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..500 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never came true: {what}");
}

pub(crate) fn assert_rich(error: &Error, protocol: Protocol) {
    assert_eq!(
        error.code(),
        Code::FailedPrecondition,
        "{protocol:?}: {error:?}"
    );
    assert_eq!(error.message(), "100% nö", "{protocol:?}");
    let detail = error.detail::<ProbeResponse>().expect("the detail");
    assert_eq!((detail.text.as_str(), detail.number), ("why", 7));
    assert_eq!(
        error.received_metadata().get("x-why"),
        Some("because"),
        "{protocol:?}"
    );
}
