//! Rate limits: exact, small, and with nothing to tidy up.
//!
//! ```
//! # #[cfg(feature = "in-memory")] {
//! use throttle_kit::{InMemoryBackend, Quota, RateLimiter};
//!
//! let limiter = RateLimiter::new(Quota::per_second(10), InMemoryBackend::new());
//! let decision = limiter.check_now("ann");
//! assert!(decision.is_allowed());
//! assert_eq!(decision.remaining(), 9);
//! # }
//! ```
//!
//! - A [`Quota`] is a rate and a burst; [`RateLimiter`] gives one to every key,
//!   [`KeyedRateLimiter`] has others for some, [`DirectRateLimiter`] has no key.
//! - Each check gives a [`Decision`]: allowed or not, what is left, when to come
//!   back. `check(key).await` works with every store, `check_now(key)` without a
//!   runtime with those in this process.
//! - The state of a key is one word (see [`gcra`]), and lives in a [`store`]: in
//!   memory, in Redis, in SQLite, or wherever [`RateLimitBackend`] is implemented.
//! - [`client_ip`] finds out who is calling behind proxies, and with the feature
//!   `tower` `RateLimitLayer` puts it all before a service.
//!
//! Start with the [guide].
//!
//! # What it costs
//!
//! A check in memory reads the clock once, takes no lock and allocates nothing,
//! for keys that are known as for new ones; 21 bytes a key, all taken at the
//! start. `PERF-SLO.md` has the figures, and how each was measured.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `in-memory` (default) | [`InMemoryBackend`], [`DirectRateLimiter`], the clocks |
//! | `sliding-window` | `SlidingWindowBackend`: counting in windows |
//! | `tower` | `RateLimitLayer` |
//! | `axum` | `tower`, and the layer finds the peer where axum leaves it |
//! | `redis` | budgets shared between machines |
//! | `sqlite` | budgets that survive a restart |
//! | `metrics` | counters through the `metrics` facade |
//! | `test-util` | `ManualClock` |
#![cfg_attr(not(feature = "in-memory"), allow(rustdoc::broken_intra_doc_links))]

pub mod backend;
pub mod client_ip;
#[cfg(feature = "in-memory")]
pub mod clock;
mod decision;
pub mod gcra;
pub mod guide;
mod key;
mod key_hasher;
mod limiter;
#[cfg(feature = "metrics")]
pub mod metrics;
mod observe;
mod quota;
pub mod store;
#[cfg(feature = "tower")]
pub mod tower;

pub use backend::{Demand, Joint, Operation, RateLimitBackend, SyncBackend};
pub use client_ip::{ClientIpConfig, IpNet, MissingClientPolicy, ResolvedClient};
#[cfg(all(feature = "in-memory", any(test, feature = "test-util")))]
pub use clock::ManualClock;
#[cfg(feature = "in-memory")]
pub use clock::{Clock, SystemClock, TickClock};
pub use decision::{Decision, Figures, JointDecision, Outcome};
pub use key::{Hashed, IpBytes, Key, KeyBuf, KeyRef, Kind, Namespace};
#[cfg(feature = "in-memory")]
pub use limiter::DirectRateLimiter;
pub use limiter::{InsufficientCapacity, Jitter, KeyedRateLimiter, RateLimiter};
pub use quota::{Quota, QuotaError};
#[cfg(feature = "in-memory")]
pub use store::InMemoryBackend;
pub use store::NoopBackend;
#[cfg(feature = "redis")]
pub use store::RedisBackend;
#[cfg(feature = "sliding-window")]
pub use store::SlidingWindowBackend;
#[cfg(feature = "sqlite")]
pub use store::SqliteBackend;
#[cfg(any(feature = "redis", feature = "sqlite"))]
pub use store::WhenDown;
#[cfg(feature = "tower")]
pub use tower::{RateLimitLayer, RateLimitService};

/// The README's code, compiled and run.
#[cfg(all(doctest, feature = "axum", feature = "in-memory"))]
#[doc = include_str!("../README.md")]
mod readme {}
