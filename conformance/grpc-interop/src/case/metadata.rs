//! The case about metadata: the server repeats it.

use quill::{Metadata, MetadataError, Request};

use super::payload::{check_answer, check_payload, ping, requests, zeros};
use super::{Caller, Failure, equal};
use crate::proto::grpc::testing::SimpleRequest;
use crate::service::{ECHO_INITIAL, ECHO_TRAILING};

const INITIAL: &str = "test_initial_metadata_value";
const TRAILING: &[u8] = &[0x0a, 0x0b, 0x0a, 0x0b, 0x0a, 0x0b];

impl Caller {
    pub(super) async fn custom_metadata(&self) -> Result<(), Failure> {
        let request = with_metadata(SimpleRequest {
            response_size: 1,
            payload: zeros(1).into(),
            ..Default::default()
        })?;
        let answer = self.test.unary_call(request).await?;
        let (answer, head, trailers) = answer.into_parts();
        check_payload(answer.payload.as_option(), 1)?;
        check(&head, &trailers)?;

        let (sender, requests) = requests();
        sender.send(ping((1, 1))).await?;
        let answer = self.test.full_duplex_call(with_metadata(requests)?).await?;
        let (mut answers, head, _) = answer.into_parts();
        check_answer(answers.message().await?, 1)?;
        drop(sender);
        equal("after the last answer", answers.message().await?, None)?;
        check(&head, answers.trailers())
    }
}

fn with_metadata<T>(message: T) -> Result<Request<T>, MetadataError> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(ECHO_INITIAL, INITIAL)?;
    request.metadata_mut().insert_bin(ECHO_TRAILING, TRAILING)?;
    Ok(request)
}

fn check(head: &Metadata, trailers: &Metadata) -> Result<(), Failure> {
    equal("the head's echo", head.get(ECHO_INITIAL), Some(INITIAL))?;
    let trailing = trailers.get_bin(ECHO_TRAILING);
    equal("the trailers' echo", trailing, Some(TRAILING))
}
