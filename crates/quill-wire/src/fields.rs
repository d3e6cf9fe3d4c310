//! Metadata as HTTP fields, the same in every protocol: text as it is, the bytes
//! of a `-bin` name in base64, trailing metadata of a bare answer under a prefix.

use std::borrow::Cow;

use quill_core::metadata::is_binary;
use quill_core::{Error, Headers, Metadata};

use crate::base64;

/// Before the names of trailing metadata that travel among headers.
pub(crate) const TRAILER_PREFIX: &str = "trailer-";

/// Adds metadata to fields; `-bin` values without padding.
pub(crate) fn put(metadata: &Metadata, fields: &mut Headers) {
    for (name, value) in metadata.iter() {
        fields.append(name, text(name, value));
    }
}

/// Adds the trailing metadata of an answer with one message to its headers.
pub(crate) fn put_trailers(trailers: &Metadata, headers: &mut Headers) {
    for (name, value) in trailers.iter() {
        let prefixed = [TRAILER_PREFIX, name].concat();
        headers.append(&prefixed, text(name, value));
    }
}

/// A value as text: base64 for a `-bin` name.
pub(crate) fn text<'a>(name: &str, value: &'a [u8]) -> Cow<'a, [u8]> {
    if is_binary(name) {
        Cow::Owned(base64::encode(value).into_bytes())
    } else {
        Cow::Borrowed(value)
    }
}

/// A `-bin` field that is no base64; holds its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotBase64(String);

impl NotBase64 {
    /// The error of whoever is at fault for it.
    pub(crate) fn into_error(self, at_fault: fn(String) -> Error) -> Error {
        at_fault(format!(
            "the metadata {:?} is no base64: values of names ending in \"-bin\" are base64 of the standard alphabet, with or without padding",
            self.0
        ))
    }
}

/// Adds one received field, unless its name is HTTP's or a protocol's. A `-bin`
/// field may hold several values with commas between them.
///
/// # Errors
/// A value that is no base64 but should be; those before it were added.
pub(crate) fn receive(name: &str, value: &[u8], metadata: &mut Metadata) -> Result<(), NotBase64> {
    // Most of a call's fields: not worth a look at each reserved name.
    if name.starts_with("grpc-") || matches!(name, "content-type" | "te") {
        return Ok(());
    }
    if !is_binary(name) {
        metadata.receive(name, value);
        return Ok(());
    }
    for part in value.split(|byte| *byte == b',') {
        let bytes = base64::decode(part.trim_ascii());
        let bytes = bytes.ok_or_else(|| NotBase64(name.to_owned()))?;
        metadata.receive(name, &bytes);
    }
    Ok(())
}

/// Adds all the fields of a head or of trailers.
///
/// # Errors
/// The first that is no base64 but should be; all others were added.
pub(crate) fn receive_all(fields: &Headers, metadata: &mut Metadata) -> Result<(), NotBase64> {
    let mut received = Ok(());
    for (name, value) in fields.iter() {
        received = received.and(receive(name, value, metadata));
    }
    received
}

/// The leading and the trailing metadata of a bare answer's headers.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct AnswerMetadata {
    pub(crate) leading: Metadata,
    pub(crate) trailing: Metadata,
}

/// Reads the headers of a bare answer; what is malformed beside what is not, so
/// that it can't hide a failure.
pub(crate) fn receive_answer(headers: &Headers) -> (AnswerMetadata, Result<(), NotBase64>) {
    let mut answer = AnswerMetadata::default();
    let mut received = Ok(());
    for (name, value) in headers.iter() {
        received = received.and(match name.strip_prefix(TRAILER_PREFIX) {
            Some(name) => receive(name, value, &mut answer.trailing),
            None => receive(name, value, &mut answer.leading),
        });
    }
    (answer, received)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Values = Vec<(String, String, Vec<u8>)>;

    fn any_values() -> impl Strategy<Value = Values> {
        prop::collection::vec(("[a-z0-9_.]{1,8}", "[!-~]{0,9}", any::<Vec<u8>>()), 0..6)
    }

    fn filled(values: &Values) -> Metadata {
        let mut metadata = Metadata::new();
        for (name, text, bytes) in values {
            // A name may be reserved ("te"), and is then not set.
            let _ = metadata.append(name, text);
            let _ = metadata.append_bin(&format!("{name}-bin"), bytes);
        }
        metadata
    }

    proptest! {
        #[test]
        fn metadata_goes_both_ways(leading in any_values(), trailing in any_values()) {
            let (leading, trailing) = (filled(&leading), filled(&trailing));
            let mut fields = Headers::new();
            put(&leading, &mut fields);
            let mut received = Metadata::new();
            prop_assert_eq!(receive_all(&fields, &mut received), Ok(()));
            prop_assert_eq!(&received, &leading);
            put_trailers(&trailing, &mut fields);
            let answer = AnswerMetadata { leading, trailing };
            prop_assert_eq!(receive_answer(&fields), (answer, Ok(())));
        }
    }

    #[test]
    fn padding_is_optional_and_never_written() {
        for text in ["AQIDBA", "AQIDBA=="] {
            let mut metadata = Metadata::new();
            receive("x-bin", text.as_bytes(), &mut metadata).unwrap();
            assert_eq!(metadata.get_bin("x-bin"), Some(&[1, 2, 3, 4][..]));
            let mut fields = Headers::new();
            put(&metadata, &mut fields);
            assert_eq!(fields.text("x-bin"), Some("AQIDBA"));
        }
    }

    #[test]
    fn joined_values_are_split_and_junk_is_named() {
        let mut fields = Headers::new();
        fields.append("a-bin", "AQ==, Ag,,Aw==");
        fields.append("b-bin", "!!");
        fields.append("c", "1, 2");
        let mut metadata = Metadata::new();
        let junk = receive_all(&fields, &mut metadata).unwrap_err();
        let error = junk.into_error(Error::internal);
        assert!(error.message().contains("\"b-bin\""), "{error}");
        let all: Vec<_> = metadata.all("a-bin").collect();
        assert_eq!(all, [&[1][..], &[2], &[], &[3]]);
        assert_eq!(metadata.get("c"), Some("1, 2"));
    }

    #[test]
    fn what_belongs_to_a_protocol_is_no_metadata() {
        let mut metadata = Metadata::new();
        for name in [
            "grpc-status",
            "grpc-status-details-bin",
            "quill-credits",
            "te",
            "content-type",
            "trailer",
            "trailer-x",
        ] {
            receive(name, b"!", &mut metadata).unwrap();
        }
        assert!(metadata.is_empty());
    }
}
