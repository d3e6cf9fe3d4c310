//! Base64 as the protocols use it: emitted one way, accepted in every way that
//! their specs name.

use ::base64::Engine as _;
use ::base64::alphabet;
use ::base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_encode_padding(false)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, CONFIG);
const URL: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, CONFIG);
const STANDARD_PADDED: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new());

/// The form of `-bin` metadata: standard alphabet, no padding.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Padded, for bodies that are concatenations of such pieces (gRPC-Web text).
pub(crate) fn encode_padded(bytes: &[u8]) -> String {
    STANDARD_PADDED.encode(bytes)
}

/// The form of GET queries: URL-safe alphabet, no padding.
pub(crate) fn encode_url(bytes: &[u8]) -> String {
    URL.encode(bytes)
}

/// Standard alphabet, padded or not.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Standard or URL-safe alphabet, padded or not.
pub(crate) fn decode_any(text: &[u8]) -> Option<Vec<u8>> {
    STANDARD.decode(text).or_else(|_| URL.decode(text)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_goes_both_ways() {
        for bytes in [
            &b""[..],
            b"\x01",
            b"\x01\x02",
            b"\x01\x02\x03",
            b"\xff\xef\xfe",
        ] {
            assert_eq!(decode(encode(bytes).as_bytes()).as_deref(), Some(bytes));
            assert_eq!(
                decode(encode_padded(bytes).as_bytes()).as_deref(),
                Some(bytes)
            );
            assert_eq!(
                decode_any(encode_url(bytes).as_bytes()).as_deref(),
                Some(bytes)
            );
        }
    }

    #[test]
    fn padding_is_optional_and_junk_is_not_taken() {
        assert_eq!(decode(b"AQIDBA"), decode(b"AQIDBA=="));
        assert_eq!(decode_any(b"_-8"), Some(vec![0xff, 0xef]));
        for junk in [&b"A"[..], b"!!!!", b"AQ=A", b"AQ\n"] {
            assert_eq!(decode_any(junk), None);
        }
    }
}
