//! Requests and frames by hand, so that they can be wrong.

pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod messages;
