//! Numbers as their types have them.

use std::fmt::{self, Display as _};

use buffa_descriptor::{DescriptorPool, ScalarType, SingularKind};

/// How a value is on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Varint,
    I64,
    Len,
    StartGroup,
    EndGroup,
    I32,
}

impl Wire {
    pub(crate) fn of_tag(tag: u64) -> Option<Self> {
        Some(match tag & 7 {
            0 => Self::Varint,
            1 => Self::I64,
            2 => Self::Len,
            3 => Self::StartGroup,
            4 => Self::EndGroup,
            5 => Self::I32,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Varint => "VARINT",
            Self::I64 => "I64",
            Self::Len => "LEN",
            Self::StartGroup => "SGROUP",
            Self::EndGroup => "EGROUP",
            Self::I32 => "I32",
        }
    }

    /// How values of a type are when each has a tag of its own.
    pub(crate) fn of(kind: SingularKind) -> Self {
        match kind {
            SingularKind::Message(_) => Self::Len,
            SingularKind::Enum(_) => Self::Varint,
            SingularKind::Scalar(scalar) => match scalar {
                ScalarType::String | ScalarType::Bytes => Self::Len,
                ScalarType::Double | ScalarType::Fixed64 | ScalarType::Sfixed64 => Self::I64,
                ScalarType::Float | ScalarType::Fixed32 | ScalarType::Sfixed32 => Self::I32,
                _ => Self::Varint,
            },
        }
    }
}

/// A number of a type, or of none that is known.
pub(crate) struct Number<'a> {
    pub(crate) bits: u64,
    pub(crate) wire: Wire,
    pub(crate) kind: Option<SingularKind>,
    pub(crate) pool: Option<&'a DescriptorPool>,
}

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits;
        // Readers take the lower half of what a varint of 32 bits has too much.
        let low = bits as u32;
        match self.kind {
            None => self.guessed(f),
            Some(SingularKind::Enum(index)) => {
                let of = self.pool.map(|pool| pool.enumeration(index));
                let value = of.and_then(|of| of.value(low.cast_signed()));
                match value {
                    Some(value) => write!(f, "{} ({})", value.name(), low.cast_signed()),
                    None => write!(f, "{} (no value of the enum)", low.cast_signed()),
                }
            }
            Some(SingularKind::Message(_)) => bits.fmt(f),
            Some(SingularKind::Scalar(scalar)) => match scalar {
                ScalarType::Double => write!(f, "{:?}", f64::from_bits(bits)),
                ScalarType::Float => write!(f, "{:?}", f32::from_bits(low)),
                ScalarType::Int64 | ScalarType::Sfixed64 => bits.cast_signed().fmt(f),
                ScalarType::Int32 | ScalarType::Sfixed32 => low.cast_signed().fmt(f),
                ScalarType::Bool => (bits != 0).fmt(f),
                ScalarType::Uint32 | ScalarType::Fixed32 => low.fmt(f),
                ScalarType::Sint32 => unzigzag(low.into()).fmt(f),
                ScalarType::Sint64 => unzigzag(bits).fmt(f),
                _ => bits.fmt(f),
            },
        }
    }
}

impl Number<'_> {
    fn guessed(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.bits;
        match self.wire {
            Wire::I64 => write!(f, "{bits} (double {:?})", f64::from_bits(bits)),
            Wire::I32 => write!(f, "{bits} (float {:?})", f32::from_bits(bits as u32)),
            _ if bits > u64::MAX / 2 => write!(f, "{bits} ({})", bits.cast_signed()),
            _ => bits.fmt(f),
        }
    }
}

fn unzigzag(bits: u64) -> i64 {
    (bits >> 1).cast_signed() ^ (bits & 1).cast_signed().wrapping_neg()
}
