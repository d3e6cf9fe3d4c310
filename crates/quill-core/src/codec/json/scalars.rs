//! Fields of one scalar: modules for serde's `with`.
//!
//! `null` is no value: the field keeps its default, or stays unset.

use std::fmt;

use ::buffa::json_helpers;
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use super::number;

/// What is a module of `$type`, read by [`Visitor`] methods for numbers.
macro_rules! numbers {
    ($($module:ident, $optional:ident, $type:ty, $text:path, $double:path, $expected:literal;)*) => {$(
        #[doc = concat!("A field of `", stringify!($type), "`.")]
        pub mod $module {
            use super::*;

            pub use json_helpers::$module::serialize;

            struct Number;

            impl Visitor<'_> for Number {
                type Value = $type;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str($expected)
                }

                fn visit_unit<E: Error>(self) -> Result<$type, E> {
                    Ok(<$type>::default())
                }

                fn visit_i64<E: Error>(self, value: i64) -> Result<$type, E> {
                    let number: Option<$type> = FromInteger::from_integer(i128::from(value));
                    number.ok_or_else(|| E::invalid_value(Unexpected::Signed(value), &self))
                }

                fn visit_u64<E: Error>(self, value: u64) -> Result<$type, E> {
                    let number: Option<$type> = FromInteger::from_integer(i128::from(value));
                    number.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(value), &self))
                }

                fn visit_f64<E: Error>(self, value: f64) -> Result<$type, E> {
                    $double(value).ok_or_else(|| E::invalid_value(Unexpected::Float(value), &self))
                }

                fn visit_str<E: Error>(self, text: &str) -> Result<$type, E> {
                    $text(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
                }
            }

            /// Reads one.
            ///
            /// # Errors
            /// It is no number of this type.
            pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                from.deserialize_any(Number)
            }
        }

        #[doc = concat!("A field of `", stringify!($type), "` that may be unset.")]
        pub mod $optional {
            use super::*;

            pub use json_helpers::$optional::serialize;

            struct Present($type);

            impl<'de> Deserialize<'de> for Present {
                fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                    super::$module::deserialize(from).map(Self)
                }
            }

            /// Reads one.
            ///
            /// # Errors
            /// It is no number of this type, nor `null`.
            pub fn deserialize<'de, D>(from: D) -> Result<Option<$type>, D::Error>
            where
                D: Deserializer<'de>,
            {
                let present = Option::<Present>::deserialize(from)?;
                Ok(present.map(|present| present.0))
            }
        }
    )*};
}

/// A number without quotes, a point and an exponent.
trait FromInteger: Sized {
    fn from_integer(value: i128) -> Option<Self>;
}

macro_rules! from_integer {
    ($($type:ty)*) => {$(
        impl FromInteger for $type {
            fn from_integer(value: i128) -> Option<Self> {
                Self::try_from(value).ok()
            }
        }
    )*};
}

from_integer!(i32 u32 i64 u64);

impl FromInteger for f64 {
    #[allow(clippy::cast_precision_loss, reason = "to the nearest double")]
    fn from_integer(value: i128) -> Option<Self> {
        Some(value as f64)
    }
}

impl FromInteger for f32 {
    #[allow(clippy::cast_precision_loss, reason = "to the nearest float")]
    fn from_integer(value: i128) -> Option<Self> {
        Some(value as f32)
    }
}

numbers! {
    int32, opt_int32, i32, number::integer, number::whole, "a 32-bit integer";
    uint32, opt_uint32, u32, number::integer, number::whole, "an unsigned 32-bit integer";
    int64, opt_int64, i64, number::integer, number::whole, "a 64-bit integer";
    uint64, opt_uint64, u64, number::integer, number::whole, "an unsigned 64-bit integer";
    float, opt_float, f32, number::float, number::narrow,
        "a float, \"NaN\", \"Infinity\" or \"-Infinity\"";
    double, opt_double, f64, number::double, Some,
        "a double, \"NaN\", \"Infinity\" or \"-Infinity\"";
}

