//! What a server did, as numbers.
//!
//! A [`MetricsCollector`] counts calls, their ends by code, how long they took,
//! their messages and bytes, connections, and what the limits decided.
//! [`ServerBuilder::metrics`](crate::ServerBuilder::metrics) has a server fed into
//! it; [`MetricsCollector::prometheus`] writes it in Prometheus' text format, and
//! [`MetricsPage`] says where a server answers with that.
//!
//! Counting takes no lock, and threads do not meet: each has counters of its own,
//! which are added up when somebody asks.

mod collector;
mod concurrency;
mod family;
mod layer;
mod limiter;
mod metering;
mod method;
mod page;
mod prometheus;
mod record;
mod settings;
mod sharded;

pub use collector::{MetricsCollector, MetricsSnapshot};
pub use family::{Family, Kind, Series, Times, Value};
pub use page::MetricsPage;
#[cfg(feature = "config")]
pub(crate) use page::PATH_FORM;

pub(crate) use concurrency::{ConcurrencyCounts, Shed};
pub(crate) use layer::MetricsLayer;
pub(crate) use limiter::LimiterCounts;
pub(crate) use metering::{Metering, Unhandled, Watching};
pub(crate) use page::PageService;
pub(crate) use settings::MetricsSettings;
