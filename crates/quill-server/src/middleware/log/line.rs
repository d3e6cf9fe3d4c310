//! One line.

use std::fmt::{Display, Write};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use quill_core::trace::TraceContext;
use quill_core::{Code, HttpVersion};

use super::escaped::Escaped;
use super::timestamp::Timestamp;

/// Longest text that a line shows of a name, and of what an error says, in bytes.
const NAME_BYTES_MAX: usize = 256;
const TEXT_BYTES_MAX: usize = 1024;

/// How lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Text,
}

/// What a line says of a call.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    pub(crate) begun: SystemTime,
    pub(crate) took: Duration,
    /// The method's path, or what a caller wrote in its place.
    pub(crate) path: &'a str,
    pub(crate) protocol: &'a str,
    pub(crate) http: Option<HttpVersion>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) identity: Option<&'a str>,
    pub(crate) trace: Option<&'a TraceContext>,
    pub(crate) failure: Option<Code>,
    /// What the caller was told.
    pub(crate) message: Option<&'a str>,
    /// What it was not told.
    pub(crate) cause: Option<&'a str>,
    pub(crate) received: Traffic,
    pub(crate) sent: Traffic,
    pub(crate) metadata: Vec<(&'a str, &'a str)>,
}

/// Messages, and their bytes before compression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Traffic {
    pub(crate) fn add(&mut self, messages: u64, bytes: u64) {
        self.messages += messages;
        self.bytes += bytes;
    }
}

impl Line<'_> {
    pub(super) fn write(&self, format: Format) -> String {
        let mut out = Writing::begin(format, self.begun);
        out.name("method", self.path);
        out.plain("code", self.failure.map_or("ok", Code::name));
        out.number("duration_ms", Millis(self.took));
        out.plain("protocol", self.protocol);
        if let Some(version) = self.http {
            let version = match version {
                HttpVersion::Http1 => "1.1",
                HttpVersion::Http2 => "2",
                _ => "3",
            };
            out.plain("http", version);
        }
        if let Some(peer) = self.peer {
            out.plain("peer", peer);
        }
        if let Some(identity) = self.identity {
            out.name("identity", identity);
        }
        if let Some(trace) = self.trace {
            out.plain("trace_id", trace.trace_id());
            out.plain("span_id", trace.span_id());
        }
        for (messages, bytes, traffic) in [
            ("received_messages", "received_bytes", self.received),
            ("sent_messages", "sent_bytes", self.sent),
        ] {
            out.number(messages, traffic.messages);
            out.number(bytes, traffic.bytes);
        }
        for (name, text) in [("error", self.message), ("cause", self.cause)] {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                out.text(name, text);
            }
        }
        out.metadata(&self.metadata);
        out.end()
    }
}

/// The line that says that others are missing.
pub(super) fn lost(format: Format, now: SystemTime, lines: u64) -> String {
    let mut out = Writing::begin(format, now);
    out.number("lost_lines", lines);
    out.end()
}

/// Milliseconds, to the microsecond.
struct Millis(Duration);

impl Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let micros = self.0.as_micros();
        write!(f, "{}.{:03}", micros / 1000, micros % 1000)
    }
}

/// A line being written. Writing to a string does not fail.
struct Writing {
    out: String,
    format: Format,
}

impl Writing {
    fn begin(format: Format, time: SystemTime) -> Self {
        let mut writing = Self {
            out: String::with_capacity(512),
            format,
        };
        if format == Format::Json {
            writing.out.push('{');
        }
        writing.plain("time", Timestamp(time));
        writing
    }

    fn end(mut self) -> String {
        self.out.push_str(match self.format {
            Format::Json => "}\n",
            Format::Text => "\n",
        });
        self.out
    }

    fn key(&mut self, name: &str) {
        let is_first = self.out.is_empty() || self.out.ends_with('{');
        let _ = match self.format {
            Format::Json if is_first => write!(self.out, "\"{name}\":"),
            Format::Json => write!(self.out, ",\"{name}\":"),
            Format::Text if is_first => write!(self.out, "{name}="),
            Format::Text => write!(self.out, " {name}="),
        };
    }

