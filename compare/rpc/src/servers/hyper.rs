//! The least that hyper and prost need to serve: no framework, and no check that
//! this service does without.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use prost::Message;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{EXPANDED, Served};
use crate::generated::tonic::{Payload, Records, Sum};

const HEAD_BYTES: usize = 5;

type Failure = Box<dyn std::error::Error + Send + Sync>;

pub(super) async fn serve(listener: TcpListener) -> Served {
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            // A load that ends cuts its connections.
            let _ = server
                .serve_connection(TokioIo::new(socket), service_fn(answer))
                .await;
        });
    }
}

pub(super) async fn serve_tls(listener: TcpListener) -> Served {
    let (chain, key) = super::identity()?;
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(socket).await {
                let server = auto::Builder::new(TokioExecutor::new());
                let _ = server
                    .serve_connection(TokioIo::new(stream), service_fn(answer))
                    .await;
            }
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Answer>, Failure> {
    let is_grpc = request
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/grpc"));
    let path = request.uri().path().to_owned();
    let body = request.into_body();
    if !is_grpc {
        let payload = Payload::decode(body.collect().await?.to_bytes())?;
        let answer = Answer::whole(payload.encode_to_vec().into());
        return Ok(respond(answer, "application/proto"));
    }
    let answer = match path.as_str() {
        "/echo.v1.Echo/Unary" => Answer::grpc(&read_one::<Payload>(body).await?, 1),
        "/echo.v1.Echo/Expand" => Answer::grpc(&read_one::<Payload>(body).await?, EXPANDED),
        "/echo.v1.Echo/Digest" | "/echo.v1.Echo/Skim" => {
            let records = read_one::<Records>(body).await?.records;
            let texts = records.iter().map(|record| record.text.len() as u64);
            Answer::grpc(&Sum { bytes: texts.sum() }, 1)
        }
        "/echo.v1.Echo/Collect" => Answer::grpc(&read_last(body).await?, 1),
        "/echo.v1.Echo/Chat" => Answer::Chat(Payloads::new(body)),
        _ => {
            let mut response = Response::new(Answer::whole(Bytes::new()));
            *response.status_mut() = StatusCode::NOT_FOUND;
            return Ok(response);
        }
    };
    Ok(respond(answer, "application/grpc"))
}

fn respond(answer: Answer, content_type: &'static str) -> Response<Answer> {
    let mut response = Response::new(answer);
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

async fn read_one<M: Message + Default>(body: Incoming) -> Result<M, Failure> {
    let mut bytes = body.collect().await?.to_bytes();
    if bytes.len() < HEAD_BYTES {
        return Err("a request without a message".into());
    }
    bytes.advance(HEAD_BYTES);
    Ok(M::decode(bytes)?)
}

async fn read_last(body: Incoming) -> Result<Payload, Failure> {
    let mut payloads = Payloads::new(body);
    let mut last = Payload::default();
    while let Some(payload) = std::future::poll_fn(|cx| payloads.poll(cx)).await {
        last = payload?;
    }
    Ok(last)
}

fn put(message: &impl Message, out: &mut BytesMut) {
    let length = message.encoded_len();
    out.reserve(HEAD_BYTES + length);
    out.put_u8(0);
    out.put_u32(u32::try_from(length).expect("requests are below 4 GiB"));
    message.encode(out).expect("there is room");
}

/// The messages of a body.
struct Payloads {
    body: Incoming,
    bytes: BytesMut,
}

impl Payloads {
    fn new(body: Incoming) -> Self {
        Self {
            body,
            bytes: BytesMut::new(),
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Payload, Failure>>> {
        loop {
            if let Some(payload) = self.next() {
                return Poll::Ready(Some(payload));
            }
            match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        self.bytes.extend_from_slice(&data);
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn next(&mut self) -> Option<Result<Payload, Failure>> {
        let head = self.bytes.first_chunk::<HEAD_BYTES>()?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if self.bytes.len() < HEAD_BYTES + length {
            return None;
        }
        self.bytes.advance(HEAD_BYTES);
        let message = self.bytes.split_to(length);
        Some(Payload::decode(message).map_err(Into::into))
    }
}

enum Answer {
    /// Bytes, and the trailers of gRPC if it is that.
    Whole {
        bytes: Option<Bytes>,
        is_grpc: bool,
    },
    Chat(Payloads),
    Ended,
}

impl Answer {
    fn whole(bytes: Bytes) -> Self {
        Self::Whole {
            bytes: Some(bytes),
            is_grpc: false,
        }
    }

    fn grpc(message: &impl Message, times: usize) -> Self {
        let mut bytes = BytesMut::new();
        for _ in 0..times {
            put(message, &mut bytes);
        }
        Self::Whole {
            bytes: Some(bytes.freeze()),
            is_grpc: true,
        }
    }

    /// One frame of all messages that are there.
    fn poll_chat(
        payloads: &mut Payloads,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Failure>>> {
        let mut out = BytesMut::new();
        loop {
            match payloads.poll(cx) {
                Poll::Ready(Some(Ok(payload))) => put(&payload, &mut out),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) | Poll::Pending if !out.is_empty() => {
                    return Poll::Ready(Some(Ok(out.freeze())));
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

fn trailers() -> Frame<Bytes> {
    let mut fields = HeaderMap::with_capacity(1);
    fields.insert("grpc-status", HeaderValue::from_static("0"));
    Frame::trailers(fields)
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let frame = match &mut *self {
            Self::Whole { bytes, is_grpc } => match bytes.take() {
                Some(bytes) => return Poll::Ready(Some(Ok(Frame::data(bytes)))),
                None => is_grpc.then(trailers),
            },
            Self::Chat(payloads) => match Self::poll_chat(payloads, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(data)) => return Poll::Ready(Some(data.map(Frame::data))),
                Poll::Ready(None) => Some(trailers()),
            },
            Self::Ended => None,
        };
        *self = Self::Ended;
        Poll::Ready(frame.map(Ok))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Whole {
                bytes: Some(bytes),
                is_grpc: false,
            } => http_body::SizeHint::with_exact(bytes.len() as u64),
            _ => http_body::SizeHint::default(),
        }
    }
}
