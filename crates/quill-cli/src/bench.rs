//! Load on a method, and what comes of it.
//!
//! A [`Benchmark`] is a line of a [`BenchmarkFile`] or of the command line. It
//! runs under a [`Load`], on threads of its own ([`Shard`](shard::Shard)), each
//! with connections of its own; what they see goes into a
//! [`Recorder`](recorder::Recorder) each, and all together is a [`Measurement`].
//! A [`Budget`] and a [`Baseline`] judge it.

mod baseline;
mod benchmark;
mod benchmark_file;
mod budget;
mod call;
mod caller;
mod latency;
mod load;
mod measurement;
mod pace;
mod payload;
mod progress;
mod recorder;
mod requests;
mod run;
mod shard;
mod status;
mod under_way;
mod worker;

pub(crate) use baseline::Baseline;
pub(crate) use benchmark::Benchmark;
pub(crate) use benchmark_file::BenchmarkFile;
pub(crate) use budget::Budget;
pub(crate) use latency::Latency;
pub(crate) use load::Load;
pub(crate) use measurement::Measurement;
pub(crate) use payload::GivenPayload;
pub(crate) use progress::Progress;
pub(crate) use run::run;
pub(crate) use status::Status;
