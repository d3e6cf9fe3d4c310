//! Documents and trailers: what ends a call, and is text.

use serde_json::Value;

use crate::harmless::harmless;

/// What a document of JSON is.
pub(crate) fn title(document: &Value) -> &'static str {
    let has = |name: &str| document.get(name).is_some();
    let is_text = |name: &str| document.get(name).is_some_and(Value::is_string);
    if is_text("code") && document.get("status").is_none() {
        "error of Connect (application/json)"
    } else if is_text("title")
        || (is_text("type") && has("status"))
        || (has("status") && has("code"))
    {
        "problem details (application/problem+json)"
    } else {
        "JSON"
    }
}

/// The lines of a document, or why it is none.
pub(crate) fn lines(bytes: &[u8]) -> Result<(Value, Vec<String>), String> {
    let document: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    let lines = text.lines().map(harmless).collect();
    Ok((document, lines))
}

/// `name: value` of each line of trailers.
pub(crate) fn trailers(bytes: &[u8]) -> Vec<String> {
    let lines = bytes.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.filter(|line| !line.is_empty());
    lines
        .map(|line| harmless(&String::from_utf8_lossy(line)))
        .collect()
}
