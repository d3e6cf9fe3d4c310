//! Cases about calls that the caller gives up, by dropping them. What can be
//! seen of that from here is that the connection serves the next call.

use futures_util::stream;
use tokio::sync::oneshot;

use super::payload::{check_answer, ping, requests};
use super::{Caller, Failure};
use crate::proto::grpc::testing::StreamingInputCallRequest;

impl Caller {
    /// Gives up once the head is sent and before any message.
    pub(super) async fn cancel_after_begin(&self) -> Result<(), Failure> {
        let (begun, has_begun) = oneshot::channel();
        let mut begun = Some(begun);
        let requests = stream::poll_fn(move |_| {
            // Messages are asked for once the head is on its way.
            if let Some(begun) = begun.take() {
                // The case may be over, which is as well.
                let _ = begun.send(());
            }
            std::task::Poll::<Option<StreamingInputCallRequest>>::Pending
        });
        tokio::select! {
            ended = self.test.streaming_input_call(requests) => {
                Err(format!("the call ended by itself: {ended:?}"))?;
            }
            begun = has_begun => begun?,
        }
        self.empty_unary().await
    }

    pub(super) async fn cancel_after_first_response(&self) -> Result<(), Failure> {
        let (sender, requests) = requests();
        sender.send(ping((27_182, 31_415))).await?;
        let mut answers = self.test.full_duplex_call(requests).await?.into_inner();
        check_answer(answers.message().await?, 31_415)?;
        drop(answers);
        // The call no longer takes messages.
        sender.closed().await;
        self.empty_unary().await
    }
}
