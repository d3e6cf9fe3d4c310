//! The envelope that ends an answer's stream: its error and trailing metadata
//! as JSON.

use std::fmt;

use bytes::BytesMut;
use quill_core::{Code, Error, Metadata};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use super::error;
use crate::envelope;
use crate::fields::{self, NotBase64};

/// Bit 1: the payload is the end of the stream.
pub(crate) const FLAG_END_STREAM: u8 = 0x02;

#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<error::Written<'a>>,
    #[serde(skip_serializing_if = "WrittenMetadata::is_empty")]
    metadata: WrittenMetadata<'a>,
}

/// A stream's trailing metadata and that of its error, sorted by name.
struct WrittenMetadata<'a>(Vec<(&'a str, &'a [u8])>);

impl<'a> WrittenMetadata<'a> {
    fn new(trailers: &'a Metadata, error: Option<&'a Error>) -> Self {
        let mut fields: Vec<_> = trailers.iter().collect();
        fields.extend(error.iter().flat_map(|error| error.metadata().iter()));
        fields.sort_by_key(|(name, _)| *name);
        Self(fields)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for WrittenMetadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for same_name in self.0.chunk_by(|one, next| one.0 == next.0) {
            let name = same_name.first().map_or("", |(name, _)| name);
            let values: Vec<String> = same_name
                .iter()
                .map(|(_, value)| String::from_utf8_lossy(&fields::text(name, value)).into_owned())
                .collect();
            map.serialize_entry(name, &values)?;
        }
        map.end()
    }
}

/// Appends the end of a stream.
pub(crate) fn put(result: Result<(), &Error>, trailers: &Metadata, out: &mut BytesMut) {
    if result.is_ok() && trailers.is_empty() {
        envelope::put_bytes(FLAG_END_STREAM, b"{}", out);
        return;
    }
    let failure = result.err();
    let document = Written {
        error: failure.map(error::Written::from),
        metadata: WrittenMetadata::new(trailers, failure),
    };
    let mut payload = BytesMut::new();
    error::write_json(&document, &mut payload);
    envelope::put_bytes(FLAG_END_STREAM, &payload, out);
}

#[derive(Deserialize)]
struct Read {
    error: Option<error::Read>,
    metadata: Option<ReadMetadata>,
}

struct ReadMetadata(Metadata, Result<(), NotBase64>);

impl<'de> Deserialize<'de> for ReadMetadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = ReadMetadata;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of arrays of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ReadMetadata, A::Error> {
                let mut metadata = Metadata::new();
                let mut received = Ok(());
                while let Some((name, values)) = map.next_entry::<String, Vec<String>>()? {
                    let name = name.to_ascii_lowercase();
                    for value in values {
                        let value = value.as_bytes();
                        received = received.and(fields::receive(&name, value, &mut metadata));
                    }
                }
                Ok(ReadMetadata(metadata, received))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

/// Reads the end of a stream: its error, if it has one, and trailing metadata.
pub(crate) fn read(payload: &[u8]) -> Result<(Option<Error>, Metadata), Error> {
    // Derived readers take an array of the members' values, too.
    if payload.trim_ascii_start().first() != Some(&b'{') {
        return Err(Error::internal("the end of the stream is no JSON object"));
    }
    let read: Read = serde_json::from_slice(payload).map_err(|error| {
        Error::internal(format!("the end of the stream can't be read: {error}"))
    })?;
    let error = read.error.map(|error| error.into_error(Code::Unknown));
    let Some(ReadMetadata(metadata, received)) = read.metadata else {
        return Ok((error, Metadata::new()));
    };
    match received {
        // What is malformed beside an error does not hide that.
        Err(junk) if error.is_none() => Err(junk.into_error(Error::internal)),
        _ => Ok((error, metadata)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(result: Result<(), &Error>, trailers: &Metadata) -> String {
        let mut out = BytesMut::new();
        put(result, trailers, &mut out);
        assert_eq!(out[0], FLAG_END_STREAM);
        assert_eq!(
            out[1..5],
            u32::try_from(out.len() - 5).unwrap().to_be_bytes()
        );
        String::from_utf8(out[5..].to_vec()).unwrap()
    }

    #[test]
    fn a_good_end_is_an_empty_object() {
        assert_eq!(written(Ok(()), &Metadata::new()), "{}");
    }

    #[test]
    fn values_of_one_name_stand_together() {
        let mut trailers = Metadata::new();
        trailers.append("a", "1").unwrap();
        trailers.append_bin("b-bin", [255, 239]).unwrap();
        trailers.append("a", "2").unwrap();
        let document = r#"{"metadata":{"a":["1","2"],"b-bin":["/+8"]}}"#;
        assert_eq!(written(Ok(()), &trailers), document);
        let (error, read) = read(document.as_bytes()).unwrap();
        assert!(error.is_none());
        assert_eq!(read.all("a").collect::<Vec<_>>(), [b"1", b"2"]);
        assert_eq!(read.get_bin("b-bin"), Some(&[255, 239][..]));
    }

    #[test]
    fn the_errors_metadata_travels_with_the_trailers() {
        let mut trailers = Metadata::new();
        trailers.append("a", "1").unwrap();
        let error = Error::aborted("lost").with_metadata("a", "2").unwrap();
        assert_eq!(
            written(Err(&error), &trailers),
            r#"{"error":{"code":"aborted","message":"lost"},"metadata":{"a":["1","2"]}}"#
        );
    }

    #[test]
    fn null_is_nothing_and_an_error_without_a_code_is_unknown() {
        for good in [
            "{}",
            r#"{"error":null,"metadata":null}"#,
            r#"{"code":"aborted"}"#,
        ] {
            let (error, metadata) = read(good.as_bytes()).unwrap();
            assert!(error.is_none() && metadata.is_empty());
        }
        for bad in [
            r#"{"error":{}}"#,
            r#"{"error":{"code":null}}"#,
            r#"{"error":{"code":"x"}}"#,
        ] {
            let (error, _) = read(bad.as_bytes()).unwrap();
            assert_eq!(error.unwrap().code(), Code::Unknown);
        }
    }

    #[test]
    fn junk_is_internal_and_names_that_are_not_metadata_are_left_out() {
        for junk in [
            "",
            "{",
            "null",
            "[]",
            "[null,null]",
            "5",
            r#"{"metadata":{"a":"1"}}"#,
            "{}x",
        ] {
            assert_eq!(read(junk.as_bytes()).unwrap_err().code(), Code::Internal);
        }
        let document = r#"{"metadata":{"X-Upper":["1"],"content-length":["9"],"a b":["2"]}}"#;
        let (_, metadata) = read(document.as_bytes()).unwrap();
        assert_eq!(
            metadata.iter().collect::<Vec<_>>(),
            [("x-upper", &b"1"[..])]
        );
    }
}
