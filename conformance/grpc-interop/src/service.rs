//! `grpc.testing.TestService`, as the interop cases describe it.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use quill::{Code, Error, Metadata, Request, Response, Stream, Streaming};
use tokio::sync::OwnedMutexGuard;

use crate::load::{self, Load};
use crate::proto::grpc::testing::{
    EchoStatus, Empty, Payload, ResponseParameters, SimpleRequest, SimpleResponse,
    StreamingInputCallRequest, StreamingInputCallResponse, StreamingOutputCallRequest,
    StreamingOutputCallResponse, TestService,
};

/// Repeated in the answer's head.
pub(crate) const ECHO_INITIAL: &str = "x-grpc-test-echo-initial";
/// Repeated in the answer's trailers.
pub(crate) const ECHO_TRAILING: &str = "x-grpc-test-echo-trailing-bin";

/// No answer is larger, whatever is asked for.
const PAYLOAD_BYTES_MAX: usize = 4 << 20;

/// The service; `UnimplementedCall` is left as it is generated.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    load: Load,
    /// What tells this process from another server.
    id: String,
}

impl Test {
    pub(crate) fn new(load: Load) -> Self {
        let id = format!("quill-{}", std::process::id());
        Self { load, id }
    }
}

impl TestService for Test {
    async fn empty_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Error> {
        Ok(Empty::default().into())
    }

    async fn unary_call(
        &self,
        request: Request<SimpleRequest>,
    ) -> Result<Response<SimpleResponse>, Error> {
        let (metadata, mut trailers) = echoed(request.metadata())?;
        let asked = request.into_inner();
        fail_as_asked(asked.response_status.into_option()).map_err(|mut error| {
            let seen = error.metadata_mut();
            seen.extend(&metadata);
            seen.extend(&trailers);
            error
        })?;
        if let Some(report) = asked.orca_per_query_report.into_option() {
            load::write(&load::asked(report), &mut trailers)?;
        }
        let server_id = if asked.fill_server_id {
            self.id.clone()
        } else {
            String::new()
        };
        let answer = SimpleResponse {
            payload: payload(asked.response_size)?.into(),
            server_id,
            ..Default::default()
        };
        Ok(Response::from_parts(answer, metadata, trailers))
    }

    async fn streaming_output_call(
        &self,
        request: Request<StreamingOutputCallRequest>,
    ) -> Result<
        Response<impl Stream<Item = Result<StreamingOutputCallResponse, Error>> + Send>,
        Error,
    > {
        let asked = request.into_inner().response_parameters;
        Ok(stream::iter(asked).then(answer).into())
    }

    async fn streaming_input_call(
        &self,
        request: Request<Streaming<StreamingInputCallRequest>>,
    ) -> Result<Response<StreamingInputCallResponse>, Error> {
        let mut requests = request.into_inner();
        let mut bytes = 0_i32;
        while let Some(request) = requests.message().await? {
            let len = request.payload.as_option().map_or(0, |p| p.body.len());
            bytes = bytes.saturating_add(i32::try_from(len).unwrap_or(i32::MAX));
        }
        let answer = StreamingInputCallResponse {
            aggregated_payload_size: bytes,
            ..Default::default()
        };
        Ok(answer.into())
    }

    async fn full_duplex_call(
        &self,
        request: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<
        Response<impl Stream<Item = Result<StreamingOutputCallResponse, Error>> + Send>,
        Error,
    > {
        let (metadata, trailers) = echoed(request.metadata())?;
        let duplex = Duplex {
            requests: request.into_inner(),
            asked: VecDeque::new(),
            load: self.load.clone(),
            turn: None,
        };
        let answers = stream::try_unfold(duplex, Duplex::next);
        Ok(Response::from_parts(answers, metadata, trailers))
    }

    async fn half_duplex_call(
        &self,
        request: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<
        Response<impl Stream<Item = Result<StreamingOutputCallResponse, Error>> + Send>,
        Error,
    > {
        let mut requests = request.into_inner();
        let mut asked = Vec::new();
        while let Some(request) = requests.message().await? {
            asked.extend(request.response_parameters);
        }
        Ok(stream::iter(asked).then(answer).into())
    }
}

/// A call that answers each request as it comes.
struct Duplex {
    requests: Streaming<StreamingOutputCallRequest>,
    /// Answers to the last request that are still to be sent.
    asked: VecDeque<ResponseParameters>,
    load: Load,
    /// Held from this call's first report to its end.
    turn: Option<OwnedMutexGuard<()>>,
}

impl Duplex {
    async fn next(mut self) -> Result<Option<(StreamingOutputCallResponse, Self)>, Error> {
        loop {
            if let Some(asked) = self.asked.pop_front() {
                return Ok(Some((answer(asked).await?, self)));
            }
            let Some(request) = self.requests.message().await? else {
                return Ok(None);
            };
            fail_as_asked(request.response_status.into_option())?;
            if let Some(report) = request.orca_oob_report.into_option() {
                if self.turn.is_none() {
                    self.turn = Some(self.load.turn().await);
                }
                self.load.set(load::asked(report));
            }
            self.asked.extend(request.response_parameters);
        }
    }
}

/// The metadata and trailers of an answer to a request with this metadata.
fn echoed(request: &Metadata) -> Result<(Metadata, Metadata), Error> {
    let (mut metadata, mut trailers) = (Metadata::new(), Metadata::new());
    if let Some(value) = request.get(ECHO_INITIAL) {
        metadata.insert(ECHO_INITIAL, value)?;
    }
    if let Some(value) = request.get_bin(ECHO_TRAILING) {
        trailers.insert_bin(ECHO_TRAILING, value)?;
    }
    Ok((metadata, trailers))
}

fn fail_as_asked(status: Option<EchoStatus>) -> Result<(), Error> {
    match status {
        Some(status) if status.code != 0 => {
            let number = u32::try_from(status.code).unwrap_or_default();
            let code = Code::from_number(number).unwrap_or(Code::Unknown);
            // The cases know of no details; clients of more protocols look for them.
            Err(Error::new(code, status.message.clone()).with_detail(&status))
        }
        _ => Ok(()),
    }
}

async fn answer(asked: ResponseParameters) -> Result<StreamingOutputCallResponse, Error> {
    if let Ok(micros @ 1..) = u64::try_from(asked.interval_us) {
        tokio::time::sleep(Duration::from_micros(micros)).await;
    }
    Ok(StreamingOutputCallResponse {
        payload: payload(asked.size)?.into(),
        ..Default::default()
    })
}

fn payload(size: i32) -> Result<Payload, Error> {
    let size = usize::try_from(size)
        .ok()
        .filter(|size| *size <= PAYLOAD_BYTES_MAX)
        .ok_or_else(|| {
            Error::invalid_argument(format!(
                "a payload has 0 to {PAYLOAD_BYTES_MAX} bytes, not {size}"
            ))
        })?;
    Ok(Payload {
        body: vec![0; size],
        ..Default::default()
    })
}
