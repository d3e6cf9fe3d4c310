//! The call that a benchmark makes again and again.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use quill::{Error, Metadata, Method, MethodKind, QuillClient, RawCodec, Request, Streaming};

/// A call whose messages are encoded already.
pub(crate) struct BenchCall {
    pub(crate) method: Method,
    /// A call takes one of them in turn, or all if it sends a stream. A method
    /// that takes one message has at least one.
    pub(crate) messages: Arc<[Bytes]>,
    pub(crate) metadata: Metadata,
    pub(crate) timeout: Option<Duration>,
}

/// The messages of calls, as bytes before compression.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) messages_received: u64,
}

impl BenchCall {
    /// Makes the call and reads all that it is answered.
    pub(crate) async fn make(&self, client: &QuillClient, number: u64) -> Result<Traffic, Error> {
        let method = &self.method;
        match method.kind() {
            MethodKind::Unary => {
                let message = self.message(number);
                let bytes_sent = message.len() as u64;
                let request = self.request(message);
                let answer = client.unary(method, RawCodec, RawCodec, request).await?;
                Ok(Traffic::of_one(bytes_sent, answer.message()))
            }
            MethodKind::ServerStreaming => {
                let message = self.message(number);
                let bytes_sent = message.len() as u64;
                let request = self.request(message);
                let answers = client
                    .server_streaming(method, RawCodec, RawCodec, request)
                    .await?;
                received(answers.into_inner(), bytes_sent).await
            }
            MethodKind::ClientStreaming => {
                let request = self.request(self.stream());
                let answer = client
                    .client_streaming(method, RawCodec, RawCodec, request)
                    .await?;
                Ok(Traffic::of_one(self.stream_bytes(), answer.message()))
            }
            MethodKind::BidiStreaming => {
                let request = self.request(self.stream());
                let answers = client
                    .bidi_streaming(method, RawCodec, RawCodec, request)
                    .await?;
                received(answers.into_inner(), self.stream_bytes()).await
            }
        }
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if !self.metadata.is_empty() {
            request.metadata_mut().extend(&self.metadata);
        }
        match self.timeout {
            Some(timeout) => request.with_timeout(timeout),
            None => request,
        }
    }

    fn message(&self, number: u64) -> Bytes {
        let count = self.messages.len().max(1) as u64;
        let index = usize::try_from(number % count).unwrap_or_default();
        self.messages.get(index).cloned().unwrap_or_default()
    }

    fn stream(&self) -> impl futures_util::Stream<Item = Bytes> + Send + 'static {
        let messages = Arc::clone(&self.messages);
        let count = messages.len();
        stream::iter((0..count).filter_map(move |index| messages.get(index).cloned()))
    }

    fn stream_bytes(&self) -> u64 {
        self.messages
            .iter()
            .map(|message| message.len() as u64)
            .sum()
    }
}

/// Reads a stream to its end.
async fn received(mut answers: Streaming<Bytes>, bytes_sent: u64) -> Result<Traffic, Error> {
    let mut traffic = Traffic {
        bytes_sent,
        ..Traffic::default()
    };
    while let Some(answer) = answers.message().await? {
        traffic.bytes_received += answer.len() as u64;
        traffic.messages_received += 1;
    }
    Ok(traffic)
}

impl Traffic {
    fn of_one(bytes_sent: u64, answer: &Bytes) -> Self {
        Self {
            bytes_sent,
            bytes_received: answer.len() as u64,
            messages_received: 1,
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.messages_received += other.messages_received;
    }
}
