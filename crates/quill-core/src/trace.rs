//! Which larger operation a call is part of, and what is recorded of it.
//!
//! A [`TraceContext`] names a call in a trace and travels with it as the W3C's
//! `traceparent` and `tracestate` (<https://www.w3.org/TR/trace-context/>). A
//! [`Tracer`] makes them, decides which calls are recorded, and hands each
//! [`Span`] that has ended to a [`SpanSink`]. Nothing here knows where spans go.

mod context;
mod id;
mod sampling;
mod span;
mod state;
mod tracer;

pub use context::TraceContext;
pub use id::{SpanId, TraceId};
pub use sampling::Sampling;
pub use span::{Side, Span};
pub use tracer::{Flush, SpanSink, Tracer};
