//! Quill's client: typed and untyped calls in every protocol over shared
//! connections.
//!
//! [`QuillClient`] is the entry; generated clients sit on it.

mod backoff;
mod balance;
mod breaker;
mod builder;
mod call;
mod client;
#[cfg(feature = "config")]
mod config;
mod error;
mod error_body;
mod hedge;
mod layers;
mod messages;
mod rate_limit;
mod retry;
mod stack;
mod token;
mod trace;
mod untyped;

pub use backoff::Backoff;
pub use balance::{Balance, HealthCheck, Outliers};
pub use breaker::{Breaker, BreakerState, CircuitBreaker};
pub use builder::ClientBuilder;
pub use client::QuillClient;
#[cfg(feature = "config")]
pub use config::{ClientConfig, ConfigError};
pub use error::ConnectError;
pub use hedge::{Hedge, Hedged};
pub use messages::{Answer, Messages};
pub use rate_limit::{RateLimit, RateLimited};
pub use retry::{Retry, RetryBudget, RetryLayer, RetryPolicy};
pub use stack::{CallFuture, CallService, Calls};
pub use throttle_kit::Quota;
pub use token::{Token, Tokens, WithToken};
