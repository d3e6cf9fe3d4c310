//! Failures as Problem Details (RFC 9457) and back (docs/protocol.md, "Errors").

use std::time::Duration;

use bytes::Bytes;
use quill_core::{Code, Detail, Error, Metadata};
use serde::Serialize;
use serde_json::{Map, Value};

use super::status;
use crate::base64;
use crate::retry_after;

/// What goes before a code's name, in kebab case, in a problem's `type`.
const TYPE_PREFIX: &str = "https://quill.dev/errors/";
/// What a type URL may have before a message's full name.
const TYPE_URL_PREFIX: &str = "type.googleapis.com/";

/// A problem document, as it is written.
#[derive(Serialize)]
struct Document<'a> {
    r#type: String,
    title: String,
    status: u16,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instance: &'a str,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    quill_proto_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quill_proto_detail_base64: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    details: &'a [TypedDetail<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

#[derive(Serialize)]
struct TypedDetail<'a> {
    r#type: &'a str,
    value: String,
}

/// What a document says beside the error: where and in which trace it happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Occurrence<'a> {
    /// The path of the method called; may be empty.
    pub(super) instance: &'a str,
    pub(super) trace_id: Option<&'a str>,
}

/// The document of an error, under the status that goes with its code. One of
/// more than `bytes_max` bytes is written again without its details.
pub(super) fn encode(error: &Error, at: Occurrence<'_>, bytes_max: usize) -> Vec<u8> {
    encode_with_status(error, status::http_of_code(error.code()), at, bytes_max)
}

/// The same under another status, for refusals that HTTP itself has one for.
pub(super) fn encode_with_status(
    error: &Error,
    status: u16,
    at: Occurrence<'_>,
    bytes_max: usize,
) -> Vec<u8> {
    let typed = error.details().iter().map(|detail| TypedDetail {
        r#type: &detail.type_name,
        value: base64::encode_padded(&detail.value),
    });
    let details: Vec<TypedDetail<'_>> = typed.collect();
    let written = write(error, status, at, &details);
    if written.len() > bytes_max && !details.is_empty() {
        return write(error, status, at, &[]);
    }
    written
}

