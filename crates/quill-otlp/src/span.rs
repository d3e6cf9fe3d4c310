//! Spans as OTLP has them, with the attributes of the semantic conventions for RPC.
//!
//! <https://opentelemetry.io/docs/specs/semconv/rpc/>

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use quill_core::Code;
use quill_core::trace::{Side, Span};

use crate::proto::opentelemetry::proto::common::v1::KeyValue;
use crate::proto::opentelemetry::proto::common::v1::any_value::Value;
use crate::proto::opentelemetry::proto::trace::v1 as wire;
use crate::resource::{attribute, text};

/// Methods that a server does not have.
const OTHER: &str = "_OTHER";
/// In a span's flags: its parent is known to be, or known not to be, of another
/// process; and that it is.
const REMOTE_IS_KNOWN: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;

/// The span on the wire.
pub(crate) fn to_wire(span: &Span) -> wire::Span {
    let context = &span.context;
    let begun = nanos(span.begun);
    let took = u64::try_from(span.took.as_nanos()).unwrap_or(u64::MAX);
    let parent = context.parent_id().map(|id| id.to_bytes().to_vec());
    let remote = match span.side {
        Side::Server => REMOTE_IS_KNOWN | IS_REMOTE,
        Side::Client => REMOTE_IS_KNOWN,
    };
    wire::Span {
        trace_id: context.trace_id().to_bytes().to_vec(),
        span_id: context.span_id().to_bytes().to_vec(),
        trace_state: context.state().unwrap_or_default().to_owned(),
        flags: u32::from(context.is_sampled()) | parent.as_ref().map_or(0, |_| remote),
        parent_span_id: parent.unwrap_or_default(),
        name: method(span).to_owned(),
        kind: match span.side {
            Side::Server => wire::span::SpanKind::SPAN_KIND_SERVER,
            Side::Client => wire::span::SpanKind::SPAN_KIND_CLIENT,
        }
        .into(),
        start_time_unix_nano: begun,
        end_time_unix_nano: begun.saturating_add(took),
        attributes: attributes(span),
        status: status(span).into(),
        ..Default::default()
    }
}

/// Nanoseconds since 1970; a clock that is set before that is at its beginning.
pub(crate) fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// `package.Service/Method`.
fn method(span: &Span) -> &str {
    let path = span.method.as_ref().map_or(OTHER, |method| method.path());
    path.strip_prefix('/').unwrap_or(path)
}

fn attributes(span: &Span) -> Vec<KeyValue> {
    let system = System::of(span.protocol);
    let mut attributes = vec![
        text("rpc.system.name", system.name(span.protocol)),
        text("rpc.method", method(span)),
    ];
    if let Some(code) = system.code(span.failure) {
        attributes.push(text("rpc.response.status_code", code.as_str()));
        if is_error(span) {
            attributes.push(text("error.type", code));
        }
    }
    if let Some(peer) = span.peer {
        attributes.push(text("client.address", peer.ip().to_string()));
        attributes.extend(network_peer(peer));
    }
    if let Some(target) = &span.target {
        let (host, port) = host_and_port(target);
        attributes.push(text("server.address", host));
        attributes.extend(port.map(|port| attribute("server.port", Value::IntValue(port))));
    }
    attributes
}

fn network_peer(peer: SocketAddr) -> [KeyValue; 2] {
    let port = Value::IntValue(peer.port().into());
    [
        text("network.peer.address", peer.ip().to_string()),
        attribute("network.peer.port", port),
    ]
}

/// The parts of `host`, `host:port`, `[v6]` and `[v6]:port`.
fn host_and_port(target: &str) -> (&str, Option<i64>) {
    let read = target.rsplit_once(':').and_then(|(host, port)| {
        let port: u16 = port.parse().ok()?;
        Some((host, Some(i64::from(port))))
    });
    let (host, port) = read.unwrap_or((target, None));
    (host.trim_start_matches('[').trim_end_matches(']'), port)
}

/// An error in the eyes of its side: a server that refuses what was wrong with a
/// request has done its work.
fn is_error(span: &Span) -> bool {
    match (span.side, span.failure) {
        (_, None) => false,
        (Side::Client, Some(_)) => true,
        (Side::Server, Some(code)) => matches!(
            code,
            Code::Unknown
                | Code::DeadlineExceeded
                | Code::Unimplemented
                | Code::Internal
                | Code::Unavailable
                | Code::DataLoss
        ),
    }
}

fn status(span: &Span) -> wire::Status {
    if !is_error(span) {
        return wire::Status::default();
    }
    wire::Status {
        message: span.message.clone(),
        code: wire::status::StatusCode::STATUS_CODE_ERROR.into(),
        ..Default::default()
    }
}

