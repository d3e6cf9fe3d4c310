//! One call of the client, as the suite describes it.

use std::future::{Future, pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use buffa::{Message, MessageField, MessageName};
use futures_util::{Stream, stream};
use quill::{
    BuffaCodec, Codec, Error, Metadata, Method, QuillClient, Request, Response, Streaming,
};
use tokio::sync::{Notify, Semaphore};

use crate::fields::{to_headers, to_metadata, to_proto_error, type_name};
use crate::proto::client_compat_request::cancel::CancelTiming;
use crate::proto::conformance_service as methods;
use crate::proto::{
    BidiStreamRequest, BidiStreamResponse, ClientCompatRequest, ClientResponseResult,
    ClientStreamRequest, ClientStreamResponse, ConformancePayload, IdempotentUnaryRequest,
    IdempotentUnaryResponse, ServerStreamRequest, ServerStreamResponse, StreamType, UnaryRequest,
    UnaryResponse, UnimplementedRequest, UnimplementedResponse,
};

/// Makes the call. The error says why it could not be made at all.
pub(crate) async fn make(
    client: &QuillClient,
    asked: &ClientCompatRequest,
) -> Result<ClientResponseResult, String> {
    let service = asked.service.as_deref().unwrap_or_default();
    if service != methods::NAME {
        return Err(format!("there is no service {service:?} here"));
    }
    if asked.raw_request.is_set() {
        return Err("raw requests are for the suite's own client".to_owned());
    }
    let call = Call { client, asked };
    match asked.method.as_deref().unwrap_or_default() {
        "Unary" => {
            let payload = |answer: UnaryResponse| answer.payload;
            call.unary::<UnaryRequest, _>(&methods::UNARY, payload)
                .await
        }
        "IdempotentUnary" => {
            let payload = |answer: IdempotentUnaryResponse| answer.payload;
            call.unary::<IdempotentUnaryRequest, _>(&methods::IDEMPOTENT_UNARY, payload)
                .await
        }
        "Unimplemented" => {
            let payload = |_: UnimplementedResponse| MessageField::default();
            call.unary::<UnimplementedRequest, _>(&methods::UNIMPLEMENTED, payload)
                .await
        }
        "ServerStream" => call.server_stream().await,
        "ClientStream" => call.client_stream().await,
        "BidiStream" => call.bidi_stream().await,
        other => Err(format!("there is no method {other:?} here")),
    }
}

type Payload = MessageField<ConformancePayload, buffa::Inline<ConformancePayload>>;

struct Call<'a> {
    client: &'a QuillClient,
    asked: &'a ClientCompatRequest,
}

