//! What a browser's script may use of the protocols: the fields that CORS has
//! to name before a request carries them, or a script sees them.

use crate::fields::TRAILER_PREFIX;

/// The methods of calls.
pub const METHODS: &[&str] = &["GET", "POST"];

/// The request fields of every protocol that a script can speak.
pub const REQUEST_FIELDS: &[&str] = &[
    "accept",
    "accept-encoding",
    "content-encoding",
    "content-type",
    // Connect
    "connect-accept-encoding",
    "connect-content-encoding",
    "connect-protocol-version",
    "connect-timeout-ms",
    // gRPC-Web
    "grpc-accept-encoding",
    "grpc-encoding",
    "grpc-timeout",
    "x-grpc-web",
    "x-user-agent",
    // Quill
    "prefer",
    "quill-accept-encoding",
    "quill-credits",
    "quill-encoding",
    "quill-timeout-ms",
];

/// The fields of answers that a script has to see.
pub const RESPONSE_FIELDS: &[&str] = &[
    "allow",
    "content-encoding",
    "retry-after",
    // Connect
    "connect-accept-encoding",
    "connect-content-encoding",
    // gRPC-Web
    "grpc-accept-encoding",
    "grpc-encoding",
    "grpc-message",
    "grpc-status",
    "grpc-status-details-bin",
    // Quill
    "quill-accept-encoding",
    "quill-credits",
    "quill-encoding",
    "selected-prism",
];

/// The names under which a script meets metadata of this name in an answer:
/// itself, and as a trailer in the head of a unary answer.
#[must_use]
pub fn response_names(metadata: &str) -> [String; 2] {
    let trailer = [TRAILER_PREFIX, metadata].concat();
    [metadata.to_owned(), trailer]
}
