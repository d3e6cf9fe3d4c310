//! Sends what Quill's servers and clients record to an OpenTelemetry collector, or
//! to whatever else takes OTLP over gRPC.
//!
//! [`Otlp::builder`] begins; [`Otlp::tracer`] is what servers and clients are built
//! with. Spans have the attributes of OpenTelemetry's semantic conventions for RPC,
//! metrics the names of the Prometheus page.

mod builder;
mod codegen;
mod exporter;
mod metric;
mod otlp;
mod queue;
mod resource;
mod span;

/// Generated from `proto/opentelemetry/proto`.
#[allow(missing_docs, clippy::all, unreachable_pub, dead_code)]
mod proto {
    include!(concat!(env!("OUT_DIR"), "/all-packages.rs"));
}

pub use builder::OtlpBuilder;
pub use otlp::{Otlp, OtlpCounts};