impl Call<'_> {
    async fn unary<Req, Res>(
        &self,
        method: &Method,
        payload: fn(Res) -> Payload,
    ) -> Result<ClientResponseResult, String>
    where
        Req: Message + MessageName + 'static,
        BuffaCodec: Codec<Req> + Codec<Res>,
    {
        let request = self.request(self.only_message::<Req>()?)?;
        let mut seen = Seen::default();
        let work = async {
            let response = self
                .client
                .unary(method, BuffaCodec, BuffaCodec, request)
                .await?;
            seen.answer(response.map(payload));
            Ok(())
        };
        let result = self.until_canceled(work, ready(())).await;
        Ok(seen.finish(result, 0))
    }

    async fn client_stream(&self) -> Result<ClientResponseResult, String> {
        let sending = Arc::new(Sending::default());
        let request = self.request(self.requests::<ClientStreamRequest>(&sending)?)?;
        let mut seen = Seen::default();
        let work = async {
            let response = self
                .client
                .client_streaming(&methods::CLIENT_STREAM, BuffaCodec, BuffaCodec, request)
                .await?;
            seen.answer(response.map(|answer: ClientStreamResponse| answer.payload));
            Ok(())
        };
        let result = self.until_canceled(work, sending.closed.notified()).await;
        Ok(seen.finish(result, sending.unsent()))
    }

    async fn server_stream(&self) -> Result<ClientResponseResult, String> {
        let request = self.request(self.only_message::<ServerStreamRequest>()?)?;
        let mut seen = Seen::default();
        let work = async {
            let response = self
                .client
                .server_streaming(&methods::SERVER_STREAM, BuffaCodec, BuffaCodec, request)
                .await?;
            let payload = |answer: ServerStreamResponse| answer.payload;
            self.read_all(response, payload, &mut seen, || {}).await
        };
        let result = self.until_canceled(work, ready(())).await;
        Ok(seen.finish(result, 0))
    }

    async fn bidi_stream(&self) -> Result<ClientResponseResult, String> {
        let full_duplex = StreamType::STREAM_TYPE_FULL_DUPLEX_BIDI_STREAM;
        let turns = (self.asked.stream_type == full_duplex).then(|| Semaphore::new(1));
        let sending = Arc::new(Sending {
            turns,
            ..Sending::default()
        });
        let request = self.request(self.requests::<BidiStreamRequest>(&sending)?)?;
        let mut seen = Seen::default();
        let work = async {
            let response = self
                .client
                .bidi_streaming(&methods::BIDI_STREAM, BuffaCodec, BuffaCodec, request)
                .await?;
            let payload = |answer: BidiStreamResponse| answer.payload;
            self.read_all(response, payload, &mut seen, || sending.take_turn())
                .await
        };
        let result = self.until_canceled(work, sending.closed.notified()).await;
        Ok(seen.finish(result, sending.unsent()))
    }

    async fn read_all<Res>(
        &self,
        response: Response<Streaming<Res>>,
        payload: fn(Res) -> Payload,
        seen: &mut Seen,
        on_message: impl Fn(),
    ) -> Result<(), Error> {
        let (mut messages, headers, _) = response.into_parts();
        seen.headers = headers;
        while let Some(message) = messages.message().await? {
            seen.payload(payload(message));
            if self.cancels_after(seen.payloads.len()) {
                return Err(canceled());
            }
            on_message();
        }
        seen.trailers = messages.trailers().clone();
        Ok(())
    }

    fn request<T>(&self, message: T) -> Result<Request<T>, String> {
        let mut request = Request::new(message);
        *request.metadata_mut() =
            to_metadata(&self.asked.request_headers).map_err(|error| error.to_string())?;
        Ok(match self.asked.timeout_ms {
            Some(ms) => request.with_timeout(millis(ms)),
            None => request,
        })
    }

    fn messages<T: Message + MessageName>(&self) -> Result<Vec<T>, String> {
        let messages = self.asked.request_messages.iter().map(|any| {
            let name = type_name(any);
            if name != T::FULL_NAME {
                return Err(format!("the method takes {}, not {name}", T::FULL_NAME));
            }
            T::decode_from_slice(&any.value).map_err(|error| error.to_string())
        });
        messages.collect()
    }

    fn only_message<T: Message + MessageName>(&self) -> Result<T, String> {
        match <[T; 1]>::try_from(self.messages()?) {
            Ok([message]) => Ok(message),
            Err(messages) => Err(format!("one message is needed, not {}", messages.len())),
        }
    }

    /// The messages to send, each after its delay and in its turn.
    fn requests<T>(&self, sending: &Arc<Sending>) -> Result<impl Stream<Item = T> + use<T>, String>
    where
        T: Message + MessageName,
    {
        let messages = self.messages::<T>()?;
        sending.unsent.store(messages.len(), Ordering::Relaxed);
        let delay = millis(self.asked.request_delay_ms);
        let stays_open = matches!(self.cancel(), Some(CancelTiming::BeforeCloseSend(_)));
        let state = (messages.into_iter(), Arc::clone(sending));
        Ok(stream::unfold(
            state,
            move |(mut messages, sending)| async move {
                sending.await_turn().await;
                let Some(message) = messages.next() else {
                    sending.closed.notify_one();
                    if stays_open {
                        pending::<()>().await;
                    }
                    return None;
                };
                tokio::time::sleep(delay).await;
                sending.unsent.fetch_sub(1, Ordering::Relaxed);
                Some((message, (messages, sending)))
            },
        ))
    }

    fn cancel(&self) -> Option<&CancelTiming> {
        self.asked.cancel.as_option()?.cancel_timing.as_ref()
    }

    fn cancels_after(&self, responses: usize) -> bool {
        matches!(self.cancel(), Some(CancelTiming::AfterNumResponses(after)) if *after as usize == responses)
    }

    /// Runs the call until it is to be canceled, which is done by dropping it.
    /// `closed` is when its request has ended, or would.
    async fn until_canceled(
        &self,
        work: impl Future<Output = Result<(), Error>>,
        closed: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let cancel = async {
            match self.cancel() {
                Some(CancelTiming::BeforeCloseSend(_)) => closed.await,
                Some(CancelTiming::AfterCloseSendMs(ms)) => {
                    closed.await;
                    tokio::time::sleep(millis(*ms)).await;
                }
                Some(CancelTiming::AfterNumResponses(_)) | None => pending().await,
            }
        };
        tokio::select! {
            result = work => result,
            () = cancel => Err(canceled()),
        }
    }
}

/// How far a stream of requests has come.
#[derive(Default)]
struct Sending {
    unsent: AtomicUsize,
    /// All is sent.
    closed: Notify,
    /// Full duplex: a turn for each request, and for the end, once the request
    /// before it was answered.
    turns: Option<Semaphore>,
}

impl Sending {
    async fn await_turn(&self) {
        if let Some(turns) = &self.turns
            && let Ok(turn) = turns.acquire().await
        {
            turn.forget();
        }
    }

    fn take_turn(&self) {
        if let Some(turns) = &self.turns {
            turns.add_permits(1);
        }
    }

    fn unsent(&self) -> usize {
        self.unsent.load(Ordering::Relaxed)
    }
}

/// What came in so far.
#[derive(Default)]
struct Seen {
    headers: Metadata,
    payloads: Vec<ConformancePayload>,
    trailers: Metadata,
}

impl Seen {
    fn answer(&mut self, response: Response<Payload>) {
        let (payload, headers, trailers) = response.into_parts();
        self.headers = headers;
        self.payload(payload);
        self.trailers = trailers;
    }

    fn payload(&mut self, payload: Payload) {
        self.payloads
            .push(payload.into_option().unwrap_or_default());
    }

    fn finish(self, result: Result<(), Error>, unsent: usize) -> ClientResponseResult {
        let error = result.err();
        // An error has its metadata with it.
        let trailers = error
            .as_ref()
            .map_or(&self.trailers, Error::received_metadata);
        ClientResponseResult {
            response_headers: to_headers(&self.headers),
            payloads: self.payloads,
            response_trailers: to_headers(trailers),
            error: error.as_ref().map(to_proto_error).into(),
            num_unsent_requests: i32::try_from(unsent).unwrap_or(i32::MAX),
            ..Default::default()
        }
    }
}

fn canceled() -> Error {
    Error::canceled("the call was given up, as asked")
}

fn millis(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}
