//! What a caller may hand over as the messages of a streaming request.

use futures_core::Stream;

use crate::call::Request;

/// A stream of messages, or a [`Request`] of one: what generated clients take
/// where the client streams.
pub trait IntoStreamingRequest<T> {
    /// The messages.
    type Messages: Stream<Item = T> + Send + 'static;

    /// The stream as a request.
    fn into_streaming_request(self) -> Request<Self::Messages>;
}

impl<T, S> IntoStreamingRequest<T> for S
where
    S: Stream<Item = T> + Send + 'static,
{
    type Messages = S;

    fn into_streaming_request(self) -> Request<S> {
        Request::new(self)
    }
}

impl<T, S> IntoStreamingRequest<T> for Request<S>
where
    S: Stream<Item = T> + Send + 'static,
{
    type Messages = S;

    fn into_streaming_request(self) -> Request<S> {
        self
    }
}
