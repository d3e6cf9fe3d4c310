//! Metadata as header or trailer fields: text as it is, `-bin` in base64.

use quill_core::metadata::is_binary;
use quill_core::{Headers, Metadata};

use crate::base64;

/// Appends metadata as fields; `-bin` values without padding.
pub(super) fn put(metadata: &Metadata, fields: &mut Headers) {
    for (name, value) in metadata.iter() {
        if is_binary(name) {
            fields.append(name, base64::encode(value));
        } else {
            fields.append(name, value);
        }
    }
}

/// Adds one received field to metadata, unless its name belongs to gRPC or to
/// HTTP. A `-bin` field is a list of values joined by commas. False for one that
/// is no base64, padded or not; what came before in the list is kept.
pub(super) fn receive(name: &str, value: &[u8], metadata: &mut Metadata) -> bool {
    // Most of a call's fields: not worth a look at each reserved name.
    if name.starts_with("grpc-") || matches!(name, "content-type" | "te") {
        return true;
    }
    if !is_binary(name) {
        metadata.receive(name, value);
        return true;
    }
    value.split(|b| *b == b',').all(|item| {
        let decoded = base64::decode(item.trim_ascii());
        decoded
            .inspect(|bytes| metadata.receive(name, bytes))
            .is_some()
    })
}

/// All the metadata of a head or of trailers, and the name of the first field
/// that is no base64 but should be.
pub(super) fn receive_all<'a>(
    fields: &'a Headers,
    metadata: &mut Metadata,
) -> Result<(), Malformed<'a>> {
    let mut malformed = None;
    for (name, value) in fields.iter() {
        if !receive(name, value, metadata) {
            malformed = malformed.or(Some(name));
        }
    }
    malformed.map_or(Ok(()), |name| Err(Malformed(name)))
}

/// The name of a `-bin` field that is no base64.
#[derive(Debug)]
pub(super) struct Malformed<'a>(pub(super) &'a str);

impl From<Malformed<'_>> for quill_core::Error {
    fn from(malformed: Malformed<'_>) -> Self {
        quill_core::Error::internal(format!(
            "the metadata {:?} is no base64: values of names ending in \"-bin\" are base64 of the standard alphabet, with or without padding",
            malformed.0
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn metadata_goes_both_ways(
            values in prop::collection::vec(("[a-z0-9_.]{1,8}", "[!-~]{0,9}", any::<Vec<u8>>()), 0..6),
        ) {
            let mut metadata = Metadata::new();
            for (name, text, bytes) in &values {
                // A name may be reserved ("te"), and is then not set.
                let _ = metadata.append(name, text);
                let _ = metadata.append_bin(&format!("{name}-bin"), bytes);
            }
            let mut fields = Headers::new();
            put(&metadata, &mut fields);
            let mut received = Metadata::new();
            receive_all(&fields, &mut received).unwrap();
            prop_assert_eq!(received, metadata);
        }
    }

    #[test]
    fn padding_is_optional_and_never_written() {
        for text in ["AQIDBA", "AQIDBA=="] {
            let mut metadata = Metadata::new();
            assert!(receive("x-bin", text.as_bytes(), &mut metadata));
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
        let malformed = receive_all(&fields, &mut metadata).unwrap_err();
        assert_eq!(malformed.0, "b-bin");
        let all: Vec<_> = metadata.all("a-bin").collect();
        assert_eq!(all, [&[1][..], &[2], &[], &[3]]);
        assert_eq!(metadata.get("c"), Some("1, 2"));
    }

    #[test]
    fn what_belongs_to_the_protocol_is_no_metadata() {
        let mut metadata = Metadata::new();
        for name in [
            "grpc-status",
            "grpc-status-details-bin",
            "grpc-x",
            "te",
            "content-type",
            "trailer",
        ] {
            assert!(receive(name, b"!", &mut metadata));
        }
        assert!(metadata.is_empty());
    }
}
