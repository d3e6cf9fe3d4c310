//! What is known of a message.

use buffa_descriptor::{DescriptorPool, FieldKind, MessageIndex, ScalarType, SingularKind};

/// The type of the message at hand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// Nothing is known.
    Unknown,
    Message(MessageIndex),
    /// An entry of a map.
    Entry(ScalarType, SingularKind),
}

/// What a schema says of a field.
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) is_list: bool,
}

/// A type of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Value(SingularKind),
    Entry(ScalarType, SingularKind),
}

impl Shape {
    /// The field of a number; extensions are in brackets.
    pub(crate) fn field(self, pool: Option<&DescriptorPool>, number: u64) -> Option<Known> {
        let number = u32::try_from(number).ok()?;
        match self {
            Self::Unknown => None,
            Self::Entry(key, value) => {
                let (name, kind) = match number {
                    1 => ("key", SingularKind::Scalar(key)),
                    2 => ("value", value),
                    _ => return None,
                };
                Some(Known {
                    name: name.to_owned(),
                    kind: Kind::Value(kind),
                    is_list: false,
                })
            }
            Self::Message(index) => {
                let pool = pool?;
                let message = pool.message(index);
                let (name, kind) = match message.field(number) {
                    Some(field) => (field.name().to_owned(), field.kind()),
                    None => {
                        let extension = pool.extension_for(index, number)?;
                        (
                            format!("[{}]", extension.full_name()),
                            extension.field().kind(),
                        )
                    }
                };
                let (kind, is_list) = match kind {
                    FieldKind::Singular(kind) => (Kind::Value(kind), false),
                    FieldKind::List(kind) => (Kind::Value(kind), true),
                    FieldKind::Map { key, value } => (Kind::Entry(key, value), false),
                };
                Some(Known {
                    name,
                    kind,
                    is_list,
                })
            }
        }
    }
}

impl Known {
    /// The shape of what is in the field, if that is a message.
    pub(crate) fn inner(&self) -> Option<Shape> {
        match self.kind {
            Kind::Value(SingularKind::Message(message)) => Some(Shape::Message(message)),
            Kind::Value(_) => None,
            Kind::Entry(key, value) => Some(Shape::Entry(key, value)),
        }
    }
}
