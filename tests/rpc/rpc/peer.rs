//! Peers that are not ours: raw bytes on HTTP/1.1, any head and body on HTTP/2,
//! and a server that answers what it was told.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quill_core::{Headers, RequestHead, ResponseHead, SharedHead};
use quill_transport::{
    Body, BoxBody, Channel, Chunk, ClientOptions, Endpoint, Full, HttpRequest, HttpResponse,
    HttpServer, Listener, RecvBody, Running, Service, TransportError,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

/// What no exchange of a test takes.
const LONG: Duration = Duration::from_secs(20);

pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LONG, future)
        .await
        .expect("it took too long")
}

/// A whole answer, as a peer sees it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) body: Bytes,
    pub(crate) trailers: Headers,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.text(name)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("a body of text")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {:?}", self.body))
    }

    /// The `grpc-status` of trailers, or of a head that is all there is.
    pub(crate) fn grpc_status(&self) -> Option<&str> {
        let in_head = self.header("grpc-status");
        self.trailers.text("grpc-status").or(in_head)
    }

    pub(crate) fn grpc_message(&self) -> &str {
        let in_head = self.header("grpc-message");
        let text = self.trailers.text("grpc-message").or(in_head);
        text.unwrap_or_default()
    }
}

/// One HTTP/1.1 connection, byte by byte.
pub(crate) struct Http1(BufStream<TcpStream>);

impl Http1 {
    pub(crate) async fn connect(url: &str) -> Self {
        let address = url.strip_prefix("http://").expect("a plain URL");
        let socket = TcpStream::connect(address).await.expect("it connects");
        Self(BufStream::new(socket))
    }

    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        self.0
            .write_all(bytes.as_ref())
            .await
            .expect("it is written");
        self.0.flush().await.expect("it is written");
    }

    /// Ends this side's half.
    pub(crate) async fn finish(&mut self) {
        self.0.shutdown().await.expect("it is closed");
    }

    /// Sends a POST and reads its answer.
    pub(crate) async fn post(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Answer {
        let body = body.as_ref();
        let mut head = format!("POST {path} HTTP/1.1\r\nhost: a\r\n");
        for (name, value) in fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", body.len()));
        self.write([head.as_bytes(), body].concat()).await;
        self.answer().await
    }

    pub(crate) async fn answer(&mut self) -> Answer {
        soon(self.read_answer()).await.expect("an answer")
    }

    /// The next answer; `None` when the connection ends without.
    pub(crate) async fn read_answer(&mut self) -> Option<Answer> {
        let line = self.line().await?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let headers = self.fields().await?;
        let mut answer = Answer {
            status,
            headers,
            body: Bytes::new(),
            trailers: Headers::new(),
        };
        if answer.header("transfer-encoding") == Some("chunked") {
            let mut body = BytesMut::new();
            loop {
                let size = usize::from_str_radix(&self.line().await?, 16).ok()?;
                if size == 0 {
                    break;
                }
                body.extend(self.bytes(size).await?);
                self.line().await?;
            }
            answer.body = body.freeze();
            answer.trailers = self.fields().await?;
        } else if let Some(length) = answer.header("content-length") {
            answer.body = self.bytes(length.parse().ok()?).await?.into();
        }
        Some(answer)
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).await.ok()?;
        Some(line.strip_suffix("\r\n")?.to_owned())
    }

    async fn fields(&mut self) -> Option<Headers> {
        let mut fields = Headers::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Some(fields);
            }
            let (name, value) = line.split_once(": ")?;
            fields.append(name, value);
        }
    }

    async fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).await.ok()?;
        Some(bytes)
    }
}

/// Connections of HTTP/2 to a server, for any heads and bodies.
pub(crate) fn http2(url: &str) -> Channel {
    let endpoint = Endpoint::parse(url).expect("a URL");
    Channel::new(endpoint, ClientOptions::default(), None).expect("a channel")
}

pub(crate) fn head(path: &str, fields: &[(&str, &str)]) -> RequestHead {
    let mut head = RequestHead::post(path);
    for (name, value) in fields {
        head.headers.append(name, value);
    }
    head
}

/// Sends a request on HTTP/2 and reads the whole answer.
pub(crate) async fn send(channel: &Channel, head: RequestHead, body: impl Into<Bytes>) -> Answer {
    soon(exchange(channel, head, Full::new(body))).await
}

