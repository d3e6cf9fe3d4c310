//! The values of fields that nobody set.

use std::fmt;

use buffa_descriptor::generated::descriptor::field_descriptor_proto::Type;

use crate::index::{Field, Index};

/// A default. Types that changed are a finding of their own, so numbers are
/// compared whatever their type.
pub(super) enum Default {
    Text(String),
    Integer(i128),
    Single(f32),
    Float(f64),
    /// A value of an enum with its name.
    Value(i32, String),
}

impl Default {
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a == b,
            // An empty text and a zero are both what is there without a default.
            (Self::Text(_), _) | (_, Self::Text(_)) => self.is_zero() && other.is_zero(),
            // What was rounded to a `float` is compared as one.
            (Self::Single(a), Self::Float(b)) | (Self::Float(b), Self::Single(a)) => {
                same_number(*a, *b as f32)
            }
            (Self::Single(a), Self::Single(b)) => same_number(*a, *b),
            (Self::Float(a), Self::Float(b)) => same_number(*a, *b),
            (Self::Single(_) | Self::Float(_), _) | (_, Self::Single(_) | Self::Float(_)) => {
                self.number() == other.number()
            }
            _ => self.integer() == other.integer(),
        }
    }

    fn is_zero(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            _ => self.number() == Some(0.0),
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Self::Integer(integer) => Some(*integer),
            Self::Value(number, _) => Some((*number).into()),
            Self::Text(_) | Self::Single(_) | Self::Float(_) => None,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Single(number) => Some((*number).into()),
            Self::Float(number) => Some(*number),
            _ => self.integer().map(|integer| integer as f64),
        }
    }
}

/// Also of numbers that are none.
fn same_number<N: PartialEq + Copy>(a: N, b: N) -> bool {
    let is_nan = |n: N| n.ne(&n);
    a == b || (is_nan(a) && is_nan(b))
}

impl fmt::Display for Default {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Integer(integer) => integer.fmt(f),
            Self::Single(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
            Self::Value(number, name) => write!(f, "{name} ({number})"),
        }
    }
}

/// The default of a field that can have one.
pub(super) fn of(index: &Index<'_>, field: &Field<'_>) -> Default {
    let given = field.proto.default_value.as_deref();
    match field.kind() {
        // Descriptors have the bytes of a default escaped, always alike.
        Type::TYPE_STRING | Type::TYPE_BYTES => Default::Text(given.unwrap_or_default().to_owned()),
        Type::TYPE_BOOL => Default::Integer((given == Some("true")).into()),
        Type::TYPE_FLOAT => {
            Default::Single(given.and_then(|text| text.parse().ok()).unwrap_or_default())
        }
        Type::TYPE_DOUBLE => {
            Default::Float(given.and_then(|text| text.parse().ok()).unwrap_or_default())
        }
        Type::TYPE_ENUM => {
            let values = index.enum_of(field).map_or(&[][..], |of| &of.proto.value);
            let named = |name| {
                values
                    .iter()
                    .find(|value| value.name.as_deref() == Some(name))
            };
            let value = given.and_then(named).or(values.first());
            let number = value.and_then(|value| value.number).unwrap_or_default();
            let name = value.and_then(|value| value.name.clone());
            Default::Value(number, name.unwrap_or_default())
        }
        _ => Default::Integer(given.and_then(|text| text.parse().ok()).unwrap_or_default()),
    }
}
