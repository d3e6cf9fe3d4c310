//! Cases about how a call ends.

use std::time::Duration;

use quill::{Code, Error, Request};

use super::payload::{requests, zeros};
use super::{Caller, Failure, equal};
use crate::proto::grpc::testing::{EchoStatus, Empty, SimpleRequest, StreamingOutputCallRequest};

impl Caller {
    pub(super) async fn status_code_and_message(&self) -> Result<(), Failure> {
        let message = "test status message";
        self.unary_status(message).await?;
        let (sender, requests) = requests();
        sender
            .send(StreamingOutputCallRequest {
                response_status: unknown(message).into(),
                ..Default::default()
            })
            .await?;
        drop(sender);
        let ended = match self.test.full_duplex_call(requests).await {
            Ok(answers) => answers.into_inner().message().await.err(),
            Err(error) => Some(error),
        };
        ended_with(ended, Code::Unknown, Some(message))
    }

    pub(super) async fn special_status_message(&self) -> Result<(), Failure> {
        self.unary_status(
            "\t\ntest with whitespace\r\nand Unicode BMP \u{263a} and non-BMP \u{1f608}\t\n",
        )
        .await
    }

    async fn unary_status(&self, message: &str) -> Result<(), Failure> {
        let request = SimpleRequest {
            response_status: unknown(message).into(),
            ..Default::default()
        };
        let ended = self.test.unary_call(request).await.err();
        ended_with(ended, Code::Unknown, Some(message))
    }

    pub(super) async fn unimplemented_method(&self) -> Result<(), Failure> {
        let ended = self.test.unimplemented_call(Empty::default()).await.err();
        ended_with(ended, Code::Unimplemented, None)
    }

    pub(super) async fn unimplemented_service(&self) -> Result<(), Failure> {
        let call = self.unimplemented.unimplemented_call(Empty::default());
        ended_with(call.await.err(), Code::Unimplemented, None)
    }

    pub(super) async fn timeout_on_sleeping_server(&self) -> Result<(), Failure> {
        let (sender, requests) = requests();
        sender
            .send(StreamingOutputCallRequest {
                payload: zeros(27_182).into(),
                ..Default::default()
            })
            .await?;
        let request = Request::new(requests).with_timeout(Duration::from_millis(1));
        let ended = match self.test.full_duplex_call(request).await {
            Ok(answers) => answers.into_inner().message().await.err(),
            Err(error) => Some(error),
        };
        drop(sender);
        ended_with(ended, Code::DeadlineExceeded, None)
    }
}

fn unknown(message: &str) -> EchoStatus {
    EchoStatus {
        code: 2,
        message: message.to_owned(),
        ..Default::default()
    }
}

fn ended_with(ended: Option<Error>, code: Code, message: Option<&str>) -> Result<(), Failure> {
    let error = ended.ok_or("the call succeeded")?;
    equal("the code", error.code(), code)?;
    message.map_or(Ok(()), |message| {
        equal("the message", error.message(), message)
    })
}
