//! A service that fails as it is asked to, and counts what it runs: for the
//! tests of clients, in their process and in others.

mod flaky;
#[allow(missing_docs, unreachable_pub, clippy::all)]
pub mod proto;

pub use flaky::Flaky;
pub use proto::{FlakyClient, FlakyRequest, FlakyResponse, FlakyServer, FlakyService};
