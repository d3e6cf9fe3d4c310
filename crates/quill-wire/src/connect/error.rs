//! Connect's JSON form of an error, and the tables between codes and HTTP
//! statuses.

use bytes::{BufMut, Bytes, BytesMut};
use quill_core::{Code, Detail, Error};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::base64;

/// Most bytes of a received error document or end of stream, after
/// decompression. They don't count as messages, so that a caller with a small
/// limit for messages still reads why its call failed.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 256 * 1024;

/// The HTTP status of a unary call that failed with this code.
pub(crate) fn status_of(code: Code) -> u16 {
    match code {
        Code::Canceled => 499,
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => 400,
        Code::DeadlineExceeded => 504,
        Code::NotFound => 404,
        Code::AlreadyExists | Code::Aborted => 409,
        Code::PermissionDenied => 403,
        Code::ResourceExhausted => 429,
        Code::Unimplemented => 501,
        Code::Unavailable => 503,
        Code::Unauthenticated => 401,
        // Unknown, Internal, DataLoss.
        _ => 500,
    }
}

/// The code of an answer that names none. Not the way back of [`status_of`]:
/// such an answer comes from a proxy or from no Connect server at all.
pub(crate) fn code_of(status: u16) -> Code {
    match status {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502 | 503 | 504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}

/// The error of an answer of which nothing but its status can be read.
pub(crate) fn of_status(status: u16) -> Error {
    Error::new(
        code_of(status),
        format!("the answer has HTTP status {status} and no Connect error"),
    )
}

/// An error as it is written.
#[derive(Debug, Serialize)]
pub(crate) struct Written<'a> {
    code: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'a str,
    #[serde(
        skip_serializing_if = "<[Detail]>::is_empty",
        serialize_with = "write_details"
    )]
    details: &'a [Detail],
}

impl<'a> From<&'a Error> for Written<'a> {
    fn from(error: &'a Error) -> Self {
        Self {
            code: error.code().name(),
            message: error.message(),
            details: error.details(),
        }
    }
}

#[derive(Serialize)]
struct WrittenDetail<'a> {
    r#type: &'a str,
    value: String,
}

fn write_details<S: Serializer>(details: &&[Detail], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(details.iter().map(|detail| WrittenDetail {
        r#type: &detail.type_name,
        value: base64::encode(&detail.value),
    }))
}

/// Appends an error's document.
pub(crate) fn write(error: &Error, out: &mut BytesMut) {
    write_json(&Written::from(error), out);
}

/// Appends a document. Neither its strings nor the growing buffer can fail.
pub(crate) fn write_json(document: &impl Serialize, out: &mut BytesMut) {
    let written = serde_json::to_writer(out.writer(), document);
    debug_assert!(written.is_ok());
}

/// An error as it is read: whatever is missing, null or new in it, as much as
/// possible of what it says is kept. `debug` is for people with the schema; it
/// and other unknown members are skipped unread, whatever their depth.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Read {
    code: Option<String>,
    message: Option<String>,
    details: Option<Vec<ReadDetail>>,
}

#[derive(Debug, Deserialize)]
struct ReadDetail {
    r#type: Option<String>,
    value: Option<String>,
}

impl Read {
    /// The error; `fallback` is its code where the document names none that exists.
    pub(crate) fn into_error(self, fallback: Code) -> Error {
        let code = self.code.as_deref().and_then(Code::from_name);
        let mut error = Error::new(code.unwrap_or(fallback), self.message.unwrap_or_default());
        let details = self.details.unwrap_or_default();
        for detail in details.into_iter().filter_map(ReadDetail::into_detail) {
            error = error.with_detail(&detail);
        }
        error
    }
}

impl ReadDetail {
    /// The detail; `None` for one that is no message under a name, which costs
    /// the caller less than losing the whole error.
    fn into_detail(self) -> Option<Detail> {
        let url = self.r#type.filter(|name| !name.is_empty())?;
        let type_name = url.rsplit('/').next().unwrap_or(&url).to_owned();
        let value = base64::decode(self.value.unwrap_or_default().as_bytes())?;
        Some(Detail {
            type_name,
            value: Bytes::from(value),
        })
    }
}

