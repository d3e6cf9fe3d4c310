//! Metadata as Connect writes it: in HTTP headers, `-bin` values in base64.

use std::borrow::Cow;

use quill_core::metadata::is_binary;
use quill_core::{Headers, Metadata};

use crate::base64;

/// In front of the names of a unary answer's trailing metadata.
pub(crate) const TRAILER_PREFIX: &str = "trailer-";

/// Adds metadata to headers.
pub(crate) fn put(metadata: &Metadata, headers: &mut Headers) {
    for (name, value) in metadata.iter() {
        headers.append(name, text(name, value));
    }
}

/// Adds a unary answer's trailing metadata to its headers.
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

/// Adds what a peer sent. A `-bin` field may hold several values with commas
/// between them; what is no base64 there is no value, and is left out.
pub(crate) fn receive(name: &str, value: &[u8], metadata: &mut Metadata) {
    if !is_binary(name) {
        metadata.receive(name, value);
        return;
    }
    for part in value.split(|byte| *byte == b',') {
        if let Some(bytes) = base64::decode(part.trim_ascii()) {
            metadata.receive(name, &bytes);
        }
    }
}

/// Client: a unary answer's leading and trailing metadata.
pub(crate) fn receive_answer(headers: &Headers) -> (Metadata, Metadata) {
    let mut leading = Metadata::new();
    let mut trailing = Metadata::new();
    for (name, value) in headers.iter() {
        match name.strip_prefix(TRAILER_PREFIX) {
            Some(name) => receive(name, value, &mut trailing),
            None => receive(name, value, &mut leading),
        }
    }
    (leading, trailing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_paddings_and_joined_values_are_read() {
        let mut metadata = Metadata::new();
        receive("x-bin", b"AQIDBA", &mut metadata);
        receive("x-bin", b"AQIDBA==, BQ", &mut metadata);
        receive("x-bin", b"!", &mut metadata);
        let values: Vec<_> = metadata.all("x-bin").collect();
        assert_eq!(values, [&[1, 2, 3, 4][..], &[1, 2, 3, 4], &[5]]);
    }

    proptest! {
        #[test]
        fn metadata_goes_both_ways(
            leading in prop::collection::vec(("[a-z]{1,3}(-bin)?", "[!-~]{0,9}"), 0..6),
            trailing in prop::collection::vec(("[a-z]{1,3}(-bin)?", "[!-~]{0,9}"), 0..6),
        ) {
            let filled = |fields: Vec<(String, String)>| {
                let mut metadata = Metadata::new();
                for (name, value) in fields {
                    metadata.receive(&name, value.as_bytes());
                }
                metadata
            };
            let (leading, trailing) = (filled(leading), filled(trailing));
            let mut headers = Headers::new();
            put(&leading, &mut headers);
            put_trailers(&trailing, &mut headers);
            prop_assert_eq!(receive_answer(&headers), (leading, trailing));
        }
    }
}
