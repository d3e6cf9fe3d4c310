//! A service to put things around.

use quill::{Error, Request, Response};

/// Generated from `proto/greet/v1/greet.proto`.
pub mod greet {
    quill::include_proto!("greet.v1");
}

use greet::{GreetRequest, GreetResponse, GreetService};

/// Greets whoever asks.
#[derive(Clone, Copy, Debug)]
pub struct Greeter;

impl GreetService for Greeter {
    async fn greet(
        &self,
        request: Request<GreetRequest>,
    ) -> Result<Response<GreetResponse>, Error> {
        let greeting = format!("Hello, {}!", request.message().name);
        Ok(GreetResponse {
            greeting,
            ..Default::default()
        }
        .into())
    }
}