/// Padding is whole or absent. Bits behind the last byte are not looked at.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
const PADDED: GeneralPurposeConfig =
    LENIENT.with_decode_padding_mode(DecodePaddingMode::RequireCanonical);
const UNPADDED: GeneralPurposeConfig =
    LENIENT.with_decode_padding_mode(DecodePaddingMode::RequireNone);

/// The bytes that base64 stands for, in either alphabet, with or without padding.
fn from_base64(text: &str) -> Result<Vec<u8>, base64::DecodeError> {
    let is_url_safe = text.contains(['-', '_']);
    let alphabet = if is_url_safe {
        &alphabet::URL_SAFE
    } else {
        &alphabet::STANDARD
    };
    let config = if text.ends_with('=') {
        PADDED
    } else {
        UNPADDED
    };
    GeneralPurpose::new(alphabet, config).decode(text)
}

/// A field of bytes.
pub mod bytes {
    use super::*;

    pub use json_helpers::bytes::serialize;

    struct Base64;

    impl Visitor<'_> for Base64 {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string of base64")
        }

        fn visit_unit<E: Error>(self) -> Result<Vec<u8>, E> {
            Ok(Vec::new())
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Vec<u8>, E> {
            from_base64(text).map_err(|error| E::custom(format!("no base64: {error}")))
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// It is no base64.
    pub fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: From<Vec<u8>>,
        D: Deserializer<'de>,
    {
        from.deserialize_any(Base64).map(T::from)
    }
}

/// A field of bytes that may be unset.
pub mod opt_bytes {
    use super::*;

    pub use json_helpers::opt_bytes::serialize;

    struct Present(Vec<u8>);

    impl<'de> Deserialize<'de> for Present {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            super::bytes::deserialize(from).map(Self)
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// It is no base64, nor `null`.
    pub fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
    where
        T: From<Vec<u8>>,
        D: Deserializer<'de>,
    {
        let present = Option::<Present>::deserialize(from)?;
        Ok(present.map(|present| T::from(present.0)))
    }
}

/// When a field without presence is left out: when it is as if never set.
pub mod skip_if {
    pub use ::buffa::json_helpers::skip_if::*;

    /// Whether it is positive zero: `-0.0` is another value, as in binary.
    #[must_use]
    pub fn is_zero_f32(value: &f32) -> bool {
        value.to_bits() == 0
    }

    /// Whether it is positive zero: `-0.0` is another value, as in binary.
    #[must_use]
    pub fn is_zero_f64(value: &f64) -> bool {
        value.to_bits() == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn padding_is_whole_or_absent() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("AA==", b"\0"),
            ("AA", b"\0"),
            ("_w==", b"\xff"),
            ("/x", b"\xff"),
            ("AAA=", b"\0\0"),
        ] {
            assert_eq!(from_base64(text).as_deref(), Ok(bytes), "{text}");
        }
        for text in [
            "AA=", "AA===", "A", "A===", "=AAA", "+-AA", "AA\n", "AAAA====", " AA",
        ] {
            assert!(from_base64(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn bytes_come_back_from_each_way_of_writing_them(bytes: Vec<u8>) {
            let standard = serde_json::to_value(Bytes(bytes.clone())).unwrap();
            let standard = standard.as_str().unwrap();
            let url_safe = standard.replace('+', "-").replace('/', "_");
            for text in [standard, &url_safe] {
                for text in [text, text.trim_end_matches('=')] {
                    prop_assert_eq!(from_base64(text), Ok(bytes.clone()), "{}", text);
                }
            }
        }

        #[test]
        fn numbers_come_back_as_they_were_written(float: f32, double: f64) {
            let text = serde_json::to_string(&Numbers { float, double }).unwrap();
            let read: Numbers = serde_json::from_str(&text).unwrap();
            let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
            prop_assert!(same(read.double, double), "{}", text);
            prop_assert!(same(read.float.into(), float.into()), "{}", text);
        }
    }

    #[derive(serde::Serialize)]
    struct Bytes(#[serde(with = "super::bytes")] Vec<u8>);

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Numbers {
        #[serde(with = "super::float")]
        float: f32,
        #[serde(with = "super::double")]
        double: f64,
    }
}