/// Sends a request with any body on HTTP/2 and reads the whole answer, however
/// long that takes.
pub(crate) async fn exchange(
    channel: &Channel,
    head: RequestHead,
    body: impl Body + 'static,
) -> Answer {
    let exchange = async {
        let (head, mut received) = channel.send(head, body).await?;
        let (body, trailers) = collect(&mut received).await?;
        Ok::<_, TransportError>(Answer {
            status: head.status,
            headers: head.headers,
            body,
            trailers,
        })
    };
    exchange.await.expect("an answer")
}

async fn collect(body: &mut RecvBody) -> Result<(Bytes, Headers), TransportError> {
    let mut bytes = BytesMut::new();
    let mut trailers = Headers::new();
    while let Some(chunk) = poll_fn(|cx| Pin::new(&mut *body).poll_chunk(cx)).await {
        match chunk? {
            Chunk::Data(data) => bytes.extend_from_slice(&data),
            Chunk::Trailers(fields) => trailers = fields,
        }
    }
    Ok((bytes.freeze(), trailers))
}

/// Length-prefixed messages, as gRPC and Connect have them.
pub(crate) fn envelope(flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a short payload");
    [&[flags], &length.to_be_bytes()[..], payload].concat()
}

/// A server that gives every request the same answer.
#[derive(Clone)]
pub(crate) struct Told {
    answer: Arc<Script>,
    asked: Arc<Mutex<Vec<SharedHead>>>,
}

#[derive(Clone, Default)]
pub(crate) struct Script {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Option<Vec<(&'static str, String)>>,
}

impl Script {
    /// A 200 of this content type.
    pub(crate) fn ok(content_type: &str) -> Self {
        Self {
            status: 200,
            ..Self::default()
        }
        .field("content-type", content_type)
    }

    pub(crate) fn field(mut self, name: &'static str, value: &str) -> Self {
        self.fields.push((name, value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, body: impl AsRef<[u8]>) -> Self {
        self.body.extend_from_slice(body.as_ref());
        self
    }

    pub(crate) fn trailer(mut self, name: &'static str, value: &str) -> Self {
        let trailers = self.trailers.get_or_insert_default();
        trailers.push((name, value.to_owned()));
        self
    }

    /// Starts a server that answers so; its URL, and what keeps it.
    pub(crate) async fn serve(self) -> ToldServer {
        let told = Told {
            answer: Arc::new(self),
            asked: Arc::default(),
        };
        let listener = Listener::bind("127.0.0.1:0").await.expect("it binds");
        let asked = Arc::clone(&told.asked);
        let running = HttpServer::new(listener).start(told);
        let address = running.local_addr().expect("a TCP socket");
        ToldServer {
            url: format!("http://{address}"),
            asked,
            _running: running,
        }
    }
}

pub(crate) struct ToldServer {
    pub(crate) url: String,
    pub(crate) asked: Arc<Mutex<Vec<SharedHead>>>,
    _running: Running,
}

impl Service for Told {
    type Body = BoxBody;
    type Future = Pin<Box<dyn Future<Output = HttpResponse<BoxBody>> + Send>>;

    fn call(&self, mut request: HttpRequest) -> Self::Future {
        let told = self.clone();
        Box::pin(async move {
            let _ = collect(&mut request.body).await;
            told.asked.lock().expect("not poisoned").push(request.head);
            let script = &told.answer;
            let mut head = ResponseHead::new(script.status);
            for (name, value) in &script.fields {
                head.headers.append(name, value);
            }
            let mut chunks = Vec::new();
            if let Some(trailers) = &script.trailers {
                let mut fields = Headers::new();
                for (name, value) in trailers {
                    fields.append(name, value);
                }
                chunks.push(Chunk::Trailers(fields));
            }
            if !script.body.is_empty() {
                chunks.push(Chunk::Data(script.body.clone().into()));
            }
            let body: BoxBody = Box::pin(Chunks(chunks));
            HttpResponse { head, body }
        })
    }
}

/// Chunks, the last first.
struct Chunks(Vec<Chunk>);

impl Body for Chunks {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, TransportError>>> {
        Poll::Ready(self.0.pop().map(Ok))
    }

    fn is_ended(&self) -> bool {
        self.0.is_empty()
    }
}
