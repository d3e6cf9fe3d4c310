//! What a broken transport means for a call.

use quill_core::{Code, Error};
use quill_transport::{TransportError, TransportErrorKind};
use quill_wire::Side;

/// The error of a call whose transport failed.
///
/// For a server every failure of a request's body means that the caller has
/// gone. For a client HTTP/2's reset codes map as in gRPC's PROTOCOL-HTTP2.md,
/// "Errors".
#[must_use]
pub fn from_transport(error: TransportError, side: Side) -> Error {
    if side == Side::Server {
        return Error::canceled("the caller gave the call up").with_source(error);
    }
    let code = match error.kind() {
        TransportErrorKind::Url => Code::InvalidArgument,
        TransportErrorKind::Reset(reset) => reset_code(reset),
        TransportErrorKind::Protocol => Code::Internal,
        TransportErrorKind::Canceled => Code::Canceled,
        _ => Code::Unavailable,
    };
    let failed = Error::new(code, error.to_string());
    let failed = if error.maybe_processed() {
        failed
    } else {
        failed.unprocessed()
    };
    failed.with_source(error)
}

fn reset_code(reset: u32) -> Code {
    match reset {
        // REFUSED_STREAM
        0x7 => Code::Unavailable,
        // CANCEL, and H3_REQUEST_CANCELLED
        0x8 | 0x10c => Code::Canceled,
        // ENHANCE_YOUR_CALM
        0xb => Code::ResourceExhausted,
        // INADEQUATE_SECURITY
        0xc => Code::PermissionDenied,
        _ => Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_codes_map_as_grpc_says() {
        for (reset, code) in [
            (0x0, Code::Internal),
            (0x1, Code::Internal),
            (0x7, Code::Unavailable),
            (0x8, Code::Canceled),
            (0xb, Code::ResourceExhausted),
            (0xc, Code::PermissionDenied),
        ] {
            let error = TransportError::new(TransportErrorKind::Reset(reset), "reset");
            assert_eq!(from_transport(error, Side::Client).code(), code);
        }
    }

    #[test]
    fn what_was_not_processed_stays_so_and_its_kind_can_be_read() {
        let error = TransportError::new(TransportErrorKind::Connect, "refused");
        assert!(from_transport(error.clone(), Side::Client).maybe_processed());
        let error = from_transport(error.unprocessed(), Side::Client);
        assert!(!error.maybe_processed());
        let found = TransportError::of(&error).expect("the transport's own");
        assert_eq!(found.kind(), TransportErrorKind::Connect);
        assert!(TransportError::of(&Error::internal("a bug")).is_none());
    }

    #[test]
    fn a_server_sees_only_a_caller_that_has_gone() {
        let error = TransportError::new(TransportErrorKind::Closed, "closed");
        assert_eq!(from_transport(error, Side::Server).code(), Code::Canceled);
    }
}
