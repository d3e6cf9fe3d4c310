//! HTTP/1.1.

use std::fmt::Write as _;

/// The head of a POST with these fields, without a length.
pub(crate) fn head(path: &str, fields: &[(&str, &str)]) -> String {
    let mut head = format!("POST {path} HTTP/1.1\r\nhost: victim\r\n");
    for (name, value) in fields {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    head
}

/// A whole POST, the last of its connection.
pub(crate) fn post(path: &str, fields: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut request = head(path, fields);
    let _ = write!(
        request,
        "connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [request.as_bytes(), body].concat()
}

/// A whole POST of this type.
pub(crate) fn post_of(path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    post(path, &[("content-type", content_type)], body)
}

/// The status of an answer's first line.
pub(crate) fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.split(|byte| *byte == b'\r').next()?;
    let text = std::str::from_utf8(line).ok()?;
    text.split(' ').nth(1)?.parse().ok()
}
