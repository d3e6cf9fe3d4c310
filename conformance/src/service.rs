//! `ConformanceService`: answers what each request asks for, and repeats what
//! it saw of the request.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};
use quill::types::google::protobuf::Any;
use quill::{Error, Metadata, Request, Response, Stream, Streaming};

use crate::fields::{to_any, to_error, to_headers, to_metadata};
use crate::proto::conformance_payload::RequestInfo;
use crate::proto::unary_response_definition::Response as Asked;
use crate::proto::{
    self, BidiStreamRequest, BidiStreamResponse, ClientStreamRequest, ClientStreamResponse,
    ConformancePayload, ConformanceService, IdempotentUnaryRequest, IdempotentUnaryResponse,
    ServerStreamRequest, ServerStreamResponse, StreamResponseDefinition, UnaryRequest,
    UnaryResponse, UnaryResponseDefinition,
};

/// The service; `Unimplemented` is left as it is generated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conformance;

impl ConformanceService for Conformance {
    async fn unary(
        &self,
        request: Request<UnaryRequest>,
    ) -> Result<Response<UnaryResponse>, Error> {
        let info = info_of_one(&request, to_any(request.message()));
        let asked = request.into_inner().response_definition.into_option();
        let answer = answer_one(asked, info).await?;
        Ok(answer.map(|payload| UnaryResponse {
            payload: payload.into(),
            ..Default::default()
        }))
    }

    async fn idempotent_unary(
        &self,
        request: Request<IdempotentUnaryRequest>,
    ) -> Result<Response<IdempotentUnaryResponse>, Error> {
        let info = info_of_one(&request, to_any(request.message()));
        let asked = request.into_inner().response_definition.into_option();
        let answer = answer_one(asked, info).await?;
        Ok(answer.map(|payload| IdempotentUnaryResponse {
            payload: payload.into(),
            ..Default::default()
        }))
    }

    async fn client_stream(
        &self,
        request: Request<Streaming<ClientStreamRequest>>,
    ) -> Result<Response<ClientStreamResponse>, Error> {
        let mut info = info_of(&request);
        let mut asked = None;
        let mut messages = request.into_inner();
        while let Some(message) = messages.message().await? {
            if info.requests.is_empty() {
                asked = message.response_definition.as_option().cloned();
            }
            info.requests.push(to_any(&message));
        }
        let answer = answer_one(asked, info).await?;
        Ok(answer.map(|payload| ClientStreamResponse {
            payload: payload.into(),
            ..Default::default()
        }))
    }

    async fn server_stream(
        &self,
        request: Request<ServerStreamRequest>,
    ) -> Result<Response<impl Stream<Item = Result<ServerStreamResponse, Error>> + Send>, Error>
    {
        let info = info_of_one(&request, to_any(request.message()));
        let asked = request.into_inner().response_definition;
        answer_many(
            asked.into_option().unwrap_or_default(),
            info,
            None,
            |payload| ServerStreamResponse {
                payload: payload.into(),
                ..Default::default()
            },
        )
    }

    async fn bidi_stream(
        &self,
        request: Request<Streaming<BidiStreamRequest>>,
    ) -> Result<Response<impl Stream<Item = Result<BidiStreamResponse, Error>> + Send>, Error> {
        let mut info = info_of(&request);
        let mut messages = request.into_inner();
        let mut asked = StreamResponseDefinition::default();
        let mut full_duplex = false;
        if let Some(first) = messages.message().await? {
            info.requests.push(to_any(&first));
            full_duplex = first.full_duplex;
            asked = first.response_definition.into_option().unwrap_or_default();
        }
        if !full_duplex {
            while let Some(message) = messages.message().await? {
                info.requests.push(to_any(&message));
            }
        }
        let rest = full_duplex.then_some(messages);
        answer_many(asked, info, rest, |payload| BidiStreamResponse {
            payload: payload.into(),
            ..Default::default()
        })
    }
}

