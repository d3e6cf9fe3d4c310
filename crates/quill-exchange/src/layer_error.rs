//! What the errors of layers mean for a call.

use quill_core::{BoxError, Error};

use crate::send::deadline_exceeded;

/// The error of a layer: ours as it is, those of tower's own layers by what
/// they mean, any other `unknown` with its text kept inside. `overloaded` says
/// who it was that had to shed load.
#[must_use]
pub fn from_layer(error: BoxError, overloaded: &'static str) -> Error {
    if error.is::<tower::timeout::error::Elapsed>() {
        return deadline_exceeded();
    }
    if error.is::<tower::load_shed::error::Overloaded>() {
        return Error::resource_exhausted(overloaded);
    }
    Error::from(error)
}