/// The conventions that a protocol's spans follow.
#[derive(Clone, Copy)]
enum System {
    Grpc,
    Connect,
    Other,
}

impl System {
    fn of(protocol: &str) -> Self {
        match protocol {
            "grpc" | "grpc-web" | "grpc-web-text" => Self::Grpc,
            "connect" => Self::Connect,
            _ => Self::Other,
        }
    }

    fn name(self, protocol: &str) -> &str {
        match self {
            Self::Grpc => "grpc",
            Self::Connect => "connectrpc",
            Self::Other => protocol,
        }
    }

    /// What the protocol calls a call's end: gRPC has a name for a good one too.
    fn code(self, failure: Option<Code>) -> Option<String> {
        match (self, failure) {
            (Self::Grpc, None) => Some("OK".to_owned()),
            (Self::Grpc, Some(Code::Canceled)) => Some("CANCELLED".to_owned()),
            (Self::Grpc, Some(code)) => Some(code.name().to_ascii_uppercase()),
            (_, failure) => failure.map(|code| code.name().to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quill_core::trace::Tracer;
    use quill_core::{Method, MethodKind};

    use super::*;

    fn span(side: Side, protocol: &'static str, failure: Option<Code>) -> Span {
        let tracer = Tracer::unrecorded();
        let context = tracer.begin(Some(&tracer.begin(None)));
        let mut span = Span::begin(Arc::new(context), side);
        span.method = Some(Arc::new(Method::new("/a.B/C", MethodKind::Unary)));
        span.protocol = protocol;
        if let Some(code) = failure {
            span.fail(code, "why");
        }
        span
    }

    /// The text of an attribute.
    fn value(span: &wire::Span, key: &str) -> Option<String> {
        let found = span.attributes.iter().find(|own| own.key == key)?;
        match found.value.value.as_ref()? {
            Value::StringValue(text) => Some(text.clone()),
            Value::IntValue(number) => Some(number.to_string()),
            _ => None,
        }
    }

    #[test]
    fn each_protocol_calls_its_ends_as_the_conventions_do() {
        for (protocol, failure, system, code) in [
            ("grpc", None, "grpc", Some("OK")),
            ("grpc-web", Some(Code::NotFound), "grpc", Some("NOT_FOUND")),
            (
                "grpc-web-text",
                Some(Code::Canceled),
                "grpc",
                Some("CANCELLED"),
            ),
            ("connect", None, "connectrpc", None),
            (
                "connect",
                Some(Code::Canceled),
                "connectrpc",
                Some("canceled"),
            ),
            ("quill", Some(Code::NotFound), "quill", Some("not_found")),
        ] {
            let sent = to_wire(&span(Side::Client, protocol, failure));
            assert_eq!(value(&sent, "rpc.system.name").as_deref(), Some(system));
            assert_eq!(value(&sent, "rpc.method").as_deref(), Some("a.B/C"));
            assert_eq!(value(&sent, "rpc.response.status_code").as_deref(), code);
            let error = failure.and(code);
            assert_eq!(value(&sent, "error.type").as_deref(), error);
        }
    }

    #[test]
    fn a_server_that_refused_well_has_no_error() {
        for (side, code, is_error) in [
            (Side::Client, Code::NotFound, true),
            (Side::Server, Code::NotFound, false),
            (Side::Server, Code::Unauthenticated, false),
            (Side::Server, Code::Internal, true),
            (Side::Server, Code::DeadlineExceeded, true),
        ] {
            let sent = to_wire(&span(side, "grpc", Some(code)));
            let message = if is_error { "why" } else { "" };
            assert_eq!(sent.status.message, message, "{side:?} {code}");
            assert_eq!(value(&sent, "error.type").is_some(), is_error);
        }
    }

    #[test]
    fn both_ends_are_where_they_are() {
        let mut of_server = span(Side::Server, "grpc", None);
        of_server.peer = Some(([127, 0, 0, 1], 7).into());
        let sent = to_wire(&of_server);
        assert_eq!(value(&sent, "network.peer.port").as_deref(), Some("7"));
        assert_eq!(value(&sent, "client.address").as_deref(), Some("127.0.0.1"));
        assert_eq!(sent.flags, 0x300);
        assert_eq!(sent.parent_span_id.len(), 8);
        for (target, host, port) in [
            ("a.example:80", "a.example", Some("80")),
            ("a.example", "a.example", None),
            ("[::1]:7", "::1", Some("7")),
            ("[::1]", "::1", None),
        ] {
            let mut of_client = span(Side::Client, "grpc", None);
            of_client.target = Some(target.into());
            let sent = to_wire(&of_client);
            assert_eq!(value(&sent, "server.address").as_deref(), Some(host));
            assert_eq!(value(&sent, "server.port").as_deref(), port);
        }
    }
}