fn write(error: &Error, status: u16, at: Occurrence<'_>, details: &[TypedDetail<'_>]) -> Vec<u8> {
    let name = error.code().name();
    let first = details.first();
    let document = Document {
        r#type: format!("{TYPE_PREFIX}{}", name.replace('_', "-")),
        title: title(name),
        status,
        detail: error.message(),
        instance: at.instance,
        code: name,
        quill_proto_type: first.map(|detail| detail.r#type),
        quill_proto_detail_base64: first.map(|detail| detail.value.as_str()),
        details,
        trace_id: at.trace_id,
        retry_after_ms: error.retry_after().map(retry_after::millis),
    };
    // A struct of strings and numbers always has a JSON form.
    serde_json::to_vec(&document).unwrap_or_default()
}

/// `not_found` as people read it: `Not found`.
fn title(name: &str) -> String {
    let mut title = name.replace('_', " ");
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    title
}

/// The error that a document holds; `None` for bytes that are no JSON object.
/// `status` is that of the answer; without one (a PROBLEM frame), the document's
/// own member stands in for a missing code.
pub(super) fn decode(document: &[u8], status: Option<u16>) -> Option<Error> {
    let members: Map<String, Value> = serde_json::from_slice(document).ok()?;
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let status = status.or_else(|| u16::try_from(members.get("status")?.as_u64()?).ok());
    let known = text("code").and_then(Code::from_name);
    let code = known.unwrap_or_else(|| status.map_or(Code::Unknown, status::code_of_problem));
    // Beside a code the title says nothing more, and the message may be empty;
    // a problem of somebody else may have no more than its title.
    let title = || text("title").filter(|_| known.is_none());
    let message = text("detail").or_else(title).unwrap_or_default();
    let mut error = Error::new(code, message.to_owned());
    for detail in details(&members) {
        error = error.with_detail(&detail);
    }
    if error.retry_after().is_none()
        && let Some(millis) = members.get("retry_after_ms").and_then(Value::as_u64)
    {
        error = error.with_retry_after(Duration::from_millis(millis));
    }
    Some(error)
}

/// The typed details: all of `details`, or the one of the two older members.
/// One that is malformed is left out: the code and the message matter more.
fn details(members: &Map<String, Value>) -> Vec<Detail> {
    if let Some(Value::Array(all)) = members.get("details") {
        let typed = |detail: &Value| read_detail(detail.get("type"), detail.get("value"));
        return all.iter().filter_map(typed).collect();
    }
    let first = read_detail(
        members.get("quill_proto_type"),
        members.get("quill_proto_detail_base64"),
    );
    first.into_iter().collect()
}

fn read_detail(type_name: Option<&Value>, value: Option<&Value>) -> Option<Detail> {
    let type_name = type_name?.as_str()?;
    let value = base64::decode_any(value?.as_str()?.as_bytes())?;
    Some(Detail {
        type_name: type_name
            .strip_prefix(TYPE_URL_PREFIX)
            .unwrap_or(type_name)
            .to_owned(),
        value: Bytes::from(value),
    })
}

/// The error of an answer that is no problem document, by its status alone.
pub(super) fn of_status(status: u16) -> Error {
    Error::new(
        status::code_of_answer(status),
        format!("the server answered with HTTP status {status} and no problem document"),
    )
}

/// The trace id in a W3C `traceparent`, as 32 hex digits; all zero is none.
pub(super) fn trace_id(request: &Metadata) -> Option<[u8; 32]> {
    let parent = request.get("traceparent")?.as_bytes();
    let id: [u8; 32] = parent.get(3..35)?.try_into().ok()?;
    let dashes = parent.get(2) == Some(&b'-') && parent.get(35) == Some(&b'-');
    let hex = id.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    (dashes && hex && id != [b'0'; 32]).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY: usize = 1 << 20;

    fn at() -> Occurrence<'static> {
        Occurrence {
            instance: "/echo.v1.EchoService/Echo",
            trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736"),
        }
    }

    #[test]
    fn every_code_survives_the_round_trip() {
        for code in Code::ALL {
            let error = Error::new(code, "it failed");
            let document = encode(&error, at(), PLENTY);
            let status = status::http_of_code(code);
            let back = decode(&document, Some(status)).unwrap();
            assert_eq!((back.code(), back.message()), (code, "it failed"));
            assert_eq!(decode(&document, None).unwrap().code(), code);
        }
    }

    #[test]
    fn an_empty_message_stays_empty_and_a_title_stands_in_without_a_code() {
        for code in Code::ALL {
            let document = encode(&Error::new(code, ""), at(), PLENTY);
            assert_eq!(decode(&document, None).unwrap().message(), "");
        }
        for (document, message) in [
            (&br#"{"title":"Gone","status":410}"#[..], "Gone"),
            (br#"{"title":"Gone","code":"no_such_code"}"#, "Gone"),
            (br#"{"title":"Gone","detail":"since May"}"#, "since May"),
            (br#"{"title":"Not found","code":"not_found"}"#, ""),
        ] {
            assert_eq!(decode(document, None).unwrap().message(), message);
        }
    }

    #[test]
    fn the_members_are_those_of_the_protocol() {
        let error = Error::not_found("no user 7").with_retry_after(Duration::from_millis(1_500));
        let text = String::from_utf8(encode(&error, at(), PLENTY)).unwrap();
        assert_eq!(
            text,
            "{\"type\":\"https://quill.dev/errors/not-found\",\"title\":\"Not found\",\
             \"status\":404,\"detail\":\"no user 7\",\"instance\":\"/echo.v1.EchoService/Echo\",\
             \"code\":\"not_found\",\"quill_proto_type\":\"google.rpc.RetryInfo\",\
             \"quill_proto_detail_base64\":\"CggIARCAyrXuAQ==\",\
             \"details\":[{\"type\":\"google.rpc.RetryInfo\",\"value\":\"CggIARCAyrXuAQ==\"}],\
             \"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"retry_after_ms\":1500}"
        );
    }

    #[test]
    fn details_and_delays_survive_whoever_wrote_them() {
        let detail = Detail {
            type_name: "a.B".to_owned(),
            value: Bytes::from_static(b"\x08\x01"),
        };
        let error = Error::aborted("x")
            .with_detail(&detail)
            .with_retry_after(Duration::from_millis(300));
        let back = decode(&encode(&error, Occurrence::default(), PLENTY), None).unwrap();
        assert_eq!(back.details(), error.details());
        assert_eq!(back.retry_after(), Some(Duration::from_millis(300)));
        assert_eq!(back.details().len(), 2);

        let older = br#"{"quill_proto_type":"type.googleapis.com/a.B",
            "quill_proto_detail_base64":"CAE","retry_after_ms":250,"code":"aborted"}"#;
        let back = decode(older, None).unwrap();
        assert_eq!(back.details().first(), Some(&detail));
        assert_eq!(back.retry_after(), Some(Duration::from_millis(250)));
    }

    #[test]
    fn a_problem_without_a_code_takes_it_from_the_status() {
        for (document, status, code) in [
            (&br#"{"title":"x"}"#[..], Some(409), Code::AlreadyExists),
            (br#"{"code":"no_such_code"}"#, Some(404), Code::NotFound),
            (br#"{"code":7,"status":"x"}"#, Some(500), Code::Unknown),
            (br#"{"status":429}"#, None, Code::ResourceExhausted),
            (br#"{"status":70000}"#, None, Code::Unknown),
            (b"{}", None, Code::Unknown),
        ] {
            assert_eq!(decode(document, status).unwrap().code(), code);
        }
        for junk in [&b""[..], b"<html>", b"[]", b"{\"code\":", b"\xff"] {
            assert!(decode(junk, Some(404)).is_none());
        }
    }

    #[test]
    fn a_document_over_the_limit_goes_without_details() {
        let detail = Detail {
            type_name: "a.B".to_owned(),
            value: Bytes::from(vec![0; 1000]),
        };
        let error = Error::internal("x").with_detail(&detail);
        let document = encode(&error, at(), 500);
        assert!(document.len() < 500);
        assert_eq!(decode(&document, None).unwrap().code(), Code::Internal);
    }

    #[test]
    fn sources_stay_inside() {
        let error = Error::internal("x").with_source("password is hunter2");
        let document = encode(&error, at(), PLENTY);
        assert!(!String::from_utf8(document).unwrap().contains("hunter2"));
    }

    #[test]
    fn a_trace_id_is_taken_from_a_well_formed_parent_only() {
        let of = |parent: &str| {
            let mut metadata = Metadata::new();
            metadata.append("traceparent", parent).unwrap();
            trace_id(&metadata)
        };
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(
            of(parent).as_ref().map(|id| &id[..]),
            Some(&b"4bf92f3577b34da6a3ce929d0e0e4736"[..])
        );
        for parent in [
            "00",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736",
        ] {
            assert_eq!(of(parent), None, "{parent}");
        }
    }
}
