//! The services that `quill demo` serves: `echo.v1` and `data.v1`.

use std::time::Duration;

use futures_util::stream;
use quill::{Code, Error, Request, Response, Stream, Streaming};

/// Generated from `proto/`.
pub(crate) mod proto {
    /// `echo.v1`
    pub(crate) mod echo {
        quill::include_proto!("echo.v1");
    }
    /// `data.v1`
    pub(crate) mod data {
        quill::include_proto!("data.v1");
    }
}

use proto::data::{DataService, ProcessBatchResponse, ProcessRequest, ProcessResponse};
use proto::echo::{CollectResponse, EchoRequest, EchoResponse, EchoService, ExpandRequest};

/// `echo.v1.EchoService`: repeats what it is told, in every kind of call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Echo;

impl EchoService for Echo {
    async fn echo(&self, request: Request<EchoRequest>) -> Result<Response<EchoResponse>, Error> {
        repeat(request.into_inner()).await.map(Response::new)
    }

    async fn expand(
        &self,
        request: Request<ExpandRequest>,
    ) -> Result<Response<impl Stream<Item = Result<EchoResponse, Error>> + Send>, Error> {
        let request = request.into_inner();
        let fails = request.error_code != 0;
        let expanding = stream::try_unfold((request, 0_u32), move |(request, sent)| async move {
            if fails && sent >= request.error_after {
                return Err(asked_error(
                    request.error_code,
                    "the stream was asked to fail",
                ));
            }
            if request.count != 0 && sent >= request.count {
                return Ok(None);
            }
            if sent > 0 {
                pause(request.interval_ms).await;
            }
            let reply = EchoResponse {
                message: request.message.clone(),
                ..Default::default()
            };
            Ok(Some((reply, (request, sent.saturating_add(1)))))
        });
        Ok(Response::new(expanding))
    }

    async fn collect(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<CollectResponse>, Error> {
        let mut messages = request.into_inner();
        let mut collected = CollectResponse::default();
        while let Some(message) = messages.message().await? {
            let reply = repeat(message).await?;
            collected.count = collected.count.saturating_add(1);
            collected.total_bytes += reply.message.len() as u64;
        }
        Ok(collected.into())
    }

    async fn chat(
        &self,
        request: Request<Streaming<EchoRequest>>,
    ) -> Result<Response<impl Stream<Item = Result<EchoResponse, Error>> + Send>, Error> {
        let messages = request.into_inner();
        let chatting = stream::try_unfold(messages, |mut messages| async move {
            match messages.message().await? {
                Some(message) => Ok(Some((repeat(message).await?, messages))),
                None => Ok(None),
            }
        });
        Ok(Response::new(chatting))
    }
}

/// `data.v1.DataService`: takes data and says how much it was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Data;

impl DataService for Data {
    async fn process(
        &self,
        request: Request<ProcessRequest>,
    ) -> Result<Response<ProcessResponse>, Error> {
        let processed = ProcessResponse {
            bytes: request.message().data.len() as u64,
            ..Default::default()
        };
        Ok(processed.into())
    }

    async fn process_batch(
        &self,
        request: Request<Streaming<ProcessRequest>>,
    ) -> Result<Response<ProcessBatchResponse>, Error> {
        let mut pieces = request.into_inner();
        let mut processed = ProcessBatchResponse::default();
        while let Some(piece) = pieces.message().await? {
            processed.count = processed.count.saturating_add(1);
            processed.bytes += piece.data.len() as u64;
        }
        Ok(processed.into())
    }
}

/// Answers one message, after the delay and with the error that it asks for.
async fn repeat(request: EchoRequest) -> Result<EchoResponse, Error> {
    pause(request.delay_ms).await;
    if request.error_code != 0 {
        return Err(asked_error(request.error_code, request.error_message));
    }
    Ok(EchoResponse {
        message: request.message,
        ..Default::default()
    })
}

async fn pause(ms: u32) {
    if ms > 0 {
        tokio::time::sleep(Duration::from_millis(ms.into())).await;
    }
}

fn asked_error(code: u32, message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(Code::from_number(code).unwrap_or(Code::Unknown), message)
}
