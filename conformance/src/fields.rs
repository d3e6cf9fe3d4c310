//! Quill's metadata and errors as the suite's messages, and back.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use quill::types::google::protobuf::Any;
use quill::{Code, Detail, Error, Metadata, MetadataError};

use crate::proto;

const TYPE_URL_PREFIX: &str = "type.googleapis.com/";
const BINARY_SUFFIX: &str = "-bin";

/// Metadata as the suite wants it: one entry a name, binary values in base64.
pub(crate) fn to_headers(metadata: &Metadata) -> Vec<proto::Header> {
    let mut headers: Vec<proto::Header> = Vec::new();
    for (name, value) in metadata.iter() {
        let value = if name.ends_with(BINARY_SUFFIX) {
            STANDARD_NO_PAD.encode(value)
        } else {
            String::from_utf8_lossy(value).into_owned()
        };
        match headers.iter_mut().find(|header| header.name == name) {
            Some(header) => header.value.push(value),
            None => headers.push(proto::Header {
                name: name.to_owned(),
                value: vec![value],
                ..Default::default()
            }),
        }
    }
    headers
}

/// Undoes [`to_headers`].
pub(crate) fn to_metadata(headers: &[proto::Header]) -> Result<Metadata, MetadataError> {
    let mut metadata = Metadata::new();
    for header in headers {
        let name = header.name.to_ascii_lowercase();
        for value in &header.value {
            let bytes = STANDARD_NO_PAD.decode(value.trim_end_matches('='));
            match bytes {
                Ok(bytes) if name.ends_with(BINARY_SUFFIX) => metadata.append_bin(&name, bytes)?,
                _ => metadata.append(&name, value)?,
            }
        }
    }
    Ok(metadata)
}

/// The error that a caller got, for the suite.
pub(crate) fn to_proto_error(error: &Error) -> proto::Error {
    let number = i32::try_from(error.code().number()).unwrap_or_default();
    proto::Error {
        code: number.into(),
        message: Some(error.message().to_owned()),
        details: error.details().iter().map(to_any).collect(),
        ..Default::default()
    }
}

/// The error that the suite asks a handler for.
pub(crate) fn to_error(error: proto::Error) -> Error {
    let number = u32::try_from(error.code.to_i32()).unwrap_or_default();
    let code = Code::from_number(number).unwrap_or(Code::Unknown);
    let message = error.message.unwrap_or_default();
    let mut asked = Error::new(code, message);
    for any in error.details {
        asked = asked.with_detail(&Detail {
            type_name: type_name(&any).to_owned(),
            value: any.value,
        });
    }
    asked
}

/// The full name of the message in an `Any`.
pub(crate) fn type_name(any: &Any) -> &str {
    any.type_url.rsplit('/').next().unwrap_or_default()
}

/// A message or a detail in an `Any`.
pub(crate) fn to_any(detail: &impl quill::ErrorDetail) -> Any {
    let Detail { type_name, value } = detail.to_detail();
    Any {
        type_url: [TYPE_URL_PREFIX, &type_name].concat(),
        value,
        ..Default::default()
    }
}