/// What is to be repeated of a request, but its messages.
fn info_of<T>(request: &Request<T>) -> RequestInfo {
    let timeout_ms = request
        .remaining()
        .map(|left| i64::try_from(left.as_millis()).unwrap_or(i64::MAX));
    RequestInfo {
        request_headers: to_headers(request.metadata()),
        timeout_ms,
        ..Default::default()
    }
}

fn info_of_one<T>(request: &Request<T>, message: Any) -> RequestInfo {
    let mut info = info_of(request);
    info.requests.push(message);
    info
}

async fn answer_one(
    asked: Option<UnaryResponseDefinition>,
    info: RequestInfo,
) -> Result<Response<ConformancePayload>, Error> {
    let asked = asked.unwrap_or_default();
    pause(asked.response_delay_ms).await;
    let mut metadata = to_metadata(&asked.response_headers)?;
    let trailers = to_metadata(&asked.response_trailers)?;
    match asked.response {
        Some(Asked::Error(error)) => {
            let mut error = to_error(*error).with_detail(&info);
            metadata.extend(&trailers);
            *error.metadata_mut() = metadata;
            Err(error)
        }
        Some(Asked::ResponseData(data)) => {
            let payload = payload(data, Some(info));
            Ok(Response::from_parts(payload, metadata, trailers))
        }
        None => {
            let payload = payload(Vec::new(), Some(info));
            Ok(Response::from_parts(payload, metadata, trailers))
        }
    }
}

/// Answers with a stream, whose head leaves before its first message is made.
fn answer_many<T>(
    asked: StreamResponseDefinition,
    info: RequestInfo,
    requests: Option<Streaming<BidiStreamRequest>>,
    wrap: impl Fn(ConformancePayload) -> T + Send + 'static,
) -> Result<Response<impl Stream<Item = Result<T, Error>> + Send>, Error> {
    let metadata: Metadata = to_metadata(&asked.response_headers)?;
    let trailers = to_metadata(&asked.response_trailers)?;
    let answers = Answers {
        data: asked.response_data.into_iter(),
        delay_ms: asked.response_delay_ms,
        error: asked.error.into_option(),
        info: Some(info),
        requests,
        sent: 0,
    };
    let messages = stream::try_unfold(answers, Answers::next).map_ok(wrap);
    Ok(Response::from_parts(messages.boxed(), metadata, trailers))
}

/// The answers that are still to be sent.
struct Answers {
    data: std::vec::IntoIter<Vec<u8>>,
    delay_ms: u32,
    error: Option<proto::Error>,
    /// What to repeat with the next answer.
    info: Option<RequestInfo>,
    /// Full duplex: requests of which each but the first is waited for before
    /// an answer, while there are any.
    requests: Option<Streaming<BidiStreamRequest>>,
    sent: usize,
}

impl Answers {
    async fn next(mut self) -> Result<Option<(ConformancePayload, Self)>, Error> {
        if self.sent > 0 {
            self.await_request().await?;
        }
        let Some(data) = self.data.next() else {
            return match self.error.take().map(to_error) {
                None => Ok(None),
                // Only what nobody was told yet is repeated with an error.
                Some(error) => Err(match self.info {
                    Some(info) if self.sent == 0 => error.with_detail(&info),
                    _ => error,
                }),
            };
        };
        pause(self.delay_ms).await;
        self.sent += 1;
        Ok(Some((payload(data, self.info.take()), self)))
    }

    /// Waits for the next request, which the next answer then repeats.
    async fn await_request(&mut self) -> Result<(), Error> {
        let Some(requests) = &mut self.requests else {
            return Ok(());
        };
        match requests.message().await? {
            Some(request) => {
                self.info = Some(RequestInfo {
                    requests: vec![to_any(&request)],
                    ..Default::default()
                });
            }
            None => self.requests = None,
        }
        Ok(())
    }
}

fn payload(data: Vec<u8>, info: Option<RequestInfo>) -> ConformancePayload {
    ConformancePayload {
        data,
        request_info: info.into(),
        ..Default::default()
    }
}

async fn pause(ms: u32) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms.into())).await;
    }
}
