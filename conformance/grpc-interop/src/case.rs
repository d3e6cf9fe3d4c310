//! The cases: what each calls, and what must come of it.

mod cancellation;
mod load;
mod metadata;
mod payload;
mod status;

use std::error::Error;
use std::fmt;

use futures_util::future::{BoxFuture, FutureExt};
use quill::{ConnectError, Protocol, QuillClient};

use crate::proto::grpc::testing::{Empty, TestClient, UnimplementedClient};
use crate::proto::xds::service::orca::v3::OpenRcaClient;

/// Why a case failed.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// One case.
pub(crate) type Case = for<'a> fn(&'a Caller) -> BoxFuture<'a, Result<(), Failure>>;

/// Every case by the name that all implementations know it by.
pub(crate) const CASES: &[(&str, Case)] = &[
    ("empty_unary", |caller| caller.empty_unary().boxed()),
    ("large_unary", |caller| caller.large_unary().boxed()),
    ("client_streaming", |caller| {
        caller.client_streaming().boxed()
    }),
    ("server_streaming", |caller| {
        caller.server_streaming().boxed()
    }),
    ("ping_pong", |caller| caller.ping_pong().boxed()),
    ("empty_stream", |caller| caller.empty_stream().boxed()),
    ("timeout_on_sleeping_server", |caller| {
        caller.timeout_on_sleeping_server().boxed()
    }),
    ("cancel_after_begin", |caller| {
        caller.cancel_after_begin().boxed()
    }),
    ("cancel_after_first_response", |caller| {
        caller.cancel_after_first_response().boxed()
    }),
    ("status_code_and_message", |caller| {
        caller.status_code_and_message().boxed()
    }),
    ("special_status_message", |caller| {
        caller.special_status_message().boxed()
    }),
    ("unimplemented_method", |caller| {
        caller.unimplemented_method().boxed()
    }),
    ("unimplemented_service", |caller| {
        caller.unimplemented_service().boxed()
    }),
    ("custom_metadata", |caller| caller.custom_metadata().boxed()),
    ("orca_per_rpc", |caller| caller.orca_per_rpc().boxed()),
    ("orca_oob", |caller| caller.orca_oob().boxed()),
    ("rpc_soak", |caller| caller.rpc_soak().boxed()),
    ("channel_soak", |caller| caller.channel_soak().boxed()),
];

/// Calls the server's services over one connection.
#[derive(Debug)]
pub(crate) struct Caller {
    url: String,
    test: TestClient,
    unimplemented: UnimplementedClient,
    load: OpenRcaClient,
}

impl Caller {
    pub(crate) fn new(url: &str) -> Result<Self, ConnectError> {
        let client = QuillClient::builder()
            .base_url(url)
            .protocol(Protocol::Grpc)
            .build()?;
        Ok(Self {
            url: url.to_owned(),
            test: TestClient::new(client.clone()),
            unimplemented: UnimplementedClient::new(client.clone()),
            load: OpenRcaClient::new(client),
        })
    }

    async fn empty_unary(&self) -> Result<(), Failure> {
        let answer = self.test.empty_call(Empty::default()).await?;
        equal("the answer", answer.into_inner(), Empty::default())
    }
}

/// Fails when what came is not what was expected.
#[allow(
    clippy::needless_pass_by_value,
    reason = "most callers compare values that are made for it"
)]
fn equal<T: PartialEq + fmt::Debug>(what: &str, came: T, expected: T) -> Result<(), Failure> {
    if came == expected {
        return Ok(());
    }
    Err(format!("{what}: {came:?} instead of {expected:?}").into())
}
