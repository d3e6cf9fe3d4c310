//! What a peer did wrong.

use crate::error_code::ErrorCode;

/// A broken rule: of one stream, or of the whole connection (RFC 9113,
/// sections 5.4.1 and 5.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Connection(ErrorCode, &'static str),
    Stream(u32, ErrorCode, &'static str),
}

impl Fault {
    pub(crate) const fn protocol(message: &'static str) -> Self {
        Self::Connection(ErrorCode::PROTOCOL_ERROR, message)
    }

    pub(crate) const fn size(message: &'static str) -> Self {
        Self::Connection(ErrorCode::FRAME_SIZE_ERROR, message)
    }

    pub(crate) const fn flow(message: &'static str) -> Self {
        Self::Connection(ErrorCode::FLOW_CONTROL_ERROR, message)
    }

    pub(crate) const fn calm(message: &'static str) -> Self {
        Self::Connection(ErrorCode::ENHANCE_YOUR_CALM, message)
    }
}
