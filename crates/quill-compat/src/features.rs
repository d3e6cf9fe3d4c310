//! The features of editions that are one language's own, `(pb.cpp)` and `(pb.java)`.

use buffa::{ExtensionSet, UnknownFieldData, UnknownFields};
use buffa_descriptor::generated::descriptor::FeatureSet;

/// The extensions of `FeatureSet`, and the fields read of them, as published.
const CPP: u32 = 1000;
const CPP_STRING_TYPE: u32 = 2;
const JAVA: u32 = 1001;
const JAVA_UTF8_VALIDATION: u32 = 2;

/// What a file, a message or a field says of one language; `None` takes what
/// is said around it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LanguageFeatures {
    pub(crate) cpp_string_type: Option<u64>,
    pub(crate) java_utf8_validation: Option<u64>,
}

impl LanguageFeatures {
    /// These, with those of a part of this one, which go before.
    pub(crate) fn with(self, part: Option<&FeatureSet>) -> Self {
        let Some(part) = part else {
            return self;
        };
        let own = |extension, field| varint_in(part.unknown_fields(), extension, field);
        Self {
            cpp_string_type: own(CPP, CPP_STRING_TYPE).or(self.cpp_string_type),
            java_utf8_validation: own(JAVA, JAVA_UTF8_VALIDATION).or(self.java_utf8_validation),
        }
    }
}

/// The last value of a field in an extension that is a message.
fn varint_in(fields: &UnknownFields, extension: u32, field: u32) -> Option<u64> {
    let mut last = None;
    for set in fields.iter().filter(|set| set.number == extension) {
        let UnknownFieldData::LengthDelimited(bytes) = &set.data else {
            continue;
        };
        let Ok(message) = UnknownFields::decode_from_slice(bytes) else {
            continue;
        };
        for value in message.iter().filter(|value| value.number == field) {
            if let UnknownFieldData::Varint(value) = value.data {
                last = Some(value);
            }
        }
    }
    last
}