/// Reads the document of an answer with this status; one that can't be read
/// leaves the status to say what went wrong.
pub(crate) fn read(document: &[u8], status: u16) -> Error {
    match serde_json::from_slice::<Read>(document) {
        Ok(read) => read.into_error(code_of(status)),
        Err(_) => of_status(status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(error: &Error) -> String {
        let mut out = BytesMut::new();
        write(error, &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn every_code_has_the_status_of_the_spec_and_comes_back() {
        let statuses = Code::ALL.map(status_of);
        assert_eq!(
            statuses,
            [
                499, 500, 400, 504, 404, 409, 403, 429, 400, 409, 400, 501, 500, 503, 500, 401
            ]
        );
        for code in Code::ALL {
            let document = written(&Error::new(code, "m"));
            let error = read(document.as_bytes(), status_of(code));
            assert_eq!((error.code(), error.message()), (code, "m"));
        }
    }

    #[test]
    fn a_status_alone_says_what_the_spec_says() {
        for (status, code) in [
            (400, Code::Internal),
            (401, Code::Unauthenticated),
            (403, Code::PermissionDenied),
            (404, Code::Unimplemented),
            (429, Code::Unavailable),
            (502, Code::Unavailable),
            (503, Code::Unavailable),
            (504, Code::Unavailable),
            (408, Code::Unknown),
            (409, Code::Unknown),
            (412, Code::Unknown),
            (500, Code::Unknown),
            (505, Code::Unknown),
        ] {
            assert_eq!(code_of(status), code, "{status}");
            assert_eq!(read(b"<html>", status).code(), code);
        }
    }

    #[test]
    fn the_document_holds_what_there_is() {
        assert_eq!(written(&Error::aborted("")), r#"{"code":"aborted"}"#);
        let error = Error::not_found("no \"7\"\n").with_detail(&Detail {
            type_name: "a.B".to_owned(),
            value: Bytes::from_static(&[255, 239]),
        });
        assert_eq!(
            written(&error),
            r#"{"code":"not_found","message":"no \"7\"\n","details":[{"type":"a.B","value":"/+8"}]}"#
        );
    }

    #[test]
    fn what_is_missing_null_or_unknown_is_no_obstacle() {
        for (document, code, message) in [
            ("{}", Code::Unauthenticated, ""),
            (r#"{"code":null,"message":"m"}"#, Code::Unauthenticated, "m"),
            (
                r#"{"code":"CANCELED","message":"m"}"#,
                Code::Unauthenticated,
                "m",
            ),
            (
                r#"{"code":"aborted","message":null,"details":null,"x":[1]}"#,
                Code::Aborted,
                "",
            ),
        ] {
            let error = read(document.as_bytes(), 401);
            assert_eq!((error.code(), error.message()), (code, message));
        }
        for junk in ["", "null", "{", "[]", r#"{"code":5}"#] {
            assert_eq!(read(junk.as_bytes(), 401).code(), Code::Unauthenticated);
        }
    }

    #[test]
    fn details_are_read_whatever_stands_beside_them() {
        let document = br#"{"code":"aborted","details":[
            {"type":"a.B","value":"/+8","debug":"x","frob":{}},
            {"type":"type.googleapis.com/a.C","value":"/+8=","debug":{"y":1}},
            {"type":"a.D"},
            {"type":"a.E","value":"!"},
            {"value":"AA"}, {"type":null}
        ]}"#;
        let error = read(document, 500);
        let details: Vec<_> = error
            .details()
            .iter()
            .map(|detail| (detail.type_name.as_str(), detail.value.as_ref()))
            .collect();
        assert_eq!(
            details,
            [("a.B", &[255, 239][..]), ("a.C", &[255, 239]), ("a.D", &[])]
        );
    }

    #[test]
    fn deep_nesting_costs_no_stack() {
        let depth = DOCUMENT_BYTES_MAX / 2 - 100;
        let document = format!(
            r#"{{"code":"aborted","x":{}{}}}"#,
            "[".repeat(depth),
            "]".repeat(depth)
        );
        assert_eq!(read(document.as_bytes(), 500).code(), Code::Aborted);
        assert_eq!(
            read("[".repeat(depth).as_bytes(), 500).code(),
            Code::Unknown
        );
    }

    proptest! {
        #[test]
        fn errors_go_both_ways(
            code in prop::sample::select(&Code::ALL[..]),
            message in ".*",
            details in prop::collection::vec(("[a-z.]{1,9}", any::<Vec<u8>>()), 0..3),
        ) {
            let mut error = Error::new(code, message.clone());
            for (type_name, value) in details {
                error = error.with_detail(&Detail { type_name, value: value.into() });
            }
            let back = read(written(&error).as_bytes(), 418);
            prop_assert_eq!(back.code(), code);
            prop_assert_eq!(back.message(), message);
            prop_assert_eq!(back.details(), error.details());
        }

        #[test]
        fn junk_never_panics(document in any::<Vec<u8>>()) {
            let _ = read(&document, 500);
        }
    }
}
