//! A failed call, in full.

use std::error::Error as _;
use std::fmt::Write as _;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quill::{Code, Deadline, DecodeLimits, Detail, Error};
use quill_explain::harmless;
use quill_transport::{TransportError, TransportErrorKind};

use crate::failure::Failure;
use crate::schema::Schema;

/// Details that are decoded; more are counted only.
const DETAILS_MAX: usize = 32;

/// The failure of a call, with the exit code of who is to blame. A deadline of
/// the caller's own that has passed blames the way, whichever end noticed first.
pub(crate) fn call_failure(error: &Error, message: &str, deadline: Option<Deadline>) -> Failure {
    let is_over = |deadline: Deadline| deadline.remaining(Instant::now()).is_zero();
    if error.code() == Code::DeadlineExceeded && deadline.is_some_and(is_over) {
        return Failure::network(message).with_hint("--timeout gives a call more time");
    }
    let transport = error
        .source()
        .and_then(|source| source.downcast_ref::<TransportError>());
    match transport.map(TransportError::kind) {
        Some(TransportErrorKind::Url) => Failure::input(message),
        Some(TransportErrorKind::HttpVersion) => {
            Failure::network(message).with_hint("--http1 speaks HTTP/1.1")
        }
        Some(TransportErrorKind::Tls) => Failure::network(message).with_hint(
            "--server-name NAME expects another name, --cacert FILE trusts another authority",
        ),
        // The server's own doing: it spoke, and not as agreed.
        Some(TransportErrorKind::Reset(_) | TransportErrorKind::Protocol) | None => {
            Failure::server(message)
        }
        Some(_) => Failure::network(message),
    }
}

/// Code and message, then a line for each detail.
pub(crate) async fn describe(error: &Error, schema: &mut Schema) -> String {
    let mut text = harmless(&error.to_string());
    for detail in error.details().iter().take(DETAILS_MAX) {
        let line = match decoded(detail, schema).await {
            Some(json) => format!("{} {json}", detail.type_name),
            None => format!(
                "{} (of unknown type) base64 {}",
                detail.type_name,
                STANDARD.encode(&detail.value)
            ),
        };
        let _ = write!(text, "\n  detail {line}");
    }
    if let Some(more) = error.details().len().checked_sub(DETAILS_MAX + 1) {
        let _ = write!(text, "\n  and {} more details", more + 1);
    }
    text
}

/// `name: value`, in base64 where it is binary.
pub(crate) fn metadata_line(name: &str, value: &[u8]) -> String {
    if name.ends_with("-bin") {
        return format!("{name}: {}", STANDARD.encode(value));
    }
    // Bytes from outside must not drive the terminal.
    format!("{name}: {}", value.escape_ascii())
}

async fn decoded(detail: &Detail, schema: &mut Schema) -> Option<String> {
    let message = schema.message_type(&detail.type_name).await?;
    let message = message
        .read_bytes(&detail.value, &DecodeLimits::default())
        .ok()?;
    serde_json::to_string(&message).ok()
}
