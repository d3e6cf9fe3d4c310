//! Cases about what is sent, and how much of it.

use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;

use super::{Caller, Failure, equal};
use crate::proto::grpc::testing::{
    Payload, ResponseParameters, SimpleRequest, StreamingInputCallRequest,
    StreamingOutputCallRequest, StreamingOutputCallResponse,
};

const REQUEST_BYTES: [usize; 4] = [27_182, 8, 1_828, 45_904];
const RESPONSE_BYTES: [i32; 4] = [31_415, 9, 2_653, 58_979];
const LARGE_REQUEST_BYTES: usize = 271_828;
const LARGE_RESPONSE_BYTES: i32 = 314_159;
/// Calls of a soak.
const SOAK_CALLS: usize = 10;

impl Caller {
    pub(super) async fn large_unary(&self) -> Result<(), Failure> {
        let request = SimpleRequest {
            response_size: LARGE_RESPONSE_BYTES,
            payload: zeros(LARGE_REQUEST_BYTES).into(),
            ..Default::default()
        };
        let answer = self.test.unary_call(request).await?.into_inner();
        check_payload(answer.payload.as_option(), LARGE_RESPONSE_BYTES)
    }

    pub(super) async fn rpc_soak(&self) -> Result<(), Failure> {
        for _ in 0..SOAK_CALLS {
            self.large_unary().await?;
        }
        Ok(())
    }

    /// As `rpc_soak`, each call over a connection of its own.
    pub(super) async fn channel_soak(&self) -> Result<(), Failure> {
        for _ in 0..SOAK_CALLS {
            Self::new(&self.url)?.large_unary().await?;
        }
        Ok(())
    }

    pub(super) async fn client_streaming(&self) -> Result<(), Failure> {
        let requests = REQUEST_BYTES.map(|bytes| StreamingInputCallRequest {
            payload: zeros(bytes).into(),
            ..Default::default()
        });
        let answer = self
            .test
            .streaming_input_call(stream::iter(requests))
            .await?;
        let sum = i32::try_from(REQUEST_BYTES.iter().sum::<usize>())?;
        equal("the sum", answer.message().aggregated_payload_size, sum)
    }

    pub(super) async fn server_streaming(&self) -> Result<(), Failure> {
        let request = StreamingOutputCallRequest {
            response_parameters: RESPONSE_BYTES.map(sized).to_vec(),
            ..Default::default()
        };
        let mut answers = self.test.streaming_output_call(request).await?.into_inner();
        for bytes in RESPONSE_BYTES {
            check_answer(answers.message().await?, bytes)?;
        }
        equal("after the last answer", answers.message().await?, None)
    }

    pub(super) async fn ping_pong(&self) -> Result<(), Failure> {
        let (sender, requests) = requests();
        let mut pings = REQUEST_BYTES.into_iter().zip(RESPONSE_BYTES).map(ping);
        // The server's head may come with its first answer, so that is asked
        // for before the head is waited for.
        if let Some(ping) = pings.next() {
            sender.send(ping).await?;
        }
        let mut answers = self.test.full_duplex_call(requests).await?.into_inner();
        for bytes in RESPONSE_BYTES {
            check_answer(answers.message().await?, bytes)?;
            if let Some(ping) = pings.next() {
                sender.send(ping).await?;
            }
        }
        drop(sender);
        equal("after the last answer", answers.message().await?, None)
    }

    pub(super) async fn empty_stream(&self) -> Result<(), Failure> {
        let none = stream::empty();
        let mut answers = self.test.full_duplex_call(none).await?.into_inner();
        equal("the only answer", answers.message().await?, None)
    }
}

/// A stream of requests that are sent one by one; it ends with its sender. The
/// first can be sent before anything takes it.
pub(super) fn requests() -> (
    mpsc::Sender<StreamingOutputCallRequest>,
    impl futures_util::Stream<Item = StreamingOutputCallRequest> + Send,
) {
    let (sender, receiver) = mpsc::channel(1);
    let requests = stream::unfold(receiver, |mut receiver| async move {
        Some((receiver.recv().await?, receiver))
    });
    (sender, requests.fuse())
}

/// A request of so many bytes for an answer of so many.
pub(super) fn ping((request_bytes, response_bytes): (usize, i32)) -> StreamingOutputCallRequest {
    StreamingOutputCallRequest {
        payload: zeros(request_bytes).into(),
        response_parameters: vec![sized(response_bytes)],
        ..Default::default()
    }
}

pub(super) fn zeros(bytes: usize) -> Payload {
    Payload {
        body: vec![0; bytes],
        ..Default::default()
    }
}

pub(super) fn check_answer(
    answer: Option<StreamingOutputCallResponse>,
    bytes: i32,
) -> Result<(), Failure> {
    let answer = answer.ok_or("the stream ended before this answer")?;
    check_payload(answer.payload.as_option(), bytes)
}

pub(super) fn check_payload(payload: Option<&Payload>, bytes: i32) -> Result<(), Failure> {
    let len = payload.map_or(0, |payload| payload.body.len());
    equal("bytes of the payload", len, usize::try_from(bytes)?)
}

fn sized(size: i32) -> ResponseParameters {
    ResponseParameters {
        size,
        ..Default::default()
    }
}
