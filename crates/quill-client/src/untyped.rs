//! Calls without types.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use quill_core::{Error, Method, MethodKind, RawCodec, Request, Streaming};

use crate::client::QuillClient;

/// Calls without types, for callers that encode and decode themselves: messages
/// are bytes in the client's format.
impl QuillClient {
    /// Calls a method with one message each way: `call("pkg.Service", "Method", bytes)`.
    ///
    /// # Errors
    /// The server's error, or what kept the call from being made.
    pub async fn call(
        &self,
        service: &str,
        method: &str,
        request: impl Into<Bytes>,
    ) -> Result<Bytes, Error> {
        let method = Method::named(service, method, MethodKind::Unary);
        let request = Request::new(request.into());
        let response = self.unary(&method, RawCodec, RawCodec, request).await?;
        Ok(response.into_inner())
    }

    /// Calls a method that answers with a stream.
    ///
    /// # Errors
    /// As [`call`](Self::call); later failures come out of the stream.
    pub async fn call_server_stream(
        &self,
        service: &str,
        method: &str,
        request: impl Into<Bytes>,
    ) -> Result<Streaming<Bytes>, Error> {
        let method = Method::named(service, method, MethodKind::ServerStreaming);
        let request = Request::new(request.into());
        let response = self
            .server_streaming(&method, RawCodec, RawCodec, request)
            .await?;
        Ok(response.into_inner())
    }

    /// Calls a method that takes a stream.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_client_stream<S>(
        &self,
        service: &str,
        method: &str,
        requests: S,
    ) -> Result<Bytes, Error>
    where
        S: Stream + Send + 'static,
        S::Item: Into<Bytes> + Send + 'static,
    {
        let method = Method::named(service, method, MethodKind::ClientStreaming);
        let request = Request::new(ToBytes(Box::pin(requests)));
        let response = self
            .client_streaming(&method, RawCodec, RawCodec, request)
            .await?;
        Ok(response.into_inner())
    }

    /// Calls a method that takes a stream and answers with one.
    ///
    /// # Errors
    /// As [`call`](Self::call); later failures come out of the stream.
    pub async fn call_bidi_stream<S>(
        &self,
        service: &str,
        method: &str,
        requests: S,
    ) -> Result<Streaming<Bytes>, Error>
    where
        S: Stream + Send + 'static,
        S::Item: Into<Bytes> + Send + 'static,
    {
        let method = Method::named(service, method, MethodKind::BidiStreaming);
        let request = Request::new(ToBytes(Box::pin(requests)));
        let response = self
            .bidi_streaming(&method, RawCodec, RawCodec, request)
            .await?;
        Ok(response.into_inner())
    }
}

/// A stream of what becomes bytes as one of bytes.
struct ToBytes<S>(Pin<Box<S>>);

impl<S: Stream<Item: Into<Bytes>>> Stream for ToBytes<S> {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        self.0
            .as_mut()
            .poll_next(cx)
            .map(|item| item.map(Into::into))
    }
}
