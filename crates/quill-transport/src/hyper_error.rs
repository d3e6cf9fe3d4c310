//! Errors of the HTTP stack in our words.

use std::error::Error as StdError;

use crate::error::{TransportError, TransportErrorKind};

/// An error while a body came in: the peer has surely seen the request.
pub(crate) fn body(error: hyper::Error) -> TransportError {
    let (kind, message, _) = classify(&error);
    TransportError::new(kind, message).with_source(error)
}

/// An error before an answer's head came; knows the cases in which the peer
/// has surely not begun to handle the request.
pub(crate) fn exchange(error: hyper::Error) -> TransportError {
    let (kind, message, unprocessed) = classify(&error);
    let error = TransportError::new(kind, message).with_source(error);
    if unprocessed {
        error.unprocessed()
    } else {
        error
    }
}

fn classify(error: &hyper::Error) -> (TransportErrorKind, String, bool) {
    if let Some(error) = http2_error(error) {
        return classify_http2(error);
    }
    if error.is_timeout() {
        let message = "the peer has not answered in time".to_owned();
        return (TransportErrorKind::Timeout, message, false);
    }
    // Hyper calls it canceled when a connection closes under a waiting request.
    let kind = if error.is_parse() || error.is_user() {
        TransportErrorKind::Protocol
    } else {
        TransportErrorKind::Closed
    };
    (
        kind,
        format!("the connection failed: {}", chain(error)),
        false,
    )
}

fn classify_http2(error: &h2::Error) -> (TransportErrorKind, String, bool) {
    if error.is_reset()
        && let Some(reason) = error.reason()
    {
        let message = if error.is_remote() {
            format!("the peer reset the stream: {}", named(reason))
        } else {
            format!("the stream was reset on this side: {}", named(reason))
        };
        // RFC 9113, section 8.7: a refused stream was not processed.
        let unprocessed = error.is_remote() && reason == h2::Reason::REFUSED_STREAM;
        return (
            TransportErrorKind::Reset(reason.into()),
            message,
            unprocessed,
        );
    }
    if error.is_go_away()
        && let Some(reason) = error.reason()
    {
        if error.is_remote() {
            // Only streams over the last one that the peer would handle learn
            // of its GOAWAY in this form (RFC 9113, section 6.8).
            let message = format!("the peer is closing the connection: {}", named(reason));
            return (TransportErrorKind::Closed, message, true);
        }
        let message = format!("the peer broke the rules of HTTP/2: {}", named(reason));
        return (TransportErrorKind::Protocol, message, false);
    }
    let message = format!("the connection failed: {error}");
    (TransportErrorKind::Closed, message, false)
}

fn http2_error(error: &hyper::Error) -> Option<&h2::Error> {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        source = error.source();
    }
    None
}

fn named(reason: h2::Reason) -> String {
    let number: u32 = reason.into();
    format!("{reason:?} ({number:#x}), {}", reason.description())
}

/// The error and what caused it, in one line.
pub(crate) fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    text
}

/// A sender's own error so that HTTP/2 resets the stream with the code it
/// stands for, and not with INTERNAL_ERROR.
pub(crate) fn resetting(error: TransportError) -> TransportError {
    let reason = match error.kind() {
        TransportErrorKind::Canceled => h2::Reason::CANCEL,
        TransportErrorKind::Reset(code) => h2::Reason::from(code),
        _ => return error,
    };
    error.with_source(h2::Error::from(reason))
}

/// Whether the peer closed the connection since it was pinged too often, or
/// otherwise pressed.
pub(crate) fn asks_for_calm(error: &hyper::Error) -> bool {
    http2_error(error).is_some_and(|error| {
        error.is_go_away()
            && error.is_remote()
            && error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM)
    })
}
