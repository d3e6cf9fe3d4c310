//! Calls as traces and logs show them.
//!
//! A server with a [`Tracer`](quill_core::trace::Tracer) or a
//! [`RequestLogger`](crate::log::RequestLogger) has one [`Observer`], whose layer
//! stands around all others but that of the metrics.

mod layer;
mod notes;
mod observation;
mod observer;

pub(crate) use layer::ObserveLayer;
pub(crate) use notes::Notes;
pub(crate) use observation::Observation;
pub(crate) use observer::{Observer, ObserverSettings, Refused};