    fn number(&mut self, name: &str, number: impl Display) {
        self.key(name);
        let _ = write!(self.out, "{number}");
    }

    /// What is known to have nothing in it that needs to be escaped.
    fn plain(&mut self, name: &str, value: impl Display) {
        self.key(name);
        let _ = match self.format {
            Format::Json => write!(self.out, "\"{value}\""),
            Format::Text => write!(self.out, "{value}"),
        };
    }

    fn name(&mut self, name: &str, text: &str) {
        self.escaped(name, text, NAME_BYTES_MAX);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.escaped(name, text, TEXT_BYTES_MAX);
    }

    fn escaped(&mut self, name: &str, text: &str, bytes_max: usize) {
        self.key(name);
        let _ = write!(self.out, "{}", Escaped { text, bytes_max });
    }

    /// One value of each name, the first, in JSON, where names are told apart.
    fn metadata(&mut self, fields: &[(&str, &str)]) {
        if fields.is_empty() {
            return;
        }
        if self.format == Format::Json {
            self.key("metadata");
            self.out.push('{');
        }
        for (index, (name, value)) in fields.iter().enumerate() {
            if fields.iter().take(index).any(|(other, _)| other == name) {
                continue;
            }
            // Names are letters, digits, `-`, `_` and `.`; a long one is cut.
            let name = name
                .get(..name.len().min(NAME_BYTES_MAX))
                .unwrap_or_default();
            match self.format {
                Format::Json => self.name(name, value),
                Format::Text => self.name(&format!("metadata.{name}"), value),
            }
        }
        if self.format == Format::Json {
            self.out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quill_core::trace::Tracer;

    fn line(trace: &TraceContext) -> Line<'_> {
        Line {
            begun: SystemTime::UNIX_EPOCH,
            took: Duration::from_micros(1_234_005),
            path: "/a.B/C",
            protocol: "p",
            http: Some(HttpVersion::Http2),
            peer: Some(([127, 0, 0, 1], 5).into()),
            identity: Some("ann\n\"x\""),
            trace: Some(trace),
            failure: Some(Code::NotFound),
            message: Some("no\r\nuser"),
            cause: None,
            received: Traffic {
                messages: 1,
                bytes: 2,
            },
            sent: Traffic {
                messages: 3,
                bytes: 4,
            },
            metadata: vec![("user-agent", "a\u{1b}b"), ("user-agent", "c"), ("x", "d")],
        }
    }

    #[test]
    fn json_is_one_object_on_one_line() {
        let trace = Tracer::unrecorded().begin(None);
        let text = line(&trace).write(Format::Json);
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({
            "time": "1970-01-01T00:00:00.000Z",
            "method": "/a.B/C",
            "code": "not_found",
            "duration_ms": 1234.005,
            "protocol": "p",
            "http": "2",
            "peer": "127.0.0.1:5",
            "identity": "ann\n\"x\"",
            "trace_id": trace.trace_id().to_string(),
            "span_id": trace.span_id().to_string(),
            "received_messages": 1,
            "received_bytes": 2,
            "sent_messages": 3,
            "sent_bytes": 4,
            "error": "no\r\nuser",
            "metadata": {"user-agent": "a\u{1b}b", "x": "d"},
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn text_is_keys_and_values() {
        let trace = Tracer::unrecorded().begin(None);
        let mut line = line(&trace);
        line.trace = None;
        line.failure = None;
        line.message = None;
        let text = line.write(Format::Text);
        let expected = "time=1970-01-01T00:00:00.000Z method=\"/a.B/C\" code=ok \
            duration_ms=1234.005 protocol=p http=2 peer=127.0.0.1:5 \
            identity=\"ann\\n\\\"x\\\"\" received_messages=1 received_bytes=2 \
            sent_messages=3 sent_bytes=4 metadata.user-agent=\"a\\u001bb\" metadata.x=\"d\"\n";
        assert_eq!(text, expected);
        let missing = lost(Format::Text, SystemTime::UNIX_EPOCH, 7);
        assert_eq!(missing, "time=1970-01-01T00:00:00.000Z lost_lines=7\n");
    }
}
