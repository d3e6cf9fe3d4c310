//! The standard gRPC health service, `grpc.health.v1`, for Quill servers.
//!
//! [`server`] makes a service that says the server as a whole is serving;
//! [`reporter`] also gives a [`HealthReporter`] with which the application sets
//! the status of each service. A server that is asked to end says of all of them that
//! they are not serving, from then on until it has drained: load balancers look
//! elsewhere, and nobody needs to tell it.
//!
//! ```
//! let (health, reporter) = quill_health::reporter();
//! reporter.set("echo.v1.EchoService", quill_health::Status::Serving);
//! // Server::builder().service(health)
//! # drop(health);
//! ```

mod reporter;
mod service;

/// Generated from `proto/grpc/health/v1/health.proto`.
#[allow(missing_docs, clippy::all, unreachable_pub)]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/grpc.health.v1.rs"));
}

pub use reporter::{HealthReporter, Status};
pub use service::{HealthServer, reporter, server};
